// process_probe: a child that does what its first argument says, for the tests of worker/process.
// Every mode that could stay for ever ends by itself after two minutes, so that a failing test
// leaves nothing behind for long.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

void stay() {
  ::alarm(120);
  sigset_t none;
  sigemptyset(&none);
  while (true) ::sigsuspend(&none);
}

/// Two forks and a session of its own: what daemons do to get away. Returns in the daemon only.
void become_daemon_or_wait(bool session) {
  if (::fork() != 0) return;
  if (session) ::setsid();
  if (::fork() != 0) ::_exit(0);
  for (int fd = 0; fd < 10; ++fd) ::close(fd);
  stay();
}

char* take(std::size_t bytes) {
  void* const p =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) {
    std::fprintf(stderr, "no memory\n");
    std::abort();
  }
  std::memset(p, 1, bytes);
  return static_cast<char*>(p);
}

bool read_exactly(int fd, char* out, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::read(fd, out, bytes);
    if (n <= 0) return false;
    out += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

void write_all(int fd, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::write(fd, data, bytes);
    if (n <= 0) std::exit(9);
    data += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

void answer(const std::string& text) {
  std::string out;
  for (unsigned i = 0; i < 4; ++i) out.push_back(static_cast<char>(text.size() >> (8 * i) & 0xff));
  out += text;
  write_all(3, out.data(), out.size());
}

/// Answers each request by what it says.
int resident() {
  std::vector<char*> held;
  std::printf("resident is up\n");
  std::fflush(stdout);
  while (true) {
    unsigned char length[4];
    if (!read_exactly(3, reinterpret_cast<char*>(length), 4)) return 0;
    std::string request(
        length[0] | length[1] << 8 | length[2] << 16 | static_cast<std::uint32_t>(length[3]) << 24,
        '\0');
    if (!read_exactly(3, request.data(), request.size())) return 0;
    if (request == "crash") ::raise(SIGSEGV);
    if (request == "exit") return 5;
    if (request == "hang") stay();
    if (request == "print") {
      std::printf("noise on stdout\n");
      std::fflush(stdout);
      std::fprintf(stderr, "noise on stderr\n");
    }
    if (request == "flood") {
      const std::string line(1000, 'x');
      for (int i = 0; i < 2000; ++i) std::puts(line.c_str());
      std::fflush(stdout);
    }
    if (request == "grow") held.push_back(take(std::size_t{200} << 20));
    if (request == "grow later") {
      answer(request);
      ::usleep(100'000);
      held.push_back(take(std::size_t{300} << 20));
      continue;
    }
    if (request == "close") {
      ::close(3);
      stay();
    }
    if (request == "answer and die") {
      answer(request);
      return 0;
    }
    if (request == "two answers") answer("first");
    if (request == "nonsense") write_all(3, "\xff\xff\xff\xff", 4);
    answer("you said " + request);
  }
}

/// What a child can see of how it was started.
int describe() {
  rlimit core{};
  rlimit file{};
  ::getrlimit(RLIMIT_CORE, &core);
  ::getrlimit(RLIMIT_FSIZE, &file);
  sigset_t mask;
  ::sigprocmask(SIG_SETMASK, nullptr, &mask);
  int blocked = 0;
  int handled = 0;
  for (int signal = 1; signal < 32; ++signal) {
    blocked += sigismember(&mask, signal) == 1 ? 1 : 0;
    struct sigaction now{};
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_DFL) ++handled;
  }
  std::string descriptors;
  for (int fd = 0; fd < 1024; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0)
      descriptors += (descriptors.empty() ? "" : ",") + std::to_string(fd);
  }
  cpu_set_t cores;
  CPU_ZERO(&cores);
  ::sched_getaffinity(0, sizeof cores, &cores);
  std::string allowed;
  for (int core_number = 0; core_number < CPU_SETSIZE; ++core_number) {
    if (CPU_ISSET(core_number, &cores))
      allowed += (allowed.empty() ? "" : ",") + std::to_string(core_number);
  }
  char folder[4096];
  if (::getcwd(folder, sizeof folder) == nullptr) return 1;
  int death_signal = 0;
  ::prctl(PR_GET_PDEATHSIG, &death_signal);
  const char* const variable = std::getenv("PROBE_VARIABLE");
  // /proc must be that of the namespace the child lives in: its own pid there is itself.
  char name[64] = "?";
  if (std::FILE* const comm =
          std::fopen(("/proc/" + std::to_string(::getpid()) + "/comm").c_str(), "r")) {
    if (std::fgets(name, sizeof name, comm) == nullptr) name[0] = '\0';
    name[std::strcspn(name, "\n")] = '\0';
    std::fclose(comm);
  }
  std::printf(
      "leads=%d core=%lld file=%lld blocked=%d handled=%d descriptors=%s cores=%s folder=%s "
      "death=%d variable=%s name=%s\n",
      ::getsid(0) == ::getpid() ? 1 : 0, static_cast<long long>(core.rlim_cur),
      static_cast<long long>(file.rlim_cur), blocked, handled, descriptors.c_str(), allowed.c_str(),
      folder, death_signal, variable != nullptr ? variable : "", name);
  return 0;
}

}  // namespace

