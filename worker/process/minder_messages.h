// What the worker, the launcher and its minders say to one another over their socket pairs. All are
// the same program, so the form is private: a kind byte, then numbers of eight bytes and texts with
// their length. One message is one packet; a start order too large for one travels as a memory
// file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "shared/base/result.h"
#include "worker/process/descriptor.h"
#include "worker/process/process_runner.h"

namespace layerfarm::worker::process {

/// How surely a minder's processes end: in a PID namespace of its own nothing escapes and nothing
/// outlives it; as subreaper it finds and ends all that descends from it, as long as it lives
/// itself.
enum class Cage : std::uint8_t { Namespace, Subreaper };

// ---- worker -> minder ----

/// Start a child. Descriptors with it: output, errors and, for a resident, its channel.
struct StartChild {
  std::string program;
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string folder;
  std::vector<int> cores;
  Bounds bounds;
  bool resident = false;  ///< say ChildStarted at once
};
/// End the child and all it started; `why` becomes how it ended.
struct EndChild {
  Ended why = Ended::Cancelled;
};
struct AskMemory {};

// ---- minder -> worker ----

/// First word of a minder; `problem` is not empty when it could not make its cage and is about to
/// leave.
struct MinderReady {
  Cage cage = Cage::Subreaper;
  std::string problem;
};
struct ChildStarted {};
/// Nothing of the child's tree is left, unless `problem` says otherwise.
struct ChildEnded {
  Ended ended = Ended::NotStarted;
  int exit_code = 0;
  int signal = 0;
  std::int64_t wall_us = 0;
  std::int64_t cpu_us = 0;
  std::int64_t peak_memory_bytes = 0;
  std::string problem;
  bool stuck = false;  ///< something could not be ended; the minder is not to be used again
};
struct Memory {
  std::int64_t bytes = 0;
};

// ---- worker -> launcher and back ----

struct MakeMinder {};
/// With one descriptor: the worker's end of the minder's socket. None when `problem` is not empty.
struct MinderMade {
  Cage cage = Cage::Subreaper;
  std::string problem;
};

using Message = std::variant<StartChild, EndChild, AskMemory, MinderReady, ChildStarted, ChildEnded,
                             Memory, MakeMinder, MinderMade>;

[[nodiscard]] base::Bytes encode(const Message& message);
[[nodiscard]] base::Result<Message> decode(base::BytesView bytes);

struct Received {
  Message message;
  std::vector<Descriptor> descriptors;
};

/// Blocks when the peer does not read; peers here always do. Unavailable when the peer is gone.
[[nodiscard]] base::Result<void> send(int socket, const Message& message,
                                      const std::vector<int>& descriptors = {});
/// The next message, waiting up to `wait` for it: TimedOut after that, Unavailable when the peer is
/// gone.
[[nodiscard]] base::Result<Received> receive(int socket, base::Duration wait);

}  // namespace layerfarm::worker::process
