#include "worker/app/machine_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

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

/// One waiting, over both locks.
class MachineLock::Wait {
 public:
  Wait(int operation, const process::CancelToken& cancel, LongWait long_wait)
      : operation_(operation), cancel_(cancel), long_wait_(std::move(long_wait)) {}

  [[nodiscard]] bool lock(int fd) {
    while (::flock(fd, operation_ | LOCK_NB) != 0) {
      // flock cannot be polled; a short sleep that a cancellation ends is as good for waits of
      // seconds.
      pollfd item{cancel_.fd(), POLLIN, 0};
      if (::poll(&item, 1, kLookAgainMs) > 0) return false;
      if (long_wait_.tell && std::chrono::steady_clock::now() - begun_ >= long_wait_.after)
        std::exchange(long_wait_.tell, nullptr)();
    }
    return true;
  }

 private:
  int operation_;
  const process::CancelToken& cancel_;
  LongWait long_wait_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

bool MachineLock::acquire(Kind kind, const process::CancelToken& cancel, LongWait long_wait) {
  if (turnstile_ < 0 || work_ < 0) return true;
  Wait wait(kind == Kind::Exclusive ? LOCK_EX : LOCK_SH, cancel, std::move(long_wait));
  if (!wait.lock(turnstile_)) return false;
  const bool got = wait.lock(work_);
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
