// What may go wrong in one simulated life, drawn per seed. Chances are per mille.
#pragma once

#include <cstdint>
#include <string>

#include "shared/base/time.h"
#include "tests/sim/random.h"

namespace layerfarm::sim {

struct Faults {
  // messages, both ways
  std::uint32_t lost = 0;
  std::uint32_t doubled = 0;
  std::uint32_t delayed = 0;    ///< by up to `longest_delay`
  std::uint32_t reordered = 0;  ///< may overtake and be overtaken
  base::Duration longest_delay = std::chrono::seconds(3);

  // worker processes, per begun job
  std::uint32_t crash = 0;
  std::uint32_t stop = 0;       ///< stands still for a while, or for good (as SIGSTOP does)
  std::uint32_t unnoticed = 0;  ///< nobody tells the coordinator of a crash

  // jobs, per begun job
  std::uint32_t infrastructure = 0;
  std::uint32_t lost_blob = 0;
  std::uint32_t flake = 0;  ///< the tool crashes once, on a job that is fine
  std::uint32_t slow_workers = 0;
  std::uint32_t bad_worker = 0;  ///< a process on which everything is an infrastructure fault

  // coordinator, per commit
  std::uint32_t coordinator_kill = 0;
  std::uint32_t knows_attempts = 0;  ///< the new one knows what earlier attempts were for

  /// From here on nothing goes wrong any more.
  base::Time until = std::chrono::seconds(60);
};

[[nodiscard]] Faults draw_faults(Random& random);
[[nodiscard]] std::string text_of(const Faults& faults);

}  // namespace layerfarm::sim
