// Hundreds of simulated lives, each from a seed. A failing one prints its seed, the command that
// replays it, and the end of its transcript.
//   LAYERFARM_SIM_SEED=N    only this seed, with its whole transcript
//   LAYERFARM_SIM_SEEDS=N   so many seeds (a soak)
//   LAYERFARM_SIM_FROM=N    beginning with this one
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/sim/cluster.h"
#include "tests/support/coordinator/scheduler_text.h"

namespace layerfarm::sim {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : std::strtoull(value, nullptr, 10);
}

void print_transcript(const Life& life, std::size_t most) {
  const std::size_t all = life.transcript.size();
  for (std::size_t i = all > most ? all - most : 0; i < all; ++i) {
    std::cout << life.transcript[i] << "\n";
  }
}

bool holds(std::uint64_t seed) {
  const Life life = live(seed, /*recording=*/false);
  if (life.failure.empty()) return true;
  const Life again = live(seed, /*recording=*/true);
  std::cout << "seed " << seed << ": " << life.failure << "\n"
            << "replay: LAYERFARM_SIM_SEED=" << seed << " scripts/test sim\n";
  print_transcript(again, 60);
  if (again.failure != life.failure) std::cout << "and it was not the same twice\n";
  return false;
}

TEST_CASE("every rule holds in hundreds of lives with seeded faults") {
  if (const std::uint64_t seed = from_environment("LAYERFARM_SIM_SEED", 0); seed != 0) {
    const Life life = live(seed, /*recording=*/true);
    print_transcript(life, life.transcript.size());
    CHECK(life.failure == "");
    return;
  }
  const std::uint64_t count = from_environment("LAYERFARM_SIM_SEEDS", 1000);
  const std::uint64_t first = from_environment("LAYERFARM_SIM_FROM", 1);
  int failed = 0;
  for (std::uint64_t seed = first; seed < first + count && failed < 3; ++seed) {
    if (!holds(seed)) ++failed;
  }
  CHECK(failed == 0);
}

TEST_CASE("the same seed is lived through in the same way") {
  for (const std::uint64_t seed : {7U, 21U, 77U}) {
    const Life one = live(seed, /*recording=*/true);
    const Life two = live(seed, /*recording=*/true);
    CHECK(one.transcript == two.transcript);
    CHECK(one.verdicts == two.verdicts);
  }
}

TEST_CASE("the faults do happen: coordinators are killed, workers die, verdicts differ") {
  std::uint64_t coordinators = 0;
  std::uint64_t processes = 0;
  std::size_t odd = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Life life = live(seed, /*recording=*/false);
    coordinators += life.coordinators;
    processes += life.processes;
    for (const std::string& verdict : life.verdicts) odd += verdict != "done" ? 1 : 0;
  }
  CHECK(coordinators > 50);
  CHECK(processes > 200);
  CHECK(odd > 100);
}

}  // namespace
}  // namespace layerfarm::sim
