#include "worker/process/launcher.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "worker/process/minder.h"
#include "worker/process/process_tree.h"

namespace layerfarm::worker::process {
namespace {

using namespace std::chrono_literals;

/// A fresh minder answers within milliseconds; this is for a machine on its knees.
constexpr base::Duration kMinderMustAnswer = 20s;
constexpr base::Duration kLauncherMustAnswer = 30s;
/// Longer than a minder tries to end what it has.
constexpr base::Duration kLauncherMustEnd = 30s;

std::string reason(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

/// Descriptors 0 to 3 become /dev/null, all others but `keep` are closed; returns the new number of
/// `keep`. So nothing of the worker's (its output, its sockets) is held open from here, and a
/// child's 1, 2 and 3 can be set without treading on one in use.
int leave_descriptors(int keep) {
  const int kept = ::fcntl(keep, F_DUPFD_CLOEXEC, 64);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (kept < 0 || null < 0) ::_exit(1);
  for (int fd = 0; fd <= 3; ++fd) {
    if (::dup2(null, fd) < 0) ::_exit(1);
  }
  ::syscall(SYS_close_range, 4U, static_cast<unsigned>(kept) - 1, 0U);
  ::syscall(SYS_close_range, static_cast<unsigned>(kept) + 1, ~0U, 0U);
  return kept;
}

/// Blocks all signals and takes back every disposition that was inherited. Ctrl-C is the worker's
/// business: it ends us by hanging up.
void forget_signals() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  struct sigaction usual{};
  usual.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &usual, nullptr);
}

/// The launcher's own process.
class LauncherProcess {
 public:
  LauncherProcess(Descriptor worker, bool may_cage)
      : worker_(std::move(worker)), may_cage_(may_cage) {}
  [[noreturn]] void serve();

 private:
  void make_minder();
  /// One attempt; the worker's end of its socket, or the problem.
  base::Result<Descriptor> fork_minder(Cage cage);
  void reap();
  void leave();

  Descriptor worker_;
  bool may_cage_;
  Descriptor lifeline_read_;
  Descriptor lifeline_write_;  // held open by this process alone
  Descriptor own_namespace_;
  Descriptor children_;
  std::set<pid_t> minders_;
};

void LauncherProcess::serve() {
  ::prctl(PR_SET_NAME, "layerfarm-launc");
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER,
          1);  // a minder that dies by itself leaves its children here, where they are ended
  int lifeline[2] = {-1, -1};
  if (::pipe2(lifeline, O_CLOEXEC) != 0) ::_exit(1);
  lifeline_read_ = Descriptor(lifeline[0]);
  lifeline_write_ = Descriptor(lifeline[1]);
  own_namespace_ = Descriptor(::open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC));
  if (!own_namespace_.open()) may_cage_ = false;
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGCHLD);
  children_ = Descriptor(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!children_.open()) ::_exit(1);
  while (true) {
    pollfd entries[] = {{worker_.get(), POLLIN, 0}, {children_.get(), POLLIN, 0}};
    if (::poll(entries, 2, -1) < 0) continue;
    if (entries[1].revents != 0) reap();
    if (entries[0].revents == 0) continue;
    const auto received = receive(worker_.get(), base::Duration{0});
    if (received && std::holds_alternative<MakeMinder>(received->message)) {
      make_minder();
    } else if (!received && received.error().code != base::ErrorCode::TimedOut) {
      leave();
    }
  }
}

base::Result<Descriptor> LauncherProcess::fork_minder(Cage cage) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::fail(base::ErrorCode::Internal, reason("cannot make a socket pair"));
  }
  Descriptor for_worker(ends[0]);
  Descriptor for_minder(ends[1]);
  if (cage == Cage::Namespace && ::unshare(CLONE_NEWPID) != 0) {
    return base::fail(base::ErrorCode::Unavailable, reason("cannot make a PID namespace"));
  }
  const pid_t pid = ::fork();
  if (pid == 0) {
    lifeline_write_.close();
    worker_.close();
    children_.close();
    own_namespace_.close();
    for_worker.close();
    minder_main(std::move(for_minder), std::move(lifeline_read_), cage);
  }
  const int fork_error = errno;
  // Only the next fork was to be born in the new namespace.
  if (cage == Cage::Namespace && ::setns(own_namespace_.get(), CLONE_NEWPID) != 0)
    may_cage_ = false;
  if (pid < 0) {
    errno = fork_error;
    return base::fail(base::ErrorCode::Internal, reason("cannot fork"));
  }
  minders_.insert(pid);
  for_minder.close();
  auto ready = receive(for_worker.get(), kMinderMustAnswer);
  if (!ready) return base::fail(std::move(ready.error()));
  const auto* said = std::get_if<MinderReady>(&ready->message);
  if (said == nullptr || !said->problem.empty()) {
    return base::fail(base::ErrorCode::Unavailable,
                      said == nullptr ? "a new process said something else" : said->problem);
  }
  return for_worker;
}

