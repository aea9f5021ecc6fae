#include "worker/toolchain/file_digests.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <system_error>

#include "shared/base/files.h"
#include "shared/base/places.h"

namespace layerfarm::worker::toolchain {
namespace fs = std::filesystem;
namespace {
constexpr std::string_view kHead = "layerfarm tool digests 1";
}

fs::path FileDigests::default_memory() {
  const fs::path tools = base::dependencies_folder();
  return (::access(tools.c_str(), W_OK) == 0 ? tools : base::cache_folder()) / "tool-digests";
}

FileDigests::FileDigests(fs::path memory) : memory_(std::move(memory)) {
  const auto text = base::read_file(memory_, std::uint64_t{4} << 20);
  if (!text) return;
  std::istringstream lines(*text);
  std::string line;
  if (!std::getline(lines, line) || line != kHead) return;
  while (std::getline(lines, line)) {
    const auto digest = base::Digest::from_hex(line.substr(0, 64));
    if (digest && line.size() > 66) known_[line.substr(65)] = *digest;
  }
}

FileDigests::~FileDigests() {
  if (!learnt_) return;
  std::string text(kHead);
  text += '\n';
  for (const auto& [key, digest] : known_) text += digest.hex() + " " + key + "\n";
  std::error_code error;
  fs::create_directories(memory_.parent_path(), error);
  [[maybe_unused]] const auto written = base::write_file_atomically(memory_, text, base::Sync::No);
}

base::Result<base::Digest> FileDigests::of(const fs::path& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0)
    return base::fail(base::os_error("cannot read " + file.string(), errno));
  const std::string path = fs::absolute(file).string();
  // The time of change of the file's record, too: copies and archives set the other one back.
  const auto time = [](const timespec& at) {
    return std::to_string(at.tv_sec) + "." + std::to_string(at.tv_nsec);
  };
  const std::string key = std::to_string(info.st_size) + " " + time(info.st_mtim) + " " +
                          time(info.st_ctim) + " " + std::to_string(info.st_ino) + " " + path;
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  auto digest = base::digest_of_file(path);
  if (!digest || path.find('\n') != std::string::npos) return digest;
  // What was known of an older file at this path is of no use any more.
  std::erase_if(known_, [&path](const auto& entry) { return entry.first.ends_with(" " + path); });
  known_[key] = *digest;
  learnt_ = true;
  return digest;
}

base::Digest FileDigests::of_all(const std::vector<fs::path>& files) {
  base::Hasher hasher("layerfarm.tool-files.1");
  for (const fs::path& file : files) {
    const auto digest = of(file);
    hasher.add(digest.has_value());
    if (digest) hasher.add(*digest);
  }
  return hasher.finish();
}

}  // namespace layerfarm::worker::toolchain
