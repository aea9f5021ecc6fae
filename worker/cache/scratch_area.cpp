#include "worker/cache/scratch_area.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <system_error>
#include <utility>

#include "shared/base/files.h"

namespace layerfarm::worker::cache {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "worker-";
constexpr std::string_view kUnfinishedPrefix = "making-";
constexpr const char* kLockName = ".lock";
/// Making an area takes milliseconds; what is unfinished after this belongs to a worker that was
/// killed on the way.
constexpr std::chrono::hours kUnfinishedFor{1};

/// Takes the area's lock, or -1 with errno. It goes when its process goes, however that ends.
int lock_area(const fs::path& area) {
  const int fd = ::open((area / kLockName).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int why = errno;
    ::close(fd);
    errno = why;
    return -1;
  }
  return fd;
}

bool owner_lives(const AreaOwner& owner) { return process_start(owner.pid) == owner.start; }

bool removed_if_abandoned(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  std::error_code error;
  if (name.starts_with(kUnfinishedPrefix)) {
    const auto changed = entry.last_write_time(error);
    if (error || fs::file_time_type::clock::now() - changed < kUnfinishedFor) return false;
    return remove_whole_folder(entry.path());
  }
  const auto owner = owner_in_name(name);
  if (!owner || owner_lives(*owner)) return false;
  const int lock = lock_area(entry.path());
  if (lock < 0) return false;  // somebody holds it, or somebody else just removed the area
  const bool removed = remove_whole_folder(entry.path());
  ::close(lock);
  return removed;
}

}  // namespace

std::optional<AreaOwner> owner_in_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  AreaOwner out;
  const char* const end = name.data() + name.size();
  const auto pid = std::from_chars(name.data(), end, out.pid);
  if (pid.ec != std::errc{} || out.pid <= 0 || pid.ptr == end || *pid.ptr != '-')
    return std::nullopt;
  const auto start = std::from_chars(pid.ptr + 1, end, out.start);
  if (start.ec != std::errc{} || start.ptr != end) return std::nullopt;
  return out;
}

std::optional<std::uint64_t> process_start(pid_t pid) {
  const auto stat = base::read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!stat) return std::nullopt;
  // After the name, which may hold anything, start is the 20th word.
  std::size_t at = stat->rfind(')');
  for (int word = 0; word < 20 && at != std::string::npos; ++word) at = stat->find(' ', at + 1);
  if (at == std::string::npos) return std::nullopt;
  std::uint64_t out = 0;
  const auto [end, error] =
      std::from_chars(stat->data() + at + 1, stat->data() + stat->size(), out);
  if (error != std::errc{}) return std::nullopt;
  return out;
}

bool remove_whole_folder(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (!error) return true;
  // A tool may leave folders that even their owner may not change; each round opens up one level
  // more.
  for (int round = 0; round < 64; ++round) {
    bool changed = false;
    std::error_code walk;
    fs::permissions(folder, fs::perms::owner_all,
                    fs::perm_options::add | fs::perm_options::nofollow, walk);
    for (fs::recursive_directory_iterator
             at(folder, fs::directory_options::skip_permission_denied, walk),
         end;
         !walk && at != end; at.increment(walk)) {
      std::error_code one;
      const auto status = at->symlink_status(one);
      if (one || status.type() != fs::file_type::directory) continue;
      if ((status.permissions() & fs::perms::owner_all) == fs::perms::owner_all) continue;
      fs::permissions(at->path(), fs::perms::owner_all, fs::perm_options::add, one);
      changed = changed || !one;
    }
    fs::remove_all(folder, error);
    if (!error) return true;
    if (!changed) return false;
  }
  return false;
}

int sweep_scratch_areas(const fs::path& parent) {
  int out = 0;
  std::error_code error;
  for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
    std::error_code one;
    if (at->is_directory(one) && !at->is_symlink(one) && removed_if_abandoned(*at)) ++out;
  }
  return out;
}

base::Result<ScratchArea> ScratchArea::make(const fs::path& parent) {
  std::error_code error;
  fs::create_directories(parent, error);
  if (error)
    return base::fail(base::ErrorCode::Internal,
                      "cannot make the folder " + parent.string() + ": " + error.message());
  sweep_scratch_areas(parent);
  const auto start = process_start(::getpid());
  if (!start)
    return base::fail(base::ErrorCode::Internal,
                      "cannot read /proc/" + std::to_string(::getpid()) + "/stat");
  // Locked before it has its name: under that name it is never seen without an owner.
  std::string unfinished = (parent / (std::string(kUnfinishedPrefix) + "XXXXXX")).string();
  if (::mkdtemp(unfinished.data()) == nullptr)
    return base::fail(base::os_error("cannot make a folder in " + parent.string(), errno));
  const int lock = lock_area(unfinished);
  if (lock < 0) {
    const base::Error problem = base::os_error("cannot lock " + unfinished, errno);
    remove_whole_folder(unfinished);
    return base::fail(problem);
  }
  const fs::path path =
      parent / (std::string(kPrefix) + std::to_string(::getpid()) + "-" + std::to_string(*start));
  // Left by this very process when an earlier area of its own could not be removed.
  remove_whole_folder(path);
  fs::rename(unfinished, path, error);
  if (error) {
    ::close(lock);
    remove_whole_folder(unfinished);
    return base::fail(base::ErrorCode::Internal,
                      "cannot make the folder " + path.string() + ": " + error.message());
  }
  return ScratchArea(path, lock);
}

ScratchArea::ScratchArea(ScratchArea&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

ScratchArea::~ScratchArea() {
  if (lock_ < 0) return;
  remove_whole_folder(path_);
  ::close(lock_);
}

}  // namespace layerfarm::worker::cache
