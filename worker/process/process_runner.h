// ProcessRunner: how a worker starts a child, bounds it, ends it and keeps what it printed.
// Called from the worker's job thread only; the loop thread may cancel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/result.h"
#include "shared/base/time.h"

namespace layerfarm::worker::process {

/// Bounds of one child and everything it starts. Zero = no bound.
struct Bounds {
  base::Duration wall{0};
  std::int64_t memory_bytes = 0;  ///< resident memory of the whole process group
  std::int64_t output_bytes = 0;  ///< standard output and error together
  std::int64_t file_bytes = 0;    ///< largest single file (RLIMIT_FSIZE)
};

struct Command {
  /// argv[0] is a name looked up in PATH (of `environment`, else the worker's), or a path; a
  /// relative path starts at `folder`. Never goes through a shell.
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>>
      environment;               ///< on top of the worker's own, as it was when the worker started
  std::filesystem::path folder;  ///< working folder
  std::vector<int> cores;        ///< CPU affinity; empty = as the worker
  Bounds bounds;
};

/// How a child ended.
enum class Ended : std::uint8_t {
  Exited,
  Signalled,
  TimedOut,
  OverMemory,
  OverOutput,
  OverFile,
  Cancelled,
  NotStarted
};

/// What was printed: the first and the last part, with a line between that says how much was
/// dropped.
struct Printed {
  std::string text;
  std::uint64_t bytes = 0;  ///< printed in all
};

struct ProcessResult {
  Ended ended = Ended::NotStarted;
  int exit_code = 0;  ///< Exited
  int signal = 0;     ///< Signalled
  Printed output;     ///< standard output
  Printed errors;     ///< standard error
  std::int64_t wall_us = 0;
  std::int64_t cpu_us = 0;  ///< user and system, of it and of all children it waited for
  /// Largest memory of the whole tree that was seen; for a child too short to be sampled, the
  /// kernel's figure for its largest process.
  std::int64_t peak_memory_bytes = 0;
  std::string problem;  ///< NotStarted: why, for people (program not found, no permission ...);
                        ///< else what else went wrong, mostly empty
  [[nodiscard]] bool ok() const { return ended == Ended::Exited && exit_code == 0; }
};

/// "SIGSEGV" for 11 and so on; "signal 77" for what has no name.
[[nodiscard]] std::string signal_name(int signal);

/// Lets the loop thread end what the job thread waits for. Thread-safe.
class CancelToken {
 public:
  CancelToken();
  ~CancelToken();
  CancelToken(const CancelToken&) = delete;
  CancelToken& operator=(const CancelToken&) = delete;
  void cancel();
  void reset();
  [[nodiscard]] bool cancelled() const;
  [[nodiscard]] int fd() const { return fd_; }  ///< readable once cancelled

 private:
  int fd_;
};

/// Answer of a resident child to one request. `ended == Exited` with `alive` means: it answered.
struct ResidentReply {
  bool answered = false;
  base::Bytes reply;
  ProcessResult end;  ///< when it did not answer: how it ended, with the tail of what it printed
};

/// A child that takes one request at a time over a channel of its own (descriptor 3, both ways): 4
/// bytes little endian length, then that many bytes. Its standard output and error are kept (head
/// and tail) and never mixed into the channel.
class Resident {
 public:
  virtual ~Resident() = default;
  /// One request, one reply, or the end of the child. After a call that was not answered the child
  /// is gone, with everything it started.
  virtual ResidentReply call(base::BytesView request, base::Duration deadline,
                             const CancelToken& cancel) = 0;
  [[nodiscard]] virtual bool alive() const = 0;
  [[nodiscard]] virtual std::int64_t memory_bytes() const = 0;  ///< resident memory now
  /// What it printed since the last take, bounded.
  [[nodiscard]] virtual std::string take_printed() = 0;
};

class ProcessRunner {
 public:
  virtual ~ProcessRunner() = default;
  /// Runs to the end. Everything the child started is gone when this returns.
  virtual ProcessResult run(const Command& command, const CancelToken& cancel) = 0;
  /// Starts a resident child; `bounds.wall` is ignored (each call has its deadline). The child is
  /// ended when the object goes.
  virtual base::Result<std::unique_ptr<Resident>> start(const Command& command) = 0;
};

}  // namespace layerfarm::worker::process
