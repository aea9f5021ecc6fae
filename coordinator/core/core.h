// Core: the scheduler. Pure and single-threaded: events and the time go in, actions come out; the
// same sequence always gives the same actions. Owned and called by the coordinator's loop thread
// (coordinator/app), by tests/sim and by tests. Rules: docs/scheduling.md.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/core/actions.h"
#include "coordinator/core/events.h"
#include "coordinator/core/explain.h"
#include "coordinator/core/policy.h"
#include "shared/base/time.h"

namespace layerfarm::coordinator::core {

struct State;

/// Counts for the progress line.
struct Counts {
  std::uint32_t jobs = 0;     ///< ever added
  std::uint32_t settled = 0;  ///< with an answer (known ones included), or dropped
  std::uint32_t waiting = 0;  ///< for other jobs
  std::uint32_t ready = 0;    ///< for a worker
  std::uint32_t leased = 0;   ///< in some worker's hand
  std::uint32_t workers = 0;  ///< connected
  std::uint32_t busy = 0;     ///< of these, with something in hand
  std::uint32_t quarantined = 0;
};

class Core {
 public:
  explicit Core(CorePolicy policy = {});
  ~Core();
  Core(Core&&) noexcept;
  Core& operator=(Core&&) noexcept;

  /// Takes one event. `now` never goes back. Actions are to be carried out in order.
  [[nodiscard]] std::vector<Action> step(const Event& event, base::Time now);

  /// When a Tick is due at the latest; empty = nothing is timed.
  [[nodiscard]] std::optional<base::Time> next_deadline() const;

  /// Why `job` is not running (or that it is).
  [[nodiscard]] Explanation explain(JobId job) const;
  [[nodiscard]] Counts counts() const;

  /// For tests: walks all state; the first broken rule in words, empty when all hold. Linear in
  /// jobs.
  [[nodiscard]] std::string check_invariants() const;
  /// Bytes per job that stay while the job lives, attempts under way not included.
  [[nodiscard]] static std::size_t bytes_per_job();

 private:
  std::unique_ptr<State> state_;
};

}  // namespace layerfarm::coordinator::core
