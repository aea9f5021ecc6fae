// Why a job is where it is, as data.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "coordinator/core/ids.h"
#include "shared/base/time.h"

namespace layerfarm::coordinator::core {

enum class Why : std::uint8_t {
  Settled,       ///< it has its answer
  Dropped,       ///< nobody wants it any more
  Running,       ///< a worker has begun it
  Leased,        ///< a worker has it in hand, not begun
  NeedsJob,      ///< another job must succeed first (`job`)
  NoWorker,      ///< nothing connected can do it (`ability`)
  Quarantined,   ///< what could do it is quarantined (`ability`)
  Queued,        ///< the workers that can do it are busy
  OtherWorker,   ///< it waits for another worker than those that failed for it
  Resting,       ///< waits until `until` before a place is tried again
  WaitsForHost,  ///< exclusive: its host is busy
  Speculative,   ///< only when a worker would idle
  Paused,        ///< leasing is paused or stopped
};
[[nodiscard]] std::string_view why_name(Why why);

struct Explanation {
  Why why = Why::Queued;
  std::optional<JobId> job;          ///< NeedsJob
  std::optional<WorkerId> worker;    ///< Running, Leased
  std::optional<AttemptId> attempt;  ///< Running, Leased
  ClassId ability{};                 ///< what it takes
  std::uint32_t able_workers = 0;    ///< connected, quarantined included
  std::uint32_t fit_workers = 0;     ///< able and not quarantined
  std::uint32_t queued_before = 0;   ///< ready jobs of the same ability
  std::uint32_t faults = 0;          ///< infrastructure faults so far
  std::optional<base::Time> until;   ///< Resting; NoWorker: when it will be given up
};

}  // namespace layerfarm::coordinator::core
