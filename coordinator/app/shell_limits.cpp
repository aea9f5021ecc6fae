#include "coordinator/app/shell_limits.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>

namespace layerfarm::coordinator::app {
namespace {

/// A worker, its launcher and a compiler beneath it each get along with this many.
constexpr std::uint64_t kFilesOfAProcess = 256;
/// What one more worker costs the coordinator: its link, its process, a file in transit.
constexpr std::uint64_t kFilesPerWorker = 4;
/// Compilers recurse deeply: they are built for the usual 8 MiB and get along with half of that.
constexpr std::uint64_t kLeastStack = std::uint64_t{4} << 20;
constexpr std::uint64_t kUsualStack = std::uint64_t{8} << 20;
/// The libraries of the tools alone take most of a gibibyte of addresses.
constexpr std::uint64_t kLeastMemory = std::uint64_t{2} << 30;

std::uint64_t files_needed(std::size_t workers) {
  return kFilesOfAProcess + kFilesPerWorker * workers;
}

ShellLimit read(__rlimit_resource_t resource) {
  rlimit is{};
  if (::getrlimit(resource, &is) != 0) return {};
  const auto number = [](rlim_t value) {
    return value == RLIM_INFINITY ? UINT64_MAX : static_cast<std::uint64_t>(value);
  };
  return {number(is.rlim_cur), number(is.rlim_max)};
}

std::string too_small(const char* what, char flag, const std::string& is,
                      const std::string& needed) {
  return fmt::format(
      "the shell's limit on {} (ulimit -{}) is {}, at least {} is needed; run `ulimit -{} {}` in a "
      "shell that may, or raise it in /etc/security/limits.conf",
      what, flag, is, needed, flag, needed);
}

std::string kilobytes(std::uint64_t bytes) { return std::to_string(bytes >> 10); }

/// Raises the soft limit to `wanted`, as far as the hard one allows.
void raise(__rlimit_resource_t resource, const ShellLimit& is, std::uint64_t wanted) {
  const rlimit more{std::min(wanted, is.hard),
                    is.hard == UINT64_MAX ? RLIM_INFINITY : static_cast<rlim_t>(is.hard)};
  // Cannot fail for a soft limit below the hard one; if it did, all goes on as it was.
  [[maybe_unused]] const int done = ::setrlimit(resource, &more);
}

}  // namespace

ShellLimits read_shell_limits() {
  return {.files = read(RLIMIT_NOFILE), .stack = read(RLIMIT_STACK), .memory = read(RLIMIT_AS)};
}

std::string shell_limit_problem(const ShellLimits& limits, std::size_t workers) {
  if (limits.files.hard < files_needed(workers)) {
    return too_small("open files", 'n', std::to_string(limits.files.hard),
                     std::to_string(files_needed(workers)));
  }
  if (limits.stack.hard < kLeastStack)
    return too_small("the stack, in KiB,", 's', kilobytes(limits.stack.hard),
                     kilobytes(kLeastStack));
  if (limits.memory.hard < kLeastMemory)
    return too_small("addresses, in KiB,", 'v', kilobytes(limits.memory.hard),
                     kilobytes(kLeastMemory));
  return {};
}

base::Result<void> ensure_shell_limits(std::size_t workers) {
  const ShellLimits limits = read_shell_limits();
  if (std::string problem = shell_limit_problem(limits, workers); !problem.empty())
    return base::fail(base::ErrorCode::InvalidInput, std::move(problem));
  if (limits.files.soft < files_needed(workers))
    raise(RLIMIT_NOFILE, limits.files, files_needed(workers));
  if (limits.memory.soft < kLeastMemory) raise(RLIMIT_AS, limits.memory, kLeastMemory);
  if (limits.stack.soft < kLeastStack) {
    raise(RLIMIT_STACK, limits.stack, kUsualStack);
    // Threads of this process were to get what the limit was when it started.
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, std::min(kUsualStack, limits.stack.hard));
    ::pthread_setattr_default_np(&attributes);
    ::pthread_attr_destroy(&attributes);
  }
  return {};
}

}  // namespace layerfarm::coordinator::app
