#include "coordinator/app/worker_probe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

extern char** environ;

namespace layerfarm::coordinator::app {
using base::ErrorCode;
using base::fail;
using base::Result;
using nlohmann::json;

namespace {

constexpr std::chrono::seconds kPatience(30);
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
      const ssize_t n = ::write(to.write, input.data(), input.size());
      if (n > 0) input.remove_prefix(static_cast<std::size_t>(n));
      if (n < 0 && errno == EPIPE) input = {};
    }
    if ((items[0].revents & (POLLIN | POLLHUP)) != 0) {
      const ssize_t n = ::read(from.read, buffer.data(), buffer.size());
      if (n == 0) return true;
      if (n > 0) output.append(buffer.data(), static_cast<std::size_t>(n));
      if (output.size() > kMostOutput) return false;
    }
  }
}

domain::ToolIdentity identity(const json& in) {
  domain::ToolIdentity out;
  out.version = in.at("version").get<std::string>();
  out.cpu = in.at("cpu").get<std::string>();
  if (auto digest = base::Digest::from_hex(in.at("files").get<std::string>())) out.files = *digest;
  return out;
}

MachineDescription read_description(const json& in) {
  MachineDescription out;
  out.software = in.at("software").get<std::string>();
  out.cpu_model = in.at("cpu_model").get<std::string>();
  out.reader = identity(in.at("reader"));
  out.reference = identity(in.at("reference"));
  for (const json& item : in.at("abilities")) {
    protocol::Ability ability;
    ability.toolchain = item.at("toolchain").get<std::string>();
    if (auto digest = base::Digest::from_hex(item.at("chip").get<std::string>()))
      ability.chip = *digest;
    ability.found = item.at("found").get<bool>();
    ability.identity = identity(item.at("identity"));
    ability.missing = item.at("missing").get<std::string>();
    ability.how_to_get = item.at("how_to_get").get<std::string>();
    ability.needs_prepare = item.at("needs_prepare").get<bool>();
    ability.needs_compile = item.at("needs_compile").get<bool>();
    ability.batch = item.at("batch").get<std::uint32_t>();
    ability.takes_map = item.at("takes_map").get<bool>();
    out.abilities.push_back(std::move(ability));
  }
  return out;
}

}  // namespace

Result<std::string> ask_worker(const std::filesystem::path& program, const std::string& flag,
                               std::string_view input, base::Duration patience) {
  Pipe to;
  Pipe from;
  if (!to.open() || !from.open()) return fail(base::os_error("cannot make a pipe", errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, to.read, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, from.write, STDOUT_FILENO);
  std::string path = program.string();
  std::string argument = flag;
  std::array<char*, 3> argv = {path.data(), argument.data(), nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, path.c_str(), &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return fail(ErrorCode::Unavailable, "cannot start " + path + ": " + std::strerror(error));
  to.close_read();
  from.close_write();
  std::string output;
  const bool finished = exchange_pipes(to, from, input, output, patience);
  if (!finished) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string call = path + " " + flag;
  if (!finished) return fail(ErrorCode::Unavailable, call + " gave no answer in time");
  if (status != 0) return fail(ErrorCode::Unavailable, call + " failed; its own message is above");
  return output;
}

Result<MachineDescription> describe_machine(const std::filesystem::path& program,
                                            const std::vector<domain::ChipSpec>& chips) {
  json request = json::array();
  for (const domain::ChipSpec& chip : chips)
    request.push_back(json::parse(domain::chip_json(chip)));
  const auto output = ask_worker(program, "--describe", request.dump(), kPatience);
  if (!output) return fail(output.error());
  const std::string call = program.string() + " --describe";
  try {
    MachineDescription out = read_description(json::parse(*output));
    if (out.abilities.size() == chips.size()) return out;
    return fail(ErrorCode::Internal, call + " answered for another number of chips");
  } catch (const json::exception& bad) {
    return fail(ErrorCode::Internal, call + " gave an answer that cannot be read: " + bad.what());
  }
}

}  // namespace layerfarm::coordinator::app
