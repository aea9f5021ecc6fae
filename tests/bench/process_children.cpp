// What a bounded child costs: PosixProcessRunner against a bare loop that gives each child the same
// pipes, session, limits and scratch folder. The tool is `true`. Prints a JSON line per number of
// slots; the ratio is ours / bare, 0.85 is wanted.
//
// Usage: bench_process_children [CHILDREN_PER_SLOT [SLOTS...]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/bare_children.h"
#include "worker/process/launcher.h"
#include "worker/process/posix_process_runner.h"

namespace {

using namespace layerfarm;
constexpr int kRounds = 7;

void our_child(worker::process::PosixProcessRunner& runner,
               const worker::process::CancelToken& cancel) {
  auto scratch = base::ScratchFolder::make(bench::scratch_parent(), "ours");
  if (!scratch) bench::fail("no scratch folder");
  worker::process::Command command;
  command.argv = {"/bin/true"};
  command.folder = scratch->path();
  command.bounds = {.wall = std::chrono::seconds(60),
                    .memory_bytes = bench::kMemoryBytes,
                    .output_bytes = 1 << 24,
                    .file_bytes = bench::kFileBytes};
  if (!runner.run(command, cancel).ok()) bench::fail("a child failed");
}

double cpu_seconds_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Measured {
  double per_second = 0;
  double cpu_us = 0;
};

/// A slot of ours: a launcher of its own, then so many children.
auto our_slot(int children) {
  auto launcher = worker::process::Launcher::start();
  if (!launcher) bench::fail("no launcher");
  return [launcher = std::move(*launcher), children] {
    const worker::process::CancelToken cancel;
    worker::process::PosixProcessRunner runner(*launcher);
    for (int i = 0; i < children; ++i) our_child(runner, cancel);
  };
}

Measured measure(bool ours, int slots, int children) {
  const double cpu_before = cpu_seconds_of_children();
  const double seconds =
      ours ? bench::seconds_of_slots(slots, [children] { return our_slot(children); })
           : bench::seconds_of_bare_children(slots, children);
  return {slots * children / seconds,
          (cpu_seconds_of_children() - cpu_before) * 1e6 / (slots * children)};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int children = argc > 1 ? std::atoi(argv[1]) : 500;
  std::vector<int> slots;
  for (int i = 2; i < argc; ++i) slots.push_back(std::atoi(argv[i]));
  if (slots.empty()) slots = {1, 2};
  for (const int count : slots) {
    // In turns, so that a busy moment of the machine meets both.
    std::vector<Measured> ours;
    std::vector<Measured> bare;
    for (int round = 0; round < kRounds; ++round) {
      bare.push_back(measure(/*ours=*/false, count, children));
      ours.push_back(measure(/*ours=*/true, count, children));
    }
    const auto line = [&](const char* what, const char* unit, double Measured::* field,
                          bool more_is_better) {
      std::vector<double> our_values;
      std::vector<double> bare_values;
      std::vector<double> ratios;
      for (int round = 0; round < kRounds; ++round) {
        our_values.push_back(ours[round].*field);
        bare_values.push_back(bare[round].*field);
        ratios.push_back(more_is_better ? our_values.back() / bare_values.back()
                                        : bare_values.back() / our_values.back());
      }
      std::printf(
          "{\"name\":\"%s, %d slot%s\",\"value\":%.0f,\"unit\":\"%s\",\"peer\":\"posix_spawn loop "
          "with the same pipes, session, limits and scratch "
          "folder\",\"peer_value\":%.0f,\"ratio\":%.3f}\n",
          what, count, count == 1 ? "" : "s", median(our_values), unit, median(bare_values),
          median(ratios));
    };
    line("process children", "children/s", &Measured::per_second, true);
    line("processor time of a child", "us", &Measured::cpu_us, false);
    std::fflush(stdout);
  }
  std::error_code ignored;
  std::filesystem::remove_all(bench::scratch_parent(), ignored);
  return 0;
}
