#include "worker/process/minder.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "worker/process/process_tree.h"
#include "worker/process/spawn.h"

extern char** environ;

namespace layerfarm::worker::process {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// How often memory is looked at, and how often when it is past half of its bound.
constexpr milliseconds kSampleEvery{25};
constexpr milliseconds kSampleEveryNearBound{5};
/// A killed process that is still there after this hangs in the kernel (a dead device, a dead file
/// server).
constexpr std::chrono::seconds kGiveUpEnding{20};
constexpr milliseconds kKillAgainAfter{5};

std::int64_t microseconds(const timeval& time) {
  return std::int64_t{time.tv_sec} * 1'000'000 + time.tv_usec;
}

/// Sampling comes too late for a child that takes gigabytes between two looks; this stops one
/// process of it. Reserved memory counts here too, so it must be far above the bound proper.
std::int64_t data_backstop(std::int64_t memory_bytes) {
  return memory_bytes > 0 ? 2 * memory_bytes + (std::int64_t{1} << 30) : 0;
}

/// Makes a /proc that shows this namespace; programs that look up their own pid there would find
/// somebody else in the old one.
std::string mount_own_proc() {
  if (::unshare(CLONE_NEWNS) != 0)
    return std::string("cannot make a mount namespace: ") + std::strerror(errno);
  // Slave: what the machine mounts later is still seen here, what is mounted here is seen nowhere
  // else.
  if (::mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
    return std::string("cannot detach the mounts: ") + std::strerror(errno);
  }
  if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    return std::string("cannot mount /proc: ") + std::strerror(errno);
  }
  return {};
}

/// When the machine runs out of memory, a tool shall go before its worker does. Inherited by all
/// children.
void offer_to_the_oom_killer() {
  const Descriptor file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (!file.open()) return;
  static constexpr std::string_view kScore = "300";
  [[maybe_unused]] const ssize_t written = ::write(file.get(), kScore.data(), kScore.size());
}

/// Whether a child that failed by itself did so for want of memory: it grew and fell between two
/// looks, or met the backstop. The peak counts mapped files too, so a tool that says no with an
/// exit code must be far beyond its bound.
bool outgrew_between_samples(const ChildEnded& report, std::int64_t bound) {
  if (bound <= 0) return false;
  if (report.ended == Ended::Signalled) return report.peak_memory_bytes > bound;
  return report.exit_code != 0 && report.peak_memory_bytes / 2 > bound;
}

/// The child in hand.
struct Running {
  pid_t pid = -1;
  Bounds bounds;
  Clock::time_point started;
  Clock::time_point next_sample;
  std::optional<Ended> why;   ///< ended by us, for this reason
  std::optional<int> status;  ///< as wait gave it, once the child itself ended
  rusage usage{};
  Clock::time_point ended;
  std::int64_t peak = 0;
};

class Minder {
 public:
  Minder(Descriptor worker, Descriptor lifeline, Descriptor children, Cage cage)
      : worker_(std::move(worker)),
        lifeline_(std::move(lifeline)),
        children_(std::move(children)),
        cage_(cage) {}

  /// Until the worker or the launcher is gone.
  void serve();

 private:
  void on_message(Received received);
  void start(const StartChild& order, const std::vector<Descriptor>& descriptors);
  void end(Ended why);
  void reap();
  /// Kills and reaps until nothing is left below this process. False when something does not go.
  bool empty_the_tree();
  void kill_tree();
  void finish();
  void sample();
  [[nodiscard]] std::int64_t held_now();
  [[nodiscard]] int milliseconds_to_wait() const;
  [[nodiscard]] std::vector<pid_t> tree() const {
    return cage_ == Cage::Namespace ? all_processes() : descendants(::getpid());
  }
  void tell(const Message& message) {
    // A worker that is gone shows as hang-up in the next turn.
    [[maybe_unused]] const auto sent = send(worker_.get(), message);
  }

  Descriptor worker_;
  Descriptor lifeline_;
  Descriptor children_;
  Cage cage_;
  std::optional<Running> running_;
  bool no_children_ = true;  // wait said so last time
};

std::vector<std::string> merged_environment(
    const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> out;
  std::unordered_set<std::string_view> changed;
  for (const auto& [name, value] : changes) {
    changed.insert(name);
    out.push_back(name + "=" + value);
  }
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view entry(*at);
    if (!changed.contains(entry.substr(0, entry.find('=')))) out.emplace_back(entry);
  }
  return out;
}

