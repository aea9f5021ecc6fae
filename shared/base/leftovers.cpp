#include "shared/base/leftovers.h"

#include <algorithm>
#include <chrono>

#include "shared/base/files.h"
#include "shared/base/process_identity.h"

namespace layerfarm::base {
namespace fs = std::filesystem;
namespace {

/// Latest change of the entry or anything in it.
fs::file_time_type last_change(const fs::path& path) {
  std::error_code ignored;
  fs::file_time_type latest = fs::last_write_time(path, ignored);
  if (ignored)
    latest = fs::file_time_type::clock::now();  // gone, or not ours: nothing to say about it
  if (fs::is_symlink(path, ignored) || !fs::is_directory(path, ignored)) return latest;
  fs::recursive_directory_iterator entry(path, fs::directory_options::skip_permission_denied,
                                         ignored);
  for (const fs::recursive_directory_iterator end; !ignored && entry != end;
       entry.increment(ignored)) {
    std::error_code gone;
    const fs::file_time_type changed = fs::last_write_time(entry->path(), gone);
    if (!gone) latest = std::max(latest, changed);
  }
  return latest;
}

}  // namespace

std::vector<fs::path> leftovers(const fs::path& parent, Duration stranger_age) {
  std::vector<fs::path> out;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto owner = process_from_tag(entry->path().filename().string());
    const bool gone = owner ? !is_alive(*owner) : now - last_change(entry->path()) >= stranger_age;
    if (gone) out.push_back(entry->path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::size_t sweep_leftovers(const fs::path& parent, Duration stranger_age) {
  std::size_t removed = 0;
  for (const fs::path& path : leftovers(parent, stranger_age)) {
    std::error_code error;
    if (fs::exists(fs::symlink_status(path, error)) && remove_folder(path)) ++removed;
  }
  return removed;
}

}  // namespace layerfarm::base
