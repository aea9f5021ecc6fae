// A million cases in the coordinator: by how much the resident memory of the real `layerfarm`
// grows per case. The model has 10,000 layers, the chip 100 executors, so no two cases share
// anything.
//
// Held: every case is planned and in the core, two are at their workers, whose tool sleeps. So
// nothing but plan and core has grown; the base, with the model in it, is the same with one
// executor. All: chip of the null toolchain, to the end; what is on top is the results (index of
// the store, reports and their texts).
#include <signal.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "tests/bench/whole_command.h"

namespace {

using namespace layerfarm;
using namespace std::chrono_literals;
constexpr std::uint32_t kLayers = 10'000;
constexpr int kExecutors = 100;
constexpr auto kLongest = 120s;

std::string chip_text(const std::string& name, int executors, const std::string& rest) {
  std::string out = "{\"chip_name\": \"" + name + "\", \"executors\": [";
  for (int i = 0; i < executors; ++i) {
    out += std::string(i == 0 ? "" : ", ") + "{\"name\": \"e" + std::to_string(i) +
           "\", \"evidence\": \"stand-in\"}";
  }
  return out + "], " + rest + "}";
}

void make_chip(const std::filesystem::path& folder, const std::string& name, int executors,
               const std::string& rest) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / (name + ".json")) << chip_text(name, executors, rest);
}

/// A line of /proc/PID/status in bytes; 0 when it cannot be read.
double status_bytes(pid_t pid, const std::string& field) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + ":")) return std::stod(line.substr(field.size() + 1)) * 1024;
  }
  return 0;
}

struct Held {
  double now = 0;
  double peak = 0;
};

/// Resident bytes of a coordinator that has planned all and waits for its sleeping tools; then ends
/// it.
Held held(int executors) {
  const bench::KnownModel model(kLayers);
  const std::filesystem::path chips = model.path() / "chips";
  make_chip(chips, "sleeper", executors,
            R"("toolchain": "process", "options": {"command": ["sleep", "1000"]})");
  const pid_t pid = model.start(
      "sleeper", {"--workers", "2", "--chips-dir", chips.string(), "--run-timeout", "1000"});
  // It is quiet once all is planned: five seconds without growth.
  Held out;
  auto grown = bench::Clock::now();
  const auto begun = grown;
  while (bench::Clock::now() - grown < 5s && bench::Clock::now() - begun < kLongest) {
    std::this_thread::sleep_for(50ms);
    const double now = status_bytes(pid, "VmRSS");
    if (now > out.now) {
      out.now = now;
      grown = bench::Clock::now();
    }
  }
  out.now = status_bytes(pid, "VmRSS");
  out.peak = status_bytes(pid, "VmHWM");
  ::kill(pid, SIGTERM);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return out;
}

/// Greatest resident bytes of a whole run.
double whole(int executors) {
  const bench::KnownModel model(kLayers);
  const std::filesystem::path chips = model.path() / "chips";
  make_chip(chips, "nothing", executors, R"("toolchain": "null")");
  const rusage used = model.discover("nothing", {"--workers", "2", "--chips-dir", chips.string()});
  return static_cast<double>(used.ru_maxrss) * 1024;
}

void print(const char* name, double value, const char* unit, const char* peer, double peer_value) {
  std::printf(
      "{\"name\": \"%s\", \"value\": %.1f, \"unit\": \"%s\", \"peer\": \"%s\", \"peer_value\": "
      "%.0f, \"ratio\": %.3f}\n",
      name, value, unit, peer, peer_value, value / peer_value);
  std::fflush(stdout);
}

}  // namespace

int main() {
  const double more = static_cast<double>(kLayers) * (kExecutors - 1);
  const Held one = held(1);
  const Held all = held(kExecutors);
  print("a million cases, whole command, plan and core", (all.now - one.now) / more, "bytes/case",
        "limit", 400);
  print("the same, greatest while planning", (all.peak - one.peak) / more, "bytes/case", "limit",
        400);
  print("base with a model of 10,000 layers", one.now / 1048576, "MiB", "of the figure above, MiB",
        all.now / 1048576);
  const double small = whole(1);
  const double large = whole(kExecutors);
  print("a million cases run to the end, greatest, with all results", (large - small) / more,
        "bytes/case", "plan and core", (all.now - one.now) / more);
  return 0;
}