void LauncherProcess::make_minder() {
  MinderMade answer;
  base::Result<Descriptor> link = base::fail(base::ErrorCode::Unavailable, "");
  if (may_cage_) {
    answer.cage = Cage::Namespace;
    link = fork_minder(Cage::Namespace);
    if (!link) may_cage_ = false;
  }
  if (!link) {
    answer.cage = Cage::Subreaper;
    link = fork_minder(Cage::Subreaper);
  }
  std::vector<int> descriptors;
  if (link) {
    descriptors.push_back(link->get());
  } else {
    answer.problem = link.error().message;
  }
  [[maybe_unused]] const auto sent =
      send(worker_.get(), answer, descriptors);  // a worker that is gone shows in the next turn
}

void LauncherProcess::reap() {
  signalfd_siginfo ignored;
  while (::read(children_.get(), &ignored, sizeof ignored) > 0) {
  }
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, nullptr, WNOHANG | __WALL)) > 0) minders_.erase(pid);
  // Whatever is below us and not a minder's was left by one that died.
  for (const pid_t orphan : descendants(::getpid(), minders_)) kill_descendant(::getpid(), orphan);
}

void LauncherProcess::leave() {
  // The minders saw the worker go too; each ends what it has. Waiting for them keeps orphans from
  // getting past us.
  worker_.close();
  const auto until = std::chrono::steady_clock::now() + kLauncherMustEnd;
  while (std::chrono::steady_clock::now() < until) {
    reap();
    if (::waitpid(-1, nullptr, WNOHANG | __WALL) < 0 && errno == ECHILD) break;
    pollfd entry{children_.get(), POLLIN, 0};
    ::poll(&entry, 1, 50);
  }
  ::_exit(0);
}

int thread_count() {
  DIR* const directory = ::opendir("/proc/self/task");
  if (directory == nullptr) return 1;
  int count = 0;
  while (const dirent* const entry = ::readdir(directory)) count += entry->d_name[0] == '.' ? 0 : 1;
  ::closedir(directory);
  return count;
}

#if defined(__SANITIZE_THREAD__)
constexpr bool kToolAddsThreads = true;
#else
constexpr bool kToolAddsThreads = false;
#endif

}  // namespace

base::Result<std::unique_ptr<Launcher>> Launcher::start(bool may_cage) {
  if (!kToolAddsThreads && thread_count() > 1) {
    return base::fail(base::ErrorCode::Internal,
                      "the launcher must be started before the first thread");
  }
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::fail(base::os_error("cannot make a socket pair for the launcher", errno));
  }
  Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return base::fail(base::os_error("cannot fork the launcher", errno));
  if (pid == 0) {
    forget_signals();
    LauncherProcess(Descriptor(leave_descriptors(theirs.get())), may_cage).serve();
  }
  theirs.close();
  std::unique_ptr<Launcher> out(new Launcher(pid, std::move(ours)));
  // The first minder at once: it shows which way works here, and the first child need not wait for
  // it.
  auto first = out->take_minder();
  if (!first) return base::fail(std::move(first.error()).with("cannot start the launcher"));
  out->cage_ = first->cage;
  out->give_back(std::move(*first));
  return out;
}

Launcher::~Launcher() {
  idle_.clear();
  socket_.close();
  const Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  pollfd entry{handle.get(), POLLIN, 0};
  const auto wait =
      std::chrono::duration_cast<std::chrono::milliseconds>(kLauncherMustEnd + 1s).count();
  if (!handle.open() || ::poll(&entry, 1, static_cast<int>(wait)) != 1) ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

base::Result<MinderLink> Launcher::take_minder() {
  while (!idle_.empty()) {
    MinderLink minder = std::move(idle_.back());
    idle_.pop_back();
    // An idle minder has nothing to say: what can be read now is its end.
    pollfd entry{minder.socket.get(), POLLIN, 0};
    if (::poll(&entry, 1, 0) == 0) return minder;
  }
  if (auto sent = send(socket_.get(), MakeMinder{}); !sent)
    return base::fail(std::move(sent.error()));
  auto received = receive(socket_.get(), kLauncherMustAnswer);
  if (!received) return base::fail(std::move(received.error()));
  const auto* made = std::get_if<MinderMade>(&received->message);
  if (made == nullptr)
    return base::fail(base::ErrorCode::Internal, "the launcher gave an answer to something else");
  if (!made->problem.empty() || received->descriptors.size() != 1) {
    return base::fail(base::ErrorCode::Unavailable,
                      "the launcher cannot make a process: " + made->problem);
  }
  return MinderLink{std::move(received->descriptors.front()), made->cage};
}

void Launcher::give_back(MinderLink minder) { idle_.push_back(std::move(minder)); }

}  // namespace layerfarm::worker::process
