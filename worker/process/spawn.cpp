#include "worker/process/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

namespace layerfarm::worker::process {
namespace {

enum class Step { None, Parent, Limits, Cores, Folder, Descriptors, Exec };

/// What the child reads and, on failure, writes: it shares the caller's memory until exec, so it
/// must not allocate.
struct Plan {
  const char* program = nullptr;
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  const char* folder = nullptr;
  const cpu_set_t* cores = nullptr;
  rlimit file{};
  rlimit data{};
  bool limit_file = false;
  bool limit_data = false;
  int output = -1;
  int errors = -1;
  int channel = -1;
  pid_t parent = -1;
  volatile Step failed = Step::None;
  volatile int error_number = 0;
};

int give_up(Plan& plan, Step step) {
  plan.error_number = errno;
  plan.failed = step;
  // Not _exit(): sanitizers look at the stack before calls that do not return, and do not know this
  // one.
  ::syscall(SYS_exit_group, 127);
  return 127;
}

/// The child's side. Only system calls.
int child_main(void* argument) {
  Plan& plan = *static_cast<Plan*>(argument);
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent)
    return give_up(plan, Step::Parent);  // it died before the line above
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  if (plan.limit_file && ::setrlimit(RLIMIT_FSIZE, &plan.file) != 0)
    return give_up(plan, Step::Limits);
  if (plan.limit_data && ::setrlimit(RLIMIT_DATA, &plan.data) != 0)
    return give_up(plan, Step::Limits);
  if (plan.cores != nullptr && ::sched_setaffinity(0, sizeof(cpu_set_t), plan.cores) != 0)
    return give_up(plan, Step::Cores);
  if (plan.folder != nullptr && ::chdir(plan.folder) != 0) return give_up(plan, Step::Folder);
  if (::dup2(plan.output, 1) < 0 || ::dup2(plan.errors, 2) < 0)
    return give_up(plan, Step::Descriptors);
  if (plan.channel >= 0 && ::dup2(plan.channel, 3) < 0) return give_up(plan, Step::Descriptors);
  // All others are close-on-exec as well; this is for those that a library opened without that
  // flag.
  ::syscall(SYS_close_range, plan.channel >= 0 ? 4U : 3U, ~0U, 0U);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  ::execve(plan.program, plan.argv, plan.environment);
  return give_up(plan, Step::Exec);
}

/// The child must not run on the caller's stack: both would write to it.
class ChildStack {
 public:
  static constexpr std::size_t kBytes = std::size_t{256} << 10;
  ChildStack()
      : base_(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0)) {}
  ~ChildStack() {
    if (usable()) ::munmap(base_, kBytes);
  }
  ChildStack(const ChildStack&) = delete;
  ChildStack& operator=(const ChildStack&) = delete;
  [[nodiscard]] bool usable() const { return base_ != MAP_FAILED; }
  [[nodiscard]] void* top() const { return static_cast<std::byte*>(base_) + kBytes; }

 private:
  void* base_;
};

rlimit capped(int resource, std::int64_t wanted) {
  rlimit now{};
  ::getrlimit(static_cast<__rlimit_resource_t>(resource), &now);
  const rlim_t value = std::min<rlim_t>(static_cast<rlim_t>(wanted), now.rlim_max);
  return {value, value};
}

std::string listed(const std::vector<int>& numbers) {
  std::string out;
  for (const int number : numbers) out += (out.empty() ? "" : ", ") + std::to_string(number);
  return out;
}

std::string exec_problem(const SpawnRequest& request, int error_number) {
  const std::string subject = "cannot start " + request.program + ": ";
  switch (error_number) {
    case ENOENT: {
      struct stat info{};
      const bool relative = !request.program.starts_with('/') && !request.folder.empty();
      const std::string path = relative ? request.folder + "/" + request.program : request.program;
      if (::stat(path.c_str(), &info) == 0)
        return subject + "the interpreter or loader that the file names does not exist";
      return subject + "there is no such program";
    }
    case EACCES:
      return subject + "no permission (is it executable, and may this user enter its folder?)";
    case ENOEXEC:
      return subject + "it is not a program of this machine";
    case E2BIG:
      return subject + "its arguments and environment are too long";
    default:
      return subject + std::strerror(error_number);
  }
}

std::string problem_text(const SpawnRequest& request, Step step, int error_number) {
  const std::string reason = std::strerror(error_number);
  switch (step) {
    case Step::None:
      break;
    case Step::Parent:
      return "cannot start " + request.program + ": the launcher ended";
    case Step::Limits:
      return "cannot set the limits of " + request.program + ": " + reason;
    case Step::Cores:
      return "cannot pin " + request.program + " to the cores " + listed(request.cores) + ": " +
             reason;
    case Step::Folder:
      return "cannot use the folder " + request.folder + " for " + request.program + ": " + reason;
    case Step::Descriptors:
      return "cannot connect the output of " + request.program + ": " + reason;
    case Step::Exec:
      return exec_problem(request, error_number);
  }
  return "cannot start " + request.program;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace

SpawnResult spawn(const SpawnRequest& request) {
  static const ChildStack
      stack;  // one child at a time, by construction: the caller is suspended until exec
  if (!stack.usable())
    return {-1, "cannot start " + request.program + ": no memory for its first stack"};
  const std::vector<char*> argv = pointers(request.argv);
  const std::vector<char*> environment = pointers(request.environment);

  Plan plan;
  plan.program = request.program.c_str();
  plan.argv = argv.data();
  plan.environment = environment.data();
  if (!request.folder.empty()) plan.folder = request.folder.c_str();
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const int core : request.cores) {
    if (core < 0 || core >= CPU_SETSIZE) {
      return {-1, "cannot pin " + request.program + " to the core " + std::to_string(core) +
                      ": no such core"};
    }
    CPU_SET(core, &cores);
  }
  if (!request.cores.empty()) plan.cores = &cores;
  if (request.file_bytes > 0) plan.file = capped(RLIMIT_FSIZE, request.file_bytes);
  if (request.data_bytes > 0) plan.data = capped(RLIMIT_DATA, request.data_bytes);
  plan.limit_file = request.file_bytes > 0;
  plan.limit_data = request.data_bytes > 0;
  plan.output = request.output;
  plan.errors = request.errors;
  plan.channel = request.channel;
  plan.parent = ::getpid();

  const pid_t pid = ::clone(child_main, stack.top(), CLONE_VM | CLONE_VFORK | SIGCHLD, &plan);
  if (pid < 0) return {-1, "cannot start " + request.program + ": " + std::strerror(errno)};
  if (plan.failed == Step::None) return {pid, {}};
  // Reaped here, so that the caller never hears of it.
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {-1, problem_text(request, plan.failed, plan.error_number)};
}

}  // namespace layerfarm::worker::process
