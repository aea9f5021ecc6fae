// FolderLock: one writer at a time in an output folder, whatever process. The lock is on the folder
// itself (flock), so it leaves no file and ends with its process, kill -9 included. Held for the
// length of one read-merge-rename.
#pragma once

#include <chrono>
#include <filesystem>

#include "shared/base/result.h"

namespace layerfarm::coordinator::report {

class FolderLock {
 public:
  /// Waits at most `patience`; then Unavailable, naming the folder. Where the file system has no
  /// locks (some network file systems) it goes on without one: `held()` says so.
  static base::Result<FolderLock> take(
      const std::filesystem::path& folder,
      std::chrono::milliseconds patience = std::chrono::seconds(20));
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();
  [[nodiscard]] bool held() const { return held_; }

 private:
  FolderLock(int fd, bool held) : fd_(fd), held_(held) {}
  void release();

  int fd_ = -1;
  bool held_ = false;
};

}  // namespace layerfarm::coordinator::report
