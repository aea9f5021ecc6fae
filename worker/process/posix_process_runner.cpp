#include "worker/process/posix_process_runner.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <utility>

#include "shared/base/places.h"
#include "worker/process/minded_child.h"
#include "worker/process/posix_resident.h"

namespace layerfarm::worker::process {
namespace {

using namespace std::chrono_literals;

ProcessResult not_started(std::string problem) {
  ProcessResult out;
  out.problem = std::move(problem);
  return out;
}

bool executable_file(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

base::Result<std::string> find_program(const Command& command) {
  if (command.argv.empty() || command.argv[0].empty()) {
    return base::fail(base::ErrorCode::InvalidInput, "cannot start a command without a program");
  }
  const std::string& name = command.argv[0];
  if (name.find('/') != std::string::npos) return name;
  std::string path = base::environment("PATH");
  for (const auto& [key, value] : command.environment) {
    if (key == "PATH") path = value;
  }
  std::string_view left = path;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find(':'), left.size());
    std::string candidate(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
    if (candidate.empty())
      continue;  // POSIX takes it as the current folder; nobody who starts tools on purpose wants
                 // that
    candidate += "/" + name;
    if (executable_file(candidate)) return std::filesystem::absolute(candidate).string();
  }
  return base::fail(base::ErrorCode::NotFound,
                    "cannot start " + name + ": there is no such program in PATH (" + path + ")");
}

ProcessResult PosixProcessRunner::run(const Command& command, const CancelToken& cancel) {
  if (cancel.cancelled()) {
    ProcessResult out;
    out.ended = Ended::Cancelled;
    return out;
  }
  auto child = MindedChild::start(launcher_, command, /*channel=*/-1);
  if (!child) return not_started(child.error().text());
  // The minder keeps the time; this is for one that is itself stopped.
  const auto never =
      std::chrono::steady_clock::now() +
      (command.bounds.wall.count() > 0 ? command.bounds.wall + 30s : base::Duration(24h * 365));
  while (!child->ended()) {
    const auto woken = child->wait(never, &cancel);
    if (woken.cancelled) child->order_end(Ended::Cancelled);
    if (!woken.ended && std::chrono::steady_clock::now() >= never)
      child->order_end(Ended::TimedOut);
  }
  return child->result();
}

base::Result<std::unique_ptr<Resident>> PosixProcessRunner::start(const Command& command) {
  return start_posix_resident(launcher_, command);
}

}  // namespace layerfarm::worker::process