// Arguments: mode, number, and a word that only lets a test find this process again.
int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  const long number = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 0;
  if (mode == "exit") return static_cast<int>(number);
  if (mode == "signal") {
    ::raise(static_cast<int>(number));
    stay();
  }
  if (mode == "print") {
    std::printf("to stdout\n");
    std::fprintf(stderr, "to stderr\n");
    return 0;
  }
  if (mode == "describe") return describe();
  if (mode == "stay") stay();
  if (mode == "stubborn") {  // ignores all that can be ignored, as do its children
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) ::signal(signal, SIG_IGN);
    for (int i = 0; i < 3; ++i) {
      if (::fork() == 0) stay();
    }
    stay();
  }
  if (mode == "daemon" || mode == "daemon-and-stay") {
    become_daemon_or_wait(/*session=*/true);
    ::usleep(20'000);
    if (mode == "daemon-and-stay") stay();
    return 0;
  }
  if (mode == "orphans") {  // number of processes whose parents are gone, in the group
    for (long i = 0; i < number; ++i) become_daemon_or_wait(/*session=*/false);
    return 0;
  }
  if (mode == "sessions") {  // a chain: each with a session of its own
    for (long i = 0; i < number; ++i) {
      if (::fork() != 0) stay();
      ::setsid();
    }
    stay();
  }
  if (mode == "bomb") {  // forks without end, up to that many
    auto* const count = static_cast<long*>(
        ::mmap(nullptr, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ::alarm(120);
    while (true) {
      if (__atomic_add_fetch(count, 1, __ATOMIC_RELAXED) > number) {
        __atomic_sub_fetch(count, 1, __ATOMIC_RELAXED);
        ::usleep(1000);
        continue;
      }
      if (::fork() == 0) {
        ::alarm(120);
        if (number % 2 == 1) ::setsid();  // odd numbers: the wilder kind
      }
    }
  }
  if (mode == "close") {  // closes its output and goes on for that many milliseconds
    ::close(1);
    ::close(2);
    ::usleep(static_cast<useconds_t>(number) * 1000);
    return 7;
  }
  if (mode == "fill") {  // that many MiB at once
    take(static_cast<std::size_t>(number) << 20);
    stay();
  }
  if (mode == "fill-quickly") {  // 64 MiB after 64 MiB, up to that many MiB
    for (long i = 0; i < number; i += 64) take(std::size_t{64} << 20);
    stay();
  }
  if (mode == "fill-slowly") {  // 4 MiB each 2 ms, up to that many MiB
    for (long i = 0; i < number; i += 4) {
      take(std::size_t{4} << 20);
      ::usleep(2000);
    }
    stay();
  }
  if (mode == "fill-children") {  // three children with that many MiB each
    for (int i = 0; i < 3; ++i) {
      if (::fork() == 0) {
        take(static_cast<std::size_t>(number) << 20);
        stay();
      }
    }
    stay();
  }
  if (mode ==
      "share") {  // that many MiB shared by four forks for a while: no more memory than one has
    take(static_cast<std::size_t>(number) << 20);
    for (int i = 0; i < 4; ++i) {
      if (::fork() == 0) {
        ::usleep(400'000);
        ::_exit(0);
      }
    }
    while (::wait(nullptr) > 0) {
    }
    return 0;
  }
  if (mode == "flood") {
    const std::string line(1 << 16, 'x');
    ::alarm(120);
    while (::write(1, line.data(), line.size()) > 0) {
    }
    return 1;
  }
  if (mode == "lines") {  // that many numbered lines
    for (long i = 0; i < number; ++i) std::printf("line %ld\n", i);
    return 0;
  }
  if (mode == "file" || mode == "file-politely") {  // a file of that many MiB
    if (mode == "file-politely") ::signal(SIGXFSZ, SIG_IGN);
    const int file = ::open("large", O_WRONLY | O_CREAT, 0644);
    const std::string block(1 << 20, 'f');
    for (long i = 0; i < number; ++i) {
      std::size_t done = 0;
      while (done < block.size()) {
        const ssize_t n = ::write(file, block.data() + done, block.size() - done);
        if (n <= 0) {
          std::fprintf(stderr, "cannot write: %s\n", std::strerror(errno));
          return 1;
        }
        done += static_cast<std::size_t>(n);
      }
    }
    return 0;
  }
  if (mode == "resident") return resident();
  std::fprintf(stderr, "process_probe: unknown mode\n");
  return 64;
}
