// One simulated life: a coordinator (several, one after the other, when it is killed), worker
// processes, and the network between them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/checkers.h"
#include "tests/sim/coordinator.h"
#include "tests/sim/process.h"
#include "tests/sim/world.h"

namespace layerfarm::sim {

struct Life {
  std::string failure;  ///< empty: all rules held
  std::vector<std::string> transcript;
  base::Time ended{0};
  std::uint64_t steps = 0;
  std::uint64_t coordinators = 0;
  std::uint64_t processes = 0;
  /// The verdict of each job, in words that do not depend on who gave it when.
  std::vector<std::string> verdicts;
};

/// Lives through the seed's life until all is settled.
[[nodiscard]] Life live(std::uint64_t seed, bool recording);

}  // namespace layerfarm::sim
