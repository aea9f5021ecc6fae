#include "shared/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "shared/base/process_identity.h"

namespace layerfarm::base {
namespace {

/// Owns a descriptor for the length of a function.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

Result<void> write_all(int fd, BytesView content, const std::string& name) {
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = ::write(fd, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(os_error("cannot write " + name, errno));
    done += static_cast<std::size_t>(n);
  }
  return {};
}

/// What a rename may replace: the file itself, and where the name is a link the file it leads to. A
/// device or a FIFO in that place is nobody's old file.
Result<std::filesystem::path> replaceable(const std::filesystem::path& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return path;
  if (S_ISLNK(info.st_mode)) {
    std::error_code error;
    const std::filesystem::path target = std::filesystem::canonical(path, error);
    // A link to nothing is replaced: where it would lead may not even have a folder.
    if (error) return path;
    return replaceable(target);
  }
  return fail(ErrorCode::InvalidInput,
              "cannot write " + path.string() + ": it is there and is no regular file");
}

}  // namespace

Result<int> open_regular_file(const std::filesystem::path& path) {
  // Without O_NONBLOCK opening a FIFO waits for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return fail(os_error("cannot read " + path.string(), errno));
  struct stat info{};
  if (::fstat(fd, &info) != 0) {
    const Error error = os_error("cannot read " + path.string(), errno);
    ::close(fd);
    return fail(error);
  }
  if (S_ISREG(info.st_mode)) return fd;
  ::close(fd);
  return fail(ErrorCode::InvalidInput,
              "cannot read " + path.string() + ": it is " +
                  (S_ISDIR(info.st_mode) ? "a folder" : "not a regular file"));
}

Result<Bytes> read_file(const std::filesystem::path& path, std::uint64_t limit) {
  auto opened = open_regular_file(path);
  if (!opened) return fail(opened.error());
  const Descriptor file(*opened);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return fail(os_error("cannot read " + path.string(), errno));
  Bytes out;
  out.resize(static_cast<std::size_t>(info.st_size));
  std::size_t done = 0;
  while (true) {
    if (done == out.size()) out.resize(out.size() + 4096);  // it may grow
    const ssize_t n = ::read(file.get(), out.data() + done, out.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(os_error("cannot read " + path.string(), errno));
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
    if (done > limit) {
      return fail(ErrorCode::InvalidInput, path.string() + " is larger than the " +
                                               std::to_string(limit) +
                                               " bytes that are accepted here");
    }
  }
  out.resize(done);
  return out;
}

Result<void> write_file_atomically(const std::filesystem::path& path, BytesView content,
                                   Sync sync) {
  constexpr std::string_view kSuffix = ".XXXXXX";
  static_assert(kSuffix.size() == kTemporarySuffixLength);
  const auto target = replaceable(path);
  if (!target) return fail(target.error());
  std::string temporary = target->string().append(kSuffix);
  const Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) return fail(os_error("cannot write " + path.string(), errno));
  // mkostemp gives 0600; what is written here is meant to be read like any other output file.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  Result<void> done = write_all(file.get(), content, path.string());
  if (done && ::fchmod(file.get(), 0666 & ~mask) != 0)
    done = fail(os_error("cannot write " + path.string(), errno));
  if (done && sync == Sync::Yes && ::fsync(file.get()) != 0) {
    done = fail(os_error("cannot write " + path.string(), errno));
  }
  if (done && ::rename(temporary.c_str(), target->c_str()) != 0) {
    done = fail(os_error("cannot write " + path.string(), errno));
  }
  if (!done) {
    ::unlink(temporary.c_str());
    return done;
  }
  if (sync == Sync::Yes) {
    const std::filesystem::path folder =
        target->has_parent_path() ? target->parent_path() : std::filesystem::path(".");
    const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.get() >= 0) ::fsync(directory.get());
  }
  return {};
}

bool remove_folder(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::remove_all(folder, error);
  if (!error) return true;
  // A tool may leave folders that even their owner may not change. Each round opens what the last
  // one made visible, and what is nested deeper than this was made to annoy.
  constexpr int kMostRounds = 64;
  for (int round = 0; round < kMostRounds; ++round) {
    bool changed = false;
    const auto open_up = [&changed](const fs::path& path) {
      std::error_code one;
      const auto status = fs::symlink_status(path, one);
      if (one || status.type() != fs::file_type::directory) return;
      if ((status.permissions() & fs::perms::owner_all) == fs::perms::owner_all) return;
      fs::permissions(path, fs::perms::owner_all, fs::perm_options::add, one);
      changed = changed || !one;
    };
    open_up(folder);
    std::error_code walk;
    for (fs::recursive_directory_iterator
             at(folder, fs::directory_options::skip_permission_denied, walk),
         end;
         !walk && at != end; at.increment(walk)) {
      open_up(at->path());
    }
    fs::remove_all(folder, error);
    if (!error) return true;
    if (!changed) return false;
  }
  return false;
}

bool clear_folder(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  // A link in its place leads to somebody else's folder.
  if (fs::symlink_status(folder, error).type() != fs::file_type::directory) return false;
  fs::permissions(folder, fs::perms::owner_all, fs::perm_options::add, error);
  bool clear = true;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    clear = remove_folder(at->path()) && clear;
  return clear && !error;
}

Result<ScratchFolder> ScratchFolder::make(const std::filesystem::path& parent,
                                          const std::string& prefix) {
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  if (error)
    return fail(ErrorCode::Internal,
                "cannot make the folder " + parent.string() + ": " + error.message());
  // Named after its maker, so that what a killed process left is known as such (leftovers.h).
  std::string pattern = (parent / (this_process_tag() + "-" + prefix + "-XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr)
    return fail(os_error("cannot make a folder in " + parent.string(), errno));
  return ScratchFolder(pattern);
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

ScratchFolder& ScratchFolder::operator=(ScratchFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

ScratchFolder::~ScratchFolder() {
  if (path_.empty()) return;
  remove_folder(path_);  // what is left is swept at the next start; a destructor has nobody to tell
}

}  // namespace layerfarm::base
