#include "shared/base/blob_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "shared/base/files.h"

namespace layerfarm::base {
namespace fs = std::filesystem;
namespace {

/// Copied rather than linked up to here: a copy costs less than starting the tool that reads it.
constexpr std::uint64_t kCopiedBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMostChecked = 100'000;

/// Gives `temporary` its final name. Content is equal by construction when the name is already
/// taken.
Result<void> publish(const fs::path& temporary, const fs::path& final_path) {
  ::chmod(temporary.c_str(), 0444);
  if (::rename(temporary.c_str(), final_path.c_str()) != 0) {
    const Error error = os_error("cannot store the blob " + final_path.string(), errno);
    ::unlink(temporary.c_str());
    return fail(error);
  }
  return {};
}

}  // namespace

fs::path BlobFolder::path(const Digest& digest) const {
  const std::string hex = digest.hex();
  return root_ / hex.substr(0, 2) / hex.substr(2);
}

bool BlobFolder::has(const Digest& digest) const {
  return ::access(path(digest).c_str(), R_OK) == 0;
}

void BlobFolder::touch(const Digest& digest) const {
  // Time of access alone: the time of change tells whether the content is as it was checked.
  const std::array<timespec, 2> times = {timespec{0, UTIME_NOW}, timespec{0, UTIME_OMIT}};
  ::utimensat(AT_FDCWD, path(digest).c_str(), times.data(), 0);
}

Result<Digest> BlobFolder::put(BytesView bytes) const {
  const Digest digest = digest_of(bytes);
  const fs::path target = path(digest);
  if (intact(digest)) {
    touch(digest);
    return digest;
  }
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  if (error)
    return fail(ErrorCode::Internal,
                "cannot make " + target.parent_path().string() + ": " + error.message());
  // No fsync: a blob torn by a power cut is found by its digest and made again.
  auto written = write_file_atomically(target, bytes, Sync::No);
  if (!written) return fail(std::move(written.error()).with("cannot store a blob"));
  ::chmod(target.c_str(), 0444);
  return digest;
}

Result<Digest> BlobFolder::put_file(const fs::path& file) const {
  auto digest = digest_of_file(file.string());
  if (!digest) return digest;
  if (intact(*digest)) {
    touch(*digest);
    return digest;
  }
  const fs::path target = path(*digest);
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  if (error)
    return fail(ErrorCode::Internal,
                "cannot make " + target.parent_path().string() + ": " + error.message());
  if (::rename(file.c_str(), target.c_str()) == 0) {
    ::chmod(target.c_str(), 0444);
    return digest;
  }
  // Another file system: copy beside the target, then rename.
  const fs::path temporary = target.string() + "." + std::to_string(::getpid());
  fs::copy_file(file, temporary, fs::copy_options::overwrite_existing, error);
  if (error) {
    ::unlink(temporary.c_str());
    return fail(ErrorCode::Internal,
                "cannot store " + file.string() + " as a blob: " + error.message());
  }
  if (auto done = publish(temporary, target); !done) return fail(done.error());
  return digest;
}

Result<Bytes> BlobFolder::get(const Digest& digest) const {
  auto bytes = read_file(path(digest));
  if (!bytes) return bytes;
  if (digest_of(*bytes) != digest) {
    ::unlink(path(digest).c_str());
    return fail(ErrorCode::Corrupt,
                "the blob " + digest.hex() + " is damaged; it was removed and will be made again");
  }
  touch(digest);
  return bytes;
}

/// What was found intact: size, time of change and inode at that moment.
struct BlobFolder::Checked {
  struct Mark {
    std::uint64_t inode = 0;
    std::int64_t bytes = 0;
    std::int64_t changed_ns = 0;
    friend bool operator==(const Mark&, const Mark&) = default;
  };
  std::mutex mutex;
  std::unordered_map<Digest, Mark> marks;  // guarded by mutex
};

std::shared_ptr<BlobFolder::Checked> BlobFolder::make_checked() {
  return std::make_shared<Checked>();
}

bool BlobFolder::intact(const Digest& digest) const {
  const fs::path file = path(digest);
  const auto mark = [&file]() -> std::optional<Checked::Mark> {
    struct stat info{};
    if (::stat(file.c_str(), &info) != 0) return std::nullopt;
    return Checked::Mark{info.st_ino, info.st_size,
                         std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
  };
  const auto now = mark();
  if (!now) return false;
  {
    const std::lock_guard lock(checked_->mutex);
    const auto known = checked_->marks.find(digest);
    if (known != checked_->marks.end() && known->second == *now) return true;
  }
  const auto content = digest_of_file(file.string());
  if (!content || *content != digest) {
    ::unlink(file.c_str());
    return false;
  }
  touch(digest);
  const auto after = mark();
  const std::lock_guard lock(checked_->mutex);
  if (checked_->marks.size() > kMostChecked) checked_->marks.clear();
  if (after) checked_->marks[digest] = *after;
  return true;
}

Result<void> BlobFolder::link_to(const Digest& digest, const fs::path& target) const {
  if (!has(digest))
    return fail(ErrorCode::NotFound, "the blob " + digest.hex() + " is not here any more");
  if (!intact(digest))
    return fail(ErrorCode::Corrupt,
                "the blob " + digest.hex() + " is damaged; it was removed and will be made again");
  const fs::path source = path(digest);
  std::error_code error;
  const bool small = fs::file_size(source, error) <= kCopiedBytes && !error;
  if (!small && ::link(source.c_str(), target.c_str()) == 0) return {};
  fs::copy_file(source, target, error);
  if (error) {
    const ErrorCode code =
        error == std::errc::no_such_file_or_directory ? ErrorCode::NotFound : ErrorCode::Internal;
    return fail(code, "cannot copy the blob " + digest.hex() + " to " + target.string() + ": " +
                          error.message());
  }
  return {};
}

std::vector<BlobFolder::Entry> BlobFolder::list() const {
  std::vector<Entry> out;
  std::error_code error;
  for (fs::directory_iterator shard(root_, error), end; !error && shard != end;
       shard.increment(error)) {
    std::error_code inner;
    for (fs::directory_iterator file(shard->path(), inner); !inner && file != end;
         file.increment(inner)) {
      auto digest =
          Digest::from_hex(shard->path().filename().string() + file->path().filename().string());
      struct stat info{};
      if (!digest || ::stat(file->path().c_str(), &info) != 0) continue;
      out.push_back({*digest, static_cast<std::uint64_t>(info.st_size),
                     std::int64_t{info.st_atim.tv_sec} * 1'000'000'000 + info.st_atim.tv_nsec});
    }
  }
  return out;
}

bool BlobFolder::remove(const Digest& digest) const { return ::unlink(path(digest).c_str()) == 0; }

}  // namespace layerfarm::base
