// Children of a bare loop: what any program pays that starts `true` with the pipes, session, limits
// and scratch folder that a tool step gets, in so many slots at once. The peer of the benches of
// process cases.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "shared/base/files.h"

extern char** environ;

namespace layerfarm::bench {

inline constexpr std::int64_t kFileBytes = std::int64_t{1} << 30;
inline constexpr std::int64_t kMemoryBytes = std::int64_t{1} << 30;

inline std::filesystem::path scratch_parent() {
  return std::filesystem::temp_directory_path() / "layerfarm-bench";
}

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "bench: %s\n", what);
  std::_Exit(1);
}

/// Reads both ends until they hang up, as any caller who wants the output must.
inline void read_to_end(int out, int err) {
  pollfd entries[] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  char buffer[65536];
  while (entries[0].fd >= 0 || entries[1].fd >= 0) {
    if (::poll(entries, 2, -1) < 0) continue;
    for (pollfd& entry : entries) {
      if (entry.fd >= 0 && entry.revents != 0 && ::read(entry.fd, buffer, sizeof buffer) == 0)
        entry.fd = -1;
    }
  }
}

inline void bare_child() {
  auto scratch = base::ScratchFolder::make(scratch_parent(), "bare");
  if (!scratch) fail("no scratch folder");
  int out[2];
  int err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) fail("no pipe");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  ::posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  ::posix_spawn_file_actions_addchdir_np(&actions, scratch->path().c_str());
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  char name[] = "/bin/true";
  char* argv[] = {name, nullptr};
  pid_t pid = -1;
  if (::posix_spawn(&pid, name, &actions, &attributes, argv, environ) != 0) fail("cannot spawn");
  // posix_spawn cannot set limits, so they come right after it.
  const rlimit file{kFileBytes, kFileBytes};
  const rlimit data{2 * kMemoryBytes, 2 * kMemoryBytes};
  const rlimit core{0, 0};
  ::prlimit(pid, RLIMIT_FSIZE, &file, nullptr);
  ::prlimit(pid, RLIMIT_DATA, &data, nullptr);
  ::prlimit(pid, RLIMIT_CORE, &core, nullptr);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  ::close(out[1]);
  ::close(err[1]);
  read_to_end(out[0], err[0]);
  int status = 0;
  rusage usage{};
  ::wait4(pid, &status, 0, &usage);
  ::close(out[0]);
  ::close(err[0]);
}

/// Wall seconds of `slots` processes that each get ready (`ready()` gives what is to be done), wait
/// for the go, and do it.
template <typename Ready>
double seconds_of_slots(int slots, const Ready& ready_up) {
  int ready[2];
  int go[2];
  if (::pipe(ready) != 0 || ::pipe(go) != 0) fail("no pipe");
  std::vector<pid_t> pids;
  for (int slot = 0; slot < slots; ++slot) {
    const pid_t pid = ::fork();
    if (pid > 0) {
      pids.push_back(pid);
      continue;
    }
    ::close(go[1]);
    {
      auto work = ready_up();
      [[maybe_unused]] ssize_t n = ::write(ready[1], "r", 1);
      char byte = 0;
      n = ::read(go[0], &byte, 1);
      work();
      n = ::write(ready[1], "d", 1);
    }
    std::_Exit(0);
  }
  ::close(go[0]);
  char byte = 0;
  for (int slot = 0; slot < slots; ++slot) {
    if (::read(ready[0], &byte, 1) != 1) fail("a slot is gone");
  }
  const auto start = std::chrono::steady_clock::now();
  ::close(go[1]);
  for (int slot = 0; slot < slots; ++slot) {
    if (::read(ready[0], &byte, 1) != 1) fail("a slot is gone");
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const pid_t pid : pids) ::waitpid(pid, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  return seconds;
}

/// The bare loop: seconds of `slots` processes with so many children each.
inline double seconds_of_bare_children(int slots, int children) {
  return seconds_of_slots(slots, [children] {
    return [children] {
      for (int i = 0; i < children; ++i) bare_child();
    };
  });
}

}  // namespace layerfarm::bench