void Minder::serve() {
  while (true) {
    pollfd entries[] = {
        {worker_.get(), POLLIN, 0}, {children_.get(), POLLIN, 0}, {lifeline_.get(), POLLIN, 0}};
    const int ready = ::poll(entries, 3, milliseconds_to_wait());
    if (ready < 0 && errno != EINTR) return;
    if (ready > 0 && (entries[2].revents != 0 || (entries[0].revents & (POLLHUP | POLLERR)) != 0))
      break;
    if (ready > 0 && entries[1].revents != 0) {
      signalfd_siginfo ignored;
      [[maybe_unused]] const ssize_t got = ::read(children_.get(), &ignored, sizeof ignored);
      reap();
      if (running_ && running_->status) finish();
    }
    if (ready > 0 && (entries[0].revents & POLLIN) != 0) {
      auto received = receive(worker_.get(), base::Duration{0});
      if (received) {
        on_message(std::move(*received));
      } else if (received.error().code == base::ErrorCode::Unavailable) {
        break;
      }
    }
    if (!running_) continue;
    const auto now = Clock::now();
    if (running_->bounds.wall.count() > 0 && now >= running_->started + running_->bounds.wall) {
      end(Ended::TimedOut);
    } else if (now >= running_->next_sample) {
      sample();
    }
  }
  if (!no_children_) empty_the_tree();
}

void Minder::on_message(Received received) {
  if (const auto* order = std::get_if<StartChild>(&received.message)) {
    start(*order, received.descriptors);
  } else if (const auto* order_to_end = std::get_if<EndChild>(&received.message)) {
    if (running_) end(order_to_end->why);  // else it ended by itself, and its report is on the way
  } else if (std::holds_alternative<AskMemory>(received.message)) {
    tell(Memory{running_ ? held_now() : 0});
  }
}

void Minder::start(const StartChild& order, const std::vector<Descriptor>& descriptors) {
  ChildEnded refusal;
  if (running_ || descriptors.size() < (order.resident ? 3U : 2U)) {
    refusal.problem =
        "cannot start " + order.program + ": the launcher got an order that it cannot follow";
    return tell(refusal);
  }
  const SpawnRequest request{.program = order.program,
                             .argv = order.argv,
                             .environment = merged_environment(order.environment),
                             .folder = order.folder,
                             .cores = order.cores,
                             .file_bytes = order.bounds.file_bytes,
                             .data_bytes = data_backstop(order.bounds.memory_bytes),
                             .output = descriptors[0].get(),
                             .errors = descriptors[1].get(),
                             .channel = order.resident ? descriptors[2].get() : -1};
  Running child;
  child.started = Clock::now();
  const SpawnResult spawned = spawn(request);
  if (spawned.pid < 0) {
    refusal.problem = spawned.problem;
    return tell(refusal);
  }
  child.pid = spawned.pid;
  child.bounds = order.bounds;
  child.next_sample = child.started + kSampleEvery;
  running_ = child;
  no_children_ = false;
  if (order.resident) tell(ChildStarted{});
}

int Minder::milliseconds_to_wait() const {
  if (!running_) return -1;
  auto next = running_->next_sample;
  if (running_->bounds.wall.count() > 0) {
    next = std::min(next, std::chrono::time_point_cast<Clock::duration>(running_->started +
                                                                        running_->bounds.wall));
  }
  return static_cast<int>(
      std::max<std::int64_t>(0, std::chrono::ceil<milliseconds>(next - Clock::now()).count()));
}

void Minder::reap() {
  while (true) {
    // In a subreaper's cage the child is looked at before it is reaped: as long as it is a zombie,
    // its group's number belongs to it alone.
    if (cage_ == Cage::Subreaper && running_ && !running_->status) {
      siginfo_t info{};
      if (::waitid(P_PID, static_cast<id_t>(running_->pid), &info, WEXITED | WNOHANG | WNOWAIT) ==
              0 &&
          info.si_pid == running_->pid) {
        ::kill(-running_->pid, SIGKILL);
      }
    }
    int status = 0;
    rusage usage{};
    const pid_t pid = ::wait4(-1, &status, WNOHANG | __WALL, &usage);
    if (pid < 0 && errno == EINTR) continue;
    no_children_ = pid < 0 && errno == ECHILD;
    if (pid <= 0) return;
    if (running_ && pid == running_->pid) {
      running_->status = status;
      running_->usage = usage;
      running_->ended = Clock::now();
    }
  }
}

