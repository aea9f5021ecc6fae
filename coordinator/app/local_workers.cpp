#include "coordinator/app/local_workers.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

extern char** environ;

namespace layerfarm::coordinator::app {
using base::fail;
using base::Result;

namespace {

int open_pidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

std::string describe(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    return name != nullptr ? std::string("SIG") + name
                           : "signal " + std::to_string(WTERMSIG(status));
  }
  return "exit code " + std::to_string(WEXITSTATUS(status));
}

std::string join(const std::vector<int>& numbers) {
  std::string out;
  for (const int n : numbers) out += (out.empty() ? "" : ",") + std::to_string(n);
  return out;
}

}  // namespace

LocalWorkers::LocalWorkers(Settings settings)
    : settings_(std::move(settings)), slots_(settings_.cores.size()) {}

LocalWorkers::~LocalWorkers() { end_all(std::chrono::milliseconds(0)); }

Result<void> LocalWorkers::start(std::size_t slot) {
  std::vector<std::string> arguments = {
      settings_.program.string(),  "--name",   "w" + std::to_string(slot), "--cores",
      join(settings_.cores[slot]), "--parent", std::to_string(::getpid())};
  arguments.insert(arguments.end(), settings_.arguments.begin(), settings_.arguments.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  // The loop blocks signals for its signalfd; a worker starts with none blocked.
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  // A group of its own: Ctrl-C reaches the coordinator alone, which then ends the workers in order.
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  // Standard output belongs to results; whatever a worker says goes to standard error.
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return fail(
        base::Error{base::ErrorCode::Unavailable,
                    "cannot start " + settings_.program.string() + ": " + std::strerror(error)});
  }
  slots_[slot] = {pid, open_pidfd(pid)};
  return {};
}

std::vector<int> LocalWorkers::descriptors() const {
  std::vector<int> out;
  for (const Slot& slot : slots_) {
    if (slot.pid != 0 && slot.pidfd >= 0) out.push_back(slot.pidfd);
  }
  return out;
}

std::vector<WorkerExit> LocalWorkers::reap() {
  std::vector<WorkerExit> out;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.pid == 0) continue;
    int status = 0;
    if (::waitpid(slot.pid, &status, WNOHANG) != slot.pid) continue;
    if (slot.pidfd >= 0) ::close(slot.pidfd);
    out.push_back({i, slot.pid, describe(status)});
    slot = {};
  }
  return out;
}

std::size_t LocalWorkers::running() const {
  std::size_t n = 0;
  for (const Slot& slot : slots_) n += slot.pid != 0 ? 1 : 0;
  return n;
}

void LocalWorkers::end_all(std::chrono::milliseconds patience) {
  const auto wait_until = [this](std::chrono::steady_clock::time_point deadline) {
    while (true) {
      [[maybe_unused]] const auto ended = reap();
      if (running() == 0) return true;
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      std::vector<pollfd> items;
      for (const int fd : descriptors()) items.push_back({fd, POLLIN, 0});
      ::poll(items.data(), items.size(), static_cast<int>(std::min<long>(left.count(), 200)));
    }
  };
  if (running() == 0) return;
  if (patience.count() > 0) {
    for (const Slot& slot : slots_) {
      if (slot.pid != 0) ::kill(slot.pid, SIGTERM);
    }
    if (wait_until(std::chrono::steady_clock::now() + patience)) return;
  }
  for (const Slot& slot : slots_) {
    if (slot.pid != 0) ::kill(slot.pid, SIGKILL);
  }
  wait_until(std::chrono::steady_clock::now() + std::chrono::seconds(5));
}

std::vector<int> usable_cores() {
  std::vector<int> out;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) out.push_back(core);
    }
  }
  if (out.empty()) out.push_back(0);
  return out;
}

std::vector<std::vector<int>> share_cores(std::size_t workers) {
  const std::vector<int> cores = usable_cores();
  std::vector<std::vector<int>> out(workers);
  if (workers >= cores.size()) {
    for (std::size_t i = 0; i < workers; ++i) out[i] = {cores[i % cores.size()]};
    return out;
  }
  for (std::size_t i = 0; i < cores.size(); ++i) out[i % workers].push_back(cores[i]);
  return out;
}

}  // namespace layerfarm::coordinator::app
