#include "coordinator/report/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

namespace layerfarm::coordinator::report {

base::Result<FolderLock> FolderLock::take(const std::filesystem::path& folder,
                                          std::chrono::milliseconds patience) {
  const std::filesystem::path place = folder.empty() ? "." : folder;
  const int fd = ::open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return base::fail(base::os_error("cannot open the folder " + place.string(), errno));
  const auto until = std::chrono::steady_clock::now() + patience;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return FolderLock(fd, /*held=*/false);
    if (std::chrono::steady_clock::now() >= until) {
      ::close(fd);
      return base::fail(base::ErrorCode::Unavailable,
                        "the folder " + place.string() +
                            " is locked by another layerfarm process that does not finish; end it, "
                            "or choose another --output-dir");
    }
    // There is no waiting for a lock with a time limit; holders are done within a write's time.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return FolderLock(fd, /*held=*/true);
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), held_(std::exchange(other.held_, false)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  if (this != &other) {
    release();
    fd_ = std::exchange(other.fd_, -1);
    held_ = std::exchange(other.held_, false);
  }
  return *this;
}

FolderLock::~FolderLock() { release(); }

void FolderLock::release() {
  if (fd_ < 0) return;
  // Explicitly: a child that is being started may hold the same open file for a moment.
  if (held_) ::flock(fd_, LOCK_UN);
  ::close(fd_);
  fd_ = -1;
}

}  // namespace layerfarm::coordinator::report
