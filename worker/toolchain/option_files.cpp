#include "worker/toolchain/option_files.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <system_error>

#include "shared/base/text.h"
#include "worker/toolchain/file_digests.h"

namespace layerfarm::worker::toolchain {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kSeparators = "=:,@";
/// A longer list (of pass names, of layouts) names no files; each pair of its places would cost a
/// look at the disk.
constexpr std::size_t kMostParts = 24;
constexpr std::size_t kLongestPath = 4096;

/// A word without either could only be a file of the working folder, where tools do not run.
bool may_be_path(std::string_view text) {
  return !text.empty() && text.size() < kLongestPath &&
         text.find_first_of("/.") != std::string_view::npos;
}

void add_file(std::string_view text, std::vector<fs::path>& out) {
  if (!may_be_path(text)) return;
  std::error_code error;
  const fs::path file(text);
  if (fs::is_regular_file(file, error) && std::find(out.begin(), out.end(), file) == out.end())
    out.push_back(file);
}

/// Paths may hold separators themselves, so every part from one to another is tried.
void add_files(std::string_view value, std::vector<fs::path>& out) {
  std::vector<std::size_t> cuts;  // just behind a separator, and behind the end
  cuts.push_back(0);
  for (std::size_t i = 0; i < value.size() && cuts.size() < kMostParts; ++i) {
    if (kSeparators.find(value[i]) != std::string_view::npos) cuts.push_back(i + 1);
  }
  cuts.push_back(value.size() + 1);
  for (std::size_t from = 0; from + 1 < cuts.size(); ++from) {
    for (std::size_t to = from + 1; to < cuts.size(); ++to)
      add_file(value.substr(cuts[from], cuts[to] - 1 - cuts[from]), out);
  }
}

void add_files(const domain::Options& options, std::vector<fs::path>& out) {
  for (const auto& [key, value] : options) {
    for (const std::string& line : domain::option_list(options, key)) add_files(line, out);
  }
}

}  // namespace

std::vector<fs::path> option_files(const domain::ChipSpec& chip) {
  std::vector<fs::path> out;
  add_files(chip.options, out);
  for (const domain::ExecutorSpec& executor : chip.executors) add_files(executor.options, out);
  return out;
}

base::Digest digest_of_option_files(const std::vector<fs::path>& files) {
  base::Hasher hasher("layerfarm.option-files.1");
  std::vector<fs::path> read;
  for (const fs::path& file : files) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(file, error);
    hasher.add(!error && size > kMostOptionFile);
    if (error || size <= kMostOptionFile) {
      read.push_back(file);
      continue;
    }
    const auto changed = fs::last_write_time(file, error).time_since_epoch();
    hasher.add(static_cast<std::int64_t>(size))
        .add(static_cast<std::int64_t>(
            std::chrono::duration_cast<std::chrono::nanoseconds>(changed).count()));
  }
  FileDigests digests;
  hasher.add(digests.of_all(read));
  return hasher.finish();
}

}  // namespace layerfarm::worker::toolchain
