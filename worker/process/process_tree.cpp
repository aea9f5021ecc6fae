#include "worker/process/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <map>
#include <optional>
#include <string>

#include "worker/process/descriptor.h"

namespace layerfarm::worker::process {
namespace {

/// A small file of /proc, whole.
std::optional<std::string> read_small(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return std::nullopt;
  std::string out;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t n = ::read(file.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;  // the process ended between open and read
    if (n == 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

std::optional<pid_t> as_pid(std::string_view text) {
  pid_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size() || out <= 0) return std::nullopt;
  return out;
}

std::vector<pid_t> numeric_entries(const std::string& folder) {
  std::vector<pid_t> out;
  DIR* const directory = ::opendir(folder.c_str());
  if (directory == nullptr) return out;
  while (const dirent* const entry = ::readdir(directory)) {
    if (const auto pid = as_pid(entry->d_name)) out.push_back(*pid);
  }
  ::closedir(directory);
  return out;
}

/// Value of the line "<key>   123 kB", in bytes; 0 when it is not there.
std::int64_t kilobytes(std::string_view text, std::string_view key) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    const std::size_t digits = line.find_first_of("0123456789");
    if (digits == std::string_view::npos) return 0;
    std::int64_t value = 0;
    std::from_chars(line.data() + digits, line.data() + line.size(), value);
    return value * 1024;
  }
  return 0;
}

/// By the lists of children that the kernel keeps: costs as much as the tree is large. False when
/// this kernel keeps none.
bool walk_children(pid_t root, const std::set<pid_t>& without, std::vector<pid_t>& out) {
  std::vector<pid_t> open = {root};
  bool readable = false;
  for (std::size_t next = 0; next < open.size(); ++next) {
    const std::string tasks = "/proc/" + std::to_string(open[next]) + "/task";
    for (const pid_t thread : numeric_entries(tasks)) {
      const auto text = read_small(tasks + "/" + std::to_string(thread) + "/children");
      if (!text) continue;
      readable = true;
      std::size_t at = 0;
      while (at < text->size()) {
        const std::size_t end = std::min(text->find(' ', at), text->size());
        const auto pid = as_pid(std::string_view(*text).substr(at, end - at));
        at = end + 1;
        if (!pid || without.contains(*pid)) continue;
        out.push_back(*pid);
        open.push_back(*pid);
      }
    }
  }
  return readable;
}

/// By looking at every process of the machine.
void walk_parents(pid_t root, const std::set<pid_t>& without, std::vector<pid_t>& out) {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : numeric_entries("/proc")) {
    if (const auto stat = read_small("/proc/" + std::to_string(pid) + "/stat"))
      children.emplace(parent_in_stat(*stat), pid);
  }
  std::vector<pid_t> open = {root};
  for (std::size_t next = 0; next < open.size(); ++next) {
    const auto [begin, end] = children.equal_range(open[next]);
    for (auto at = begin; at != end; ++at) {
      if (without.contains(at->second)) continue;
      out.push_back(at->second);
      open.push_back(at->second);
    }
  }
}

}  // namespace

std::vector<pid_t> descendants(pid_t root, const std::set<pid_t>& without) {
  std::vector<pid_t> out;
  if (!walk_children(root, without, out)) walk_parents(root, without, out);
  return out;
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> out = numeric_entries("/proc");
  std::erase(out, ::getpid());
  return out;
}

std::int64_t held_bytes_in_status(std::string_view status) {
  return kilobytes(status, "RssAnon:") + kilobytes(status, "RssShmem:") +
         kilobytes(status, "VmSwap:");
}

std::int64_t proportional_bytes_in_rollup(std::string_view rollup) {
  return kilobytes(rollup, "Pss_Anon:") + kilobytes(rollup, "Pss_Shmem:") +
         kilobytes(rollup, "SwapPss:");
}

pid_t parent_in_stat(std::string_view stat) {
  // "pid (name) S ppid ...": the name may hold anything, brackets and blanks too.
  const std::size_t bracket = stat.rfind(')');
  if (bracket == std::string_view::npos || bracket + 4 >= stat.size()) return -1;
  const std::string_view rest = stat.substr(bracket + 4);
  return as_pid(rest.substr(0, rest.find(' '))).value_or(-1);
}

std::int64_t held_bytes(pid_t pid) {
  const auto text = read_small("/proc/" + std::to_string(pid) + "/status");
  return text ? held_bytes_in_status(*text) : 0;
}

std::int64_t proportional_bytes(pid_t pid) {
  const auto text = read_small("/proc/" + std::to_string(pid) + "/smaps_rollup");
  return text && text->find("Pss_Anon:") != std::string::npos ? proportional_bytes_in_rollup(*text)
                                                              : held_bytes(pid);
}

void kill_descendant(pid_t root, pid_t pid) {
  // The handle keeps its meaning when the number is given to somebody else, so: take it, look whose
  // child it is, then signal.
  const Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!handle.open()) return;
  for (pid_t at = pid; at != root;) {
    const auto stat = read_small("/proc/" + std::to_string(at) + "/stat");
    at = stat ? parent_in_stat(*stat) : -1;
    if (at <= 1 && at != root) return;
  }
  ::syscall(SYS_pidfd_send_signal, handle.get(), SIGKILL, nullptr, 0);
}

}  // namespace layerfarm::worker::process
