// MachineLock: timing jobs have the machine for themselves, whatever runs and workers there are
// (design.md, section 5). Job thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>

#include "worker/process/process_runner.h"

namespace layerfarm::worker::app {

/// Two advisory file locks in a folder that all workers of the machine share. The first is a
/// turnstile: a waiting timing job holds it, so new ordinary work queues up behind it and cannot
/// starve it. The kernel drops both when the process ends.
class MachineLock {
 public:
  enum class Kind { Shared, Exclusive };
  /// `$TMPDIR` or /tmp: per machine, not per cache folder.
  [[nodiscard]] static std::filesystem::path standard_folder();
  explicit MachineLock(const std::filesystem::path& folder);
  ~MachineLock();
  MachineLock(const MachineLock&) = delete;
  MachineLock& operator=(const MachineLock&) = delete;

  /// What becomes of a wait that lasts: `tell` is called once, when `after` has passed.
  struct LongWait {
    std::function<void()> tell;
    std::chrono::milliseconds after{2000};
  };

  /// Waits for its turn; false when cancelled meanwhile. Where the files cannot be made (read-only
  /// system) there is no lock and this is true.
  [[nodiscard]] bool acquire(Kind kind, const process::CancelToken& cancel, LongWait wait);
  void release();

 private:
  class Wait;
  int turnstile_ = -1;
  int work_ = -1;
};

}  // namespace layerfarm::worker::app