void Minder::kill_tree() {
  if (cage_ == Cage::Namespace) {
    ::kill(-1, SIGKILL);  // all of the namespace but its init, which is this process; nothing can
                          // fork its way out of it
    return;
  }
  // The group first: that is one step, which a fork cannot slip through. Then whoever made a
  // session or group of its own.
  if (running_ && !running_->status) ::kill(-running_->pid, SIGKILL);
  for (const pid_t pid : descendants(::getpid())) kill_descendant(::getpid(), pid);
}

bool Minder::empty_the_tree() {
  const auto until = Clock::now() + kGiveUpEnding;
  reap();
  while (!no_children_) {
    kill_tree();
    reap();
    if (no_children_) break;
    if (Clock::now() >= until) return false;
    pollfd entry{children_.get(), POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>(kKillAgainAfter.count())) == 1) {
      signalfd_siginfo ignored;
      [[maybe_unused]] const ssize_t got = ::read(children_.get(), &ignored, sizeof ignored);
    }
    reap();
  }
  return true;
}

void Minder::end(Ended why) {
  running_->why = why;
  finish();
}

/// The child ended, or is to end now: leaves nothing of its tree, then reports.
void Minder::finish() {
  const bool empty = no_children_ || empty_the_tree();
  const Running& child = *running_;
  ChildEnded report;
  report.peak_memory_bytes = std::max(child.peak, std::int64_t{child.usage.ru_maxrss} * 1024);
  report.cpu_us = microseconds(child.usage.ru_utime) + microseconds(child.usage.ru_stime);
  const auto ended = child.status ? child.ended : Clock::now();
  report.wall_us =
      std::chrono::duration_cast<std::chrono::microseconds>(ended - child.started).count();
  const int status = child.status.value_or(SIGKILL);
  if (WIFEXITED(status)) {
    report.ended = Ended::Exited;
    report.exit_code = WEXITSTATUS(status);
  } else {
    report.ended = Ended::Signalled;
    report.signal = WTERMSIG(status);
  }
  if (report.ended == Ended::Signalled && report.signal == SIGXFSZ) report.ended = Ended::OverFile;
  if (child.why) report.ended = *child.why;
  if (!child.why && outgrew_between_samples(report, child.bounds.memory_bytes))
    report.ended = Ended::OverMemory;
  if (!empty) {
    report.stuck = true;
    report.problem =
        "a process that was killed " + std::to_string(kGiveUpEnding.count()) +
        " s ago is still there; it hangs in the kernel, most likely in a device or a file server";
  }
  running_.reset();
  tell(report);
}

std::int64_t Minder::held_now() {
  const std::vector<pid_t> pids = tree();
  std::int64_t sum = 0;
  for (const pid_t pid : pids) sum += held_bytes(pid);
  const std::int64_t bound = running_->bounds.memory_bytes;
  // Forks share pages, and the sum counts those more than once: only the exact figure may end a
  // child.
  if (bound > 0 && sum > bound && pids.size() > 1) {
    sum = 0;
    for (const pid_t pid : pids) sum += proportional_bytes(pid);
  }
  running_->peak = std::max(running_->peak, sum);
  return sum;
}

void Minder::sample() {
  const std::int64_t bound = running_->bounds.memory_bytes;
  const std::int64_t now_held = held_now();
  if (bound > 0 && now_held > bound) return end(Ended::OverMemory);
  running_->next_sample =
      Clock::now() + (bound > 0 && now_held > bound / 2 ? kSampleEveryNearBound : kSampleEvery);
}

}  // namespace

void minder_main(Descriptor worker, Descriptor lifeline, Cage cage) {
  ::prctl(PR_SET_NAME, "layerfarm-minde");
  std::string problem;
  if (cage == Cage::Namespace) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // its end is the end of all in the namespace
    problem = mount_own_proc();
  } else if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    problem = std::string("cannot become a subreaper: ") + std::strerror(errno);
  }
  offer_to_the_oom_killer();
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGCHLD);
  Descriptor children(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!children.open() && problem.empty())
    problem = std::string("cannot watch children: ") + std::strerror(errno);
  const auto sent = send(worker.get(), MinderReady{cage, problem});
  if (!problem.empty() || !sent) ::_exit(1);
  Minder(std::move(worker), std::move(lifeline), std::move(children), cage).serve();
  ::_exit(0);
}

}  // namespace layerfarm::worker::process
