// What a bounded child costs: PosixProcessRunner against a bare loop that gives each child the same
// pipes, session, limits and scratch folder. The tool is `true`. Prints a JSON line per number of
// slots; the ratio is ours / bare, 0.85 is wanted.
//
// Usage: bench_process_children [CHILDREN_PER_SLOT [SLOTS...]]
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "shared/base/files.h"
#include "worker/process/launcher.h"
#include "worker/process/posix_process_runner.h"

extern char** environ;

namespace {

using namespace layerfarm;
using Clock = std::chrono::steady_clock;
constexpr int kRounds = 7;
constexpr std::int64_t kFileBytes = std::int64_t{1} << 30;
constexpr std::int64_t kMemoryBytes = std::int64_t{1} << 30;

std::filesystem::path scratch_parent() {
  return std::filesystem::temp_directory_path() / "layerfarm-bench";
}

void fail(const char* what) {
  std::fprintf(stderr, "bench_process_children: %s\n", what);
  std::_Exit(1);
}

/// Reads both ends until they hang up, as any caller who wants the output must.
void read_to_end(int out, int err) {
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

void bare_child() {
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

void our_child(worker::process::PosixProcessRunner& runner,
               const worker::process::CancelToken& cancel) {
  auto scratch = base::ScratchFolder::make(scratch_parent(), "ours");
  if (!scratch) fail("no scratch folder");
  worker::process::Command command;
  command.argv = {"/bin/true"};
  command.folder = scratch->path();
  command.bounds = {.wall = std::chrono::seconds(60),
                    .memory_bytes = kMemoryBytes,
                    .output_bytes = 1 << 24,
                    .file_bytes = kFileBytes};
  if (!runner.run(command, cancel).ok()) fail("a child failed");
}

double cpu_seconds_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Measured {
  double per_second = 0;
  double cpu_us = 0;
};

/// Each slot is a process that gets ready, waits for the go, and works through its children.
Measured measure(bool ours, int slots, int children) {
  const double cpu_before = cpu_seconds_of_children();
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
    std::unique_ptr<worker::process::Launcher> launcher;
    if (ours) {
      auto started = worker::process::Launcher::start();
      if (!started) fail("no launcher");
      launcher = std::move(*started);
    }
    const worker::process::CancelToken cancel;
    [[maybe_unused]] ssize_t n = ::write(ready[1], "r", 1);
    char byte = 0;
    n = ::read(go[0], &byte, 1);
    if (ours) {
      worker::process::PosixProcessRunner runner(*launcher);
      for (int i = 0; i < children; ++i) our_child(runner, cancel);
    } else {
      for (int i = 0; i < children; ++i) bare_child();
    }
    n = ::write(ready[1], "d", 1);
    launcher.reset();
    std::_Exit(0);
  }
  ::close(go[0]);
  char byte = 0;
  for (int slot = 0; slot < slots; ++slot) {
    if (::read(ready[0], &byte, 1) != 1) fail("a slot is gone");
  }
  const auto start = Clock::now();
  ::close(go[1]);
  for (int slot = 0; slot < slots; ++slot) {
    if (::read(ready[0], &byte, 1) != 1) fail("a slot is gone");
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  for (const pid_t pid : pids) ::waitpid(pid, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  return {slots * children / seconds,
          (cpu_seconds_of_children() - cpu_before) * 1e6 / (slots * children)};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int children = argc > 1 ? std::atoi(argv[1]) : 500;
  std::vector<int> slots;
  for (int i = 2; i < argc; ++i) slots.push_back(std::atoi(argv[i]));
  if (slots.empty()) slots = {1, 2};
  for (const int count : slots) {
    // In turns, so that a busy moment of the machine meets both.
    std::vector<Measured> ours;
    std::vector<Measured> bare;
    for (int round = 0; round < kRounds; ++round) {
      bare.push_back(measure(/*ours=*/false, count, children));
      ours.push_back(measure(/*ours=*/true, count, children));
    }
    const auto line = [&](const char* what, const char* unit, double Measured::* field,
                          bool more_is_better) {
      std::vector<double> our_values;
      std::vector<double> bare_values;
      std::vector<double> ratios;
      for (int round = 0; round < kRounds; ++round) {
        our_values.push_back(ours[round].*field);
        bare_values.push_back(bare[round].*field);
        ratios.push_back(more_is_better ? our_values.back() / bare_values.back()
                                        : bare_values.back() / our_values.back());
      }
      std::printf(
          "{\"name\":\"%s, %d slot%s\",\"value\":%.0f,\"unit\":\"%s\",\"peer\":\"posix_spawn loop "
          "with the same pipes, session, limits and scratch "
          "folder\",\"peer_value\":%.0f,\"ratio\":%.3f}\n",
          what, count, count == 1 ? "" : "s", median(our_values), unit, median(bare_values),
          median(ratios));
    };
    line("process children", "children/s", &Measured::per_second, true);
    line("processor time of a child", "us", &Measured::cpu_us, false);
    std::fflush(stdout);
  }
  std::error_code ignored;
  std::filesystem::remove_all(scratch_parent(), ignored);
  return 0;
}
