#include "shared/base/process_identity.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>

#include "shared/base/digest.h"
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

std::string read_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  std::string host = name.data();
  const auto boot = read_file("/proc/sys/kernel/random/boot_id", 4096);
  host += "/" + (boot ? boot->substr(0, boot->find('\n')) : std::string());
  std::array<char, 64> space{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", space.data(), space.size() - 1);
  return host + "/" + std::string(space.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
}

/// Neither changes while a process lives.
const std::string& this_host() {
  static const std::string host = read_host();
  return host;
}

std::string host_mark(const std::string& host) { return digest_of(host).hex().substr(0, 8); }

/// "name/boot" of "name/boot/namespace".
std::string_view machine_of(std::string_view host) { return host.substr(0, host.rfind('/')); }
std::string_view name_of(std::string_view host) { return host.substr(0, host.find('/')); }

}  // namespace

std::string ProcessIdentity::tag() const {
  return std::to_string(pid) + "." + std::to_string(start_ticks) + "." + host_mark(host);
}

ProcessIdentity this_process() {
  const std::int64_t pid = ::getpid();
  return {this_host(), pid, start_ticks_of(pid).value_or(0)};
}

const std::string& this_process_tag() {
  // A forked child is another process.
  thread_local std::int64_t pid = 0;
  thread_local std::string tag;
  if (pid != ::getpid()) {
    tag = this_process().tag();
    pid = ::getpid();
  }
  return tag;
}

bool is_alive(const ProcessIdentity& process) {
  const std::string& host = this_host();
  if (process.host != host) {
    // Gone when this machine was started anew since; else it cannot be seen from here.
    return name_of(process.host) != name_of(host) || machine_of(process.host) == machine_of(host);
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
  if (ticks.ec != std::errc{} || ticks.ptr == end || *ticks.ptr != '.') return std::nullopt;
  const std::string_view rest(ticks.ptr + 1, static_cast<std::size_t>(end - ticks.ptr - 1));
  if (!rest.starts_with(host_mark(this_host()))) return std::nullopt;
  out.host = this_host();
  return out;
}

}  // namespace layerfarm::base
