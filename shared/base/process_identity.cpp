#include "shared/base/process_identity.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>

#include "shared/base/files.h"

namespace layerfarm::base {
namespace {

/// Field 22 of /proc/<pid>/stat. The second field is a name in parentheses that may hold anything,
/// so count from its end.
std::optional<std::uint64_t> start_ticks_of(std::int64_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/stat", 1 << 16);
  if (!text) return std::nullopt;
  std::size_t at = text->rfind(')');
  if (at == std::string::npos) return std::nullopt;
  // After ')' come " state ppid ...": the start time is the 20th of these.
  for (int field = 0; field < 20; ++field) {
    at = text->find(' ', at + 1);
    if (at == std::string::npos) return std::nullopt;
  }
  std::uint64_t ticks = 0;
  const char* begin = text->data() + at + 1;
  if (std::from_chars(begin, text->data() + text->size(), ticks).ec != std::errc{}) {
    return std::nullopt;
  }
  return ticks;
}

std::string this_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  std::string host = name.data();
  if (const auto boot = read_file("/proc/sys/kernel/random/boot_id", 4096)) {
    host += "/" + boot->substr(0, boot->find('\n'));
  }
  return host;
}

}  // namespace

std::string ProcessIdentity::tag() const {
  return std::to_string(pid) + "." + std::to_string(start_ticks);
}

ProcessIdentity this_process() {
  const std::int64_t pid = ::getpid();
  return {this_host(), pid, start_ticks_of(pid).value_or(0)};
}

bool is_alive(const ProcessIdentity& process) {
  const std::string host = this_host();
  if (process.host != host) {
    // Another boot of this machine: everything from before is gone. Another machine: it cannot be
    // asked.
    return process.host.substr(0, process.host.find('/')) != host.substr(0, host.find('/'));
  }
  if (process.pid <= 0) return false;
  if (::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH) return false;
  const auto ticks = start_ticks_of(process.pid);
  return ticks && *ticks == process.start_ticks;
}

std::optional<ProcessIdentity> process_from_tag(std::string_view name) {
  ProcessIdentity out;
  const char* const end = name.data() + name.size();
  const auto pid = std::from_chars(name.data(), end, out.pid);
  if (pid.ec != std::errc{} || pid.ptr == end || *pid.ptr != '.') return std::nullopt;
  const auto ticks = std::from_chars(pid.ptr + 1, end, out.start_ticks);
  if (ticks.ec != std::errc{}) return std::nullopt;
  out.host = this_host();
  return out;
}

}  // namespace layerfarm::base
