// spawn: one child by vfork and exec, with all that must be set between the two. Called by a minder
// (minder.h), which is small and has one thread; the worker itself never forks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace layerfarm::worker::process {

struct SpawnRequest {
  std::string program;  ///< path of what is executed
  std::vector<std::string> argv;
  std::vector<std::string> environment;  ///< "NAME=value", in full
  std::string folder;                    ///< working folder; empty = the caller's
  std::vector<int> cores;                ///< empty = the caller's
  std::int64_t file_bytes = 0;           ///< RLIMIT_FSIZE; 0 = the caller's
  std::int64_t data_bytes = 0;           ///< RLIMIT_DATA; 0 = the caller's
  int output = -1;                       ///< becomes descriptor 1
  int errors = -1;                       ///< becomes descriptor 2
  int channel = -1;                      ///< becomes descriptor 3, unless -1
};

struct SpawnResult {
  pid_t pid = -1;       ///< -1: not started
  std::string problem;  ///< why not, for people
};

/// The child leads a session of its own, dies with the calling thread, dumps no core, blocks and
/// ignores no signal, and has no other descriptor than 0 (the caller's), 1, 2 and 3. The caller's
/// descriptors 0 to 3 must be taken by something harmless, and its signals be blocked.
[[nodiscard]] SpawnResult spawn(const SpawnRequest& request);

}  // namespace layerfarm::worker::process
