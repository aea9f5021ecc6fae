#include "tests/support/worker/processes.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

#include "worker/process/process_tree.h"

namespace layerfarm::test {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();  // unlike an iterator it does not throw when the process ends meanwhile
  return out.str();
}

bool zombie(pid_t pid) {
  const std::string stat = content("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t bracket = stat.rfind(')');
  return bracket == std::string::npos || bracket + 2 >= stat.size() || stat[bracket + 2] == 'Z' ||
         stat[bracket + 2] == 'X';
}

template <typename Condition>
bool within(std::chrono::milliseconds time, Condition condition) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace

std::vector<pid_t> processes_with(const std::string& word) {
  std::vector<pid_t> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc{} || end != name.data() + name.size()) continue;
    if (content(entry.path() / "cmdline").find(word) != std::string::npos && !zombie(pid))
      out.push_back(pid);
  }
  return out;
}

bool gone_within(const std::string& word, std::chrono::milliseconds time) {
  return within(time, [&] { return processes_with(word).empty(); });
}

bool there_within(const std::string& word, std::size_t count, std::chrono::milliseconds time) {
  return within(time, [&] { return processes_with(word).size() >= count; });
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::size_t zombies_below(pid_t root) {
  const auto all = worker::process::descendants(root);
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), zombie));
}

std::string unique_word() {
  static int count = 0;
  return "marker-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

}  // namespace layerfarm::test
