// What there is to do in one simulated life: jobs, and of each what comes of it when nothing goes
// wrong around it. The verdicts are to be a function of this alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "coordinator/core/job_spec.h"
#include "shared/base/time.h"
#include "tests/sim/random.h"

namespace layerfarm::sim {

enum class Nature : std::uint8_t {
  Fine,
  Refused,
  Crashes,
  TimesOut,
  FillsMemory,
  TightMemory,  ///< too much for the usual claim, fine with twice that
  PrintsALot,
  KillsWorker,
};

struct SimJob {
  coordinator::core::JobSpec spec;
  Nature nature = Nature::Fine;
  base::Duration takes{0};
  /// Skip mode: wanted only when that job fails.
  std::optional<coordinator::core::JobId> instead_of = {};
};

struct Workload {
  std::vector<coordinator::core::GroupSpec> groups;
  std::vector<SimJob> jobs;  ///< by id
  /// Jobs from here on are known only once job 0 (analyze) has succeeded.
  std::size_t first_wave = 1;
  std::uint16_t classes = 1;
};

[[nodiscard]] Workload draw_workload(Random& random);

/// The ending that this job has by itself; empty for one that kills its worker.
[[nodiscard]] std::optional<domain::Ending> own_ending(Nature nature, std::uint8_t memory_factor);

}  // namespace layerfarm::sim
