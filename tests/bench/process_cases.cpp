// Process cases through the whole command (chip `true`: command, plan, core, ZeroMQ, workers,
// launcher, durable store, report), beside a bare loop that starts `true` as often in as many
// slots. Prints a JSON line per number of slots; the ratio is ours / bare, 0.85 is wanted.
//
// Usage: bench_process_cases [CASES_PER_SLOT [SLOTS...]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/bench/bare_children.h"
#include "tests/bench/whole_command.h"

namespace {

using namespace layerfarm;
constexpr int kRounds = 5;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Seconds of one discover over a fresh cache, start and end of all processes included.
double whole_command(int slots, int cases) {
  const bench::KnownModel model(static_cast<std::uint32_t>(cases));
  const auto begun = bench::Clock::now();
  model.discover("true", {"--workers", std::to_string(slots)});
  return bench::seconds_since(begun);
}

}  // namespace

int main(int argc, char** argv) {
  const int per_slot = argc > 1 ? std::atoi(argv[1]) : 4000;
  std::vector<int> slots;
  for (int i = 2; i < argc; ++i) slots.push_back(std::atoi(argv[i]));
  if (slots.empty()) slots = {1, 2};
  for (const int count : slots) {
    // In turns, so that a busy moment of the machine meets both.
    std::vector<double> ours;
    std::vector<double> bare;
    std::vector<double> ratios;
    for (int round = 0; round < kRounds; ++round) {
      bare.push_back(count * per_slot / bench::seconds_of_bare_children(count, per_slot));
      ours.push_back(count * per_slot / whole_command(count, count * per_slot));
      ratios.push_back(ours.back() / bare.back());
    }
    std::printf(
        "{\"name\":\"process cases, whole command, %d slot%s\",\"value\":%.0f,\"unit\":\"cases/s\","
        "\"peer\":\"posix_spawn loop with the same pipes, session, limits and scratch folder\","
        "\"peer_value\":%.0f,\"ratio\":%.3f}\n",
        count, count == 1 ? "" : "s", median(ours), median(bare), median(ratios));
    std::fflush(stdout);
  }
  std::error_code ignored;
  std::filesystem::remove_all(bench::scratch_parent(), ignored);
  return 0;
}
