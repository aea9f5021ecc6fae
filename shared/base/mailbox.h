// Mailbox<T>: how results of another thread reach a loop. The way values cross threads.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace layerfarm::base {

/// Any thread puts; the owning loop polls `fd()` for reading and takes everything at once.
template <typename T>
class Mailbox {
 public:
  Mailbox() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Mailbox() {
    if (fd_ >= 0) ::close(fd_);
  }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// Without waking the owner: the next `put` or `wake` serves this one too.
  void put_quietly(T value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
  }

  void put(T value) {
    put_quietly(std::move(value));
    wake();
  }

  void wake() {
    const std::uint64_t one = 1;
    // A full counter still wakes the reader, so a failed write loses nothing.
    [[maybe_unused]] const ssize_t written = ::write(fd_, &one, sizeof one);
  }

  /// Everything that arrived, in order of arrival. Empty when nothing did.
  [[nodiscard]] std::vector<T> take() {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(fd_, &count, sizeof count);
    const std::lock_guard lock(mutex_);
    return std::exchange(values_, {});
  }

  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
  std::mutex mutex_;
  std::vector<T> values_;  // guarded by mutex_
};

}  // namespace layerfarm::base
