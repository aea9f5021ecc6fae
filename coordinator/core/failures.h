// The failure policy (design.md, section 6) as a pure decision: what happened to a job so far, plus
// one more thing, gives what is done about it. Internal to coordinator/core.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/core/ids.h"
#include "coordinator/core/policy.h"
#include "shared/domain/outcome.h"

namespace layerfarm::coordinator::core {

/// What went wrong with a job so far. Only jobs with trouble have one.
struct Trouble {
  std::uint8_t crashes = 0;
  std::uint8_t timeouts = 0;
  std::uint8_t memory_kills = 0;
  std::uint8_t deaths = 0;     ///< workers that died unplanned under it
  std::uint8_t faults = 0;     ///< infrastructure faults, deaths and losses of workers included
  std::uint8_t unstarted = 0;  ///< times that it was lost with a worker that had not begun it
  std::uint8_t lost_blobs = 0;
  std::uint8_t awaits = 0;  ///< producers outside its needs that run again for it
  std::uint8_t memory_factor = 1;
  bool alone = false;
  std::vector<WorkerId> places;  ///< distinct places with faults
  std::vector<WorkerId> avoid;   ///< sorted: places, and where its tool crashed
  AttemptId last;                ///< the last attempt that went wrong
};

/// What can happen to an attempt besides an answer that is final by itself.
enum class Mishap : std::uint8_t {
  Crashed,
  TimedOut,
  OverMemory,
  Fault,       ///< infrastructure: disk full, tool missing there, blob damaged
  WorkerLost,  ///< begun, then the worker was silent or its link broke
  WorkerDied,  ///< begun, then the worker's process died
  Unstarted,   ///< leased, not begun, then the worker was lost
};

enum class Remedy : std::uint8_t {
  Again,        ///< back to the queue, under the limits that Trouble now holds
  Verdict,      ///< the attempt's outcome is the answer
  KillsWorker,  ///< a verdict of its own
  Unsettled,    ///< no verdict
};

/// Notes `what` at `place` in `trouble` and decides. Every path ends: each counter has a bound.
[[nodiscard]] Remedy decide(Trouble& trouble, Mishap what, WorkerId place, AttemptId attempt,
                            const CorePolicy& policy);

/// Whether `trouble` limits where, or with what, the job may run.
[[nodiscard]] bool is_special(const Trouble& trouble);

/// How long a job rests before a place that failed for it is tried again.
[[nodiscard]] base::Duration rest(const Trouble& trouble, const CorePolicy& policy);

}  // namespace layerfarm::coordinator::core
