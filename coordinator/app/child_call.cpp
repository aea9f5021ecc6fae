#include "coordinator/app/child_call.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

extern char** environ;

namespace layerfarm::coordinator::app {
using base::ErrorCode;
using base::fail;
using base::Result;

namespace {

constexpr std::size_t kMostOutput = std::size_t{16} << 20;

struct Pipe {
  int read = -1;
  int write = -1;
  ~Pipe() {
    close_read();
    close_write();
  }
  void close_read() {
    if (read >= 0) ::close(std::exchange(read, -1));
  }
  void close_write() {
    if (write >= 0) ::close(std::exchange(write, -1));
  }
  bool open() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    return take(ends);
  }
  /// The same as a pair of sockets: what is sent there to a child that reads no more is an error,
  /// not a signal to the whole process.
  bool open_sockets() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return false;
    return take(ends);
  }

 private:
  bool take(const std::array<int, 2>& ends) {
    read = ends[0];
    write = ends[1];
    return true;
  }
};

/// Feeds `input` and collects the output until it ends; false when the time is up.
bool exchange_pipes(Pipe& to, Pipe& from, std::string_view input, std::string& output,
                    base::Duration patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  ::fcntl(to.write, F_SETFL, O_NONBLOCK);
  std::array<char, 65536> buffer{};
  while (true) {
    if (input.empty()) to.close_write();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    std::array<pollfd, 2> items = {pollfd{from.read, POLLIN, 0}, pollfd{to.write, POLLOUT, 0}};
    if (::poll(items.data(), to.write >= 0 ? 2 : 1, static_cast<int>(left.count())) < 0 &&
        errno != EINTR)
      return false;
    if (to.write >= 0 && (items[1].revents & (POLLOUT | POLLERR)) != 0) {
      const ssize_t n = ::send(to.write, input.data(), input.size(), MSG_NOSIGNAL);
      if (n > 0) input.remove_prefix(static_cast<std::size_t>(n));
      if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) input = {};
    }
    if ((items[0].revents & (POLLIN | POLLHUP)) != 0) {
      const ssize_t n = ::read(from.read, buffer.data(), buffer.size());
      if (n == 0) return true;
      if (n > 0) output.append(buffer.data(), static_cast<std::size_t>(n));
      if (output.size() > kMostOutput) return false;
    }
  }
}

}  // namespace

Result<ChildAnswer> call_child(std::vector<std::string> argv, std::string_view input, Take take,
                               base::Duration patience) {
  Pipe to;
  Pipe from;
  if (!to.open_sockets() || !from.open()) return fail(base::os_error("cannot make a pipe", errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, to.read, STDIN_FILENO);
  if (take == Take::Output) {
    ::posix_spawn_file_actions_adddup2(&actions, from.write, STDOUT_FILENO);
  } else {
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, from.write, STDERR_FILENO);
  }
  std::vector<char*> words;
  for (std::string& word : argv) words.push_back(word.data());
  words.push_back(nullptr);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, words.front(), &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return fail(ErrorCode::Unavailable,
                "cannot start " + argv.front() + ": " + std::strerror(error));
  to.close_read();
  from.close_write();
  ChildAnswer out;
  const bool finished = exchange_pipes(to, from, input, out.text, patience);
  if (!finished) ::kill(pid, SIGKILL);
  while (::waitpid(pid, &out.status, 0) < 0 && errno == EINTR) {
  }
  if (!finished) return fail(ErrorCode::Unavailable, argv.front() + " gave no answer in time");
  return out;
}

}  // namespace layerfarm::coordinator::app
