// LocalWorkers: the worker processes that a local run starts, watches and ends. Loop thread only.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "shared/base/result.h"

namespace layerfarm::coordinator::app {

/// How a worker process of ours ended.
struct WorkerExit {
  std::size_t slot = 0;
  pid_t pid = 0;
  std::string how;  ///< "exit code 1", "SIGKILL"; for people
};

class LocalWorkers {
 public:
  struct Settings {
    std::filesystem::path program;        ///< layerfarm-worker
    std::vector<std::vector<int>> cores;  ///< one entry per slot: its core set
    std::vector<std::string> arguments;   ///< the same for all
  };
  explicit LocalWorkers(Settings settings);
  /// Ends whatever still runs.
  ~LocalWorkers();
  LocalWorkers(const LocalWorkers&) = delete;
  LocalWorkers& operator=(const LocalWorkers&) = delete;

  [[nodiscard]] std::size_t slots() const { return slots_.size(); }
  /// Starts the worker of a slot (named "w<slot>"). Unavailable when the program cannot be started.
  [[nodiscard]] base::Result<void> start(std::size_t slot);
  /// One descriptor per running worker, readable when it ended.
  [[nodiscard]] std::vector<int> descriptors() const;
  /// Those that ended since the last call.
  [[nodiscard]] std::vector<WorkerExit> reap();
  [[nodiscard]] std::size_t running() const;
  [[nodiscard]] pid_t pid(std::size_t slot) const { return slots_[slot].pid; }
  /// SIGTERM, a bounded wait, SIGKILL. A worker takes its children with it either way.
  void end_all(std::chrono::milliseconds patience);

 private:
  struct Slot {
    pid_t pid = 0;  ///< 0 = not running
    int pidfd = -1;
  };
  Settings settings_;
  std::vector<Slot> slots_;
};

/// `workers` core sets over the cores this process may use: each its own while they last, then
/// shared in turn.
[[nodiscard]] std::vector<std::vector<int>> share_cores(std::size_t workers);
/// Cores this process may run on.
[[nodiscard]] std::vector<int> usable_cores();

}  // namespace layerfarm::coordinator::app
