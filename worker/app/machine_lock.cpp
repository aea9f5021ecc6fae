#include "worker/app/machine_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/base/places.h"

namespace layerfarm::worker::app {
namespace {

constexpr int kLookAgainMs = 5;

int open_lock(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd >= 0)
    ::fchmod(
        fd,
        0666);  // the umask would keep other users' workers out; failing means another user made it
  return fd;
}

}  // namespace

std::filesystem::path MachineLock::standard_folder() {
  const std::string temporary = base::environment("TMPDIR");
  return temporary.empty() ? std::filesystem::path("/tmp") : std::filesystem::path(temporary);
}

MachineLock::MachineLock(const std::filesystem::path& folder)
    : turnstile_(open_lock(folder / "layerfarm-turn.lock")),
      work_(open_lock(folder / "layerfarm-work.lock")) {}

MachineLock::~MachineLock() {
  if (turnstile_ >= 0) ::close(turnstile_);
  if (work_ >= 0) ::close(work_);
}

bool MachineLock::wait_for(int fd, int operation, const process::CancelToken& cancel) {
  while (::flock(fd, operation | LOCK_NB) != 0) {
    // flock cannot be polled; a short sleep that a cancellation ends is as good for waits of
    // seconds.
    pollfd item{cancel.fd(), POLLIN, 0};
    if (::poll(&item, 1, kLookAgainMs) > 0) return false;
  }
  return true;
}

bool MachineLock::acquire(Kind kind, const process::CancelToken& cancel) {
  if (turnstile_ < 0 || work_ < 0) return true;
  const int operation = kind == Kind::Exclusive ? LOCK_EX : LOCK_SH;
  if (!wait_for(turnstile_, operation, cancel)) return false;
  const bool got = wait_for(work_, operation, cancel);
  // An exclusive holder keeps the turnstile, so that nobody else waits on the second lock
  // meanwhile.
  if (kind == Kind::Shared || !got) ::flock(turnstile_, LOCK_UN);
  return got;
}

void MachineLock::release() {
  if (work_ >= 0) ::flock(work_, LOCK_UN);
  if (turnstile_ >= 0) ::flock(turnstile_, LOCK_UN);
}

}  // namespace layerfarm::worker::app
