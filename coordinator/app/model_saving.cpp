#include "coordinator/app/model_saving.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "shared/base/places.h"

extern char** environ;

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::ErrorCode;
using base::fail;
using base::Result;

namespace {

/// Of what a child says about itself.
constexpr std::size_t kMostText = 4096;

struct ChildEnd {
  int status = 0;
  std::string errors;
};

/// Runs a program to its end and keeps what it says on standard error.
Result<ChildEnd> run_program(std::vector<std::string> arguments) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return fail(base::os_error("cannot make a pipe", errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, argv.front(), &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    return fail(ErrorCode::Unavailable,
                "cannot start " + arguments.front() + ": " + std::strerror(error));
  }
  ChildEnd out;
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t n = ::read(ends[0], buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    out.errors.append(buffer.data(),
                      std::min(static_cast<std::size_t>(n), kMostText - out.errors.size()));
  }
  ::close(ends[0]);
  while (::waitpid(pid, &out.status, 0) < 0 && errno == EINTR) {
  }
  return out;
}

}  // namespace

Result<void> save_bf16_model(const fs::path& model, const DiscoverOptions& options) {
  const std::string file = fs::absolute(model).lexically_normal().string();
  std::vector<std::string> arguments = {
      (base::program_folder() / "layerfarm-onnx").string(), "convert", "--bf16", "--model=" + file,
      "--out=" + fs::absolute(options.save_bf16_model).lexically_normal().string()};
  for (const auto& [name, value] : options.dims) arguments.push_back("--keep-dim=" + name);
  const auto end = run_program(std::move(arguments));
  if (!end) return fail(end.error());
  if (end->status == 0) return {};
  std::string why = end->errors.substr(0, end->errors.find('\n'));
  if (why.starts_with(file + ": ")) why.erase(0, file.size() + 2);
  if (why.empty()) why = "its reader died while it converted the model";
  return fail(ErrorCode::InvalidInput, model.string() + ": " + why);
}

}  // namespace layerfarm::coordinator::app
