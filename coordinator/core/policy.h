// The numbers of the failure policy and of leasing (docs/scheduling.md says what each is for).
#pragma once

#include <cstdint>

#include "shared/base/time.h"

namespace layerfarm::coordinator::core {

struct CorePolicy {
  /// First attempt number of this life of the coordinator: greater than any of an earlier life (for
  /// example its epoch << 32).
  std::uint64_t first_attempt = 1;
  /// One machine with workers of our own: the last fit worker is never quarantined.
  bool local = true;

  // ---- leasing ----
  std::uint32_t max_jobs_per_lease = 256;
  /// As many jobs as take about so long (a batch may take longer).
  base::Duration lease_target = std::chrono::milliseconds(100);
  /// Guided self-scheduling: a lease is at most 1/(shares x fit workers) of what is ready.
  std::uint32_t shares = 2;
  /// So long an exclusive job waits for its host to be idle by itself; then the host is drained.
  base::Duration exclusive_patience = std::chrono::minutes(5);
  /// A worker that idles gets what was prefetched for another and is not begun.
  bool recall = true;
  /// ... when waiting for it would take longer than this.
  base::Duration recall_over = std::chrono::milliseconds(20);

  // ---- failures ----
  std::uint32_t tries_per_kind = 2;    ///< signal, time-out, memory: tries until it is the verdict
  std::uint8_t memory_factor = 2;      ///< claim of the second try after a memory kill
  std::uint32_t max_places = 3;        ///< distinct places with faults until unsettled
  std::uint32_t max_faults = 6;        ///< faults in all until unsettled, where places are fewer
  std::uint32_t deaths_alone = 2;      ///< unplanned worker deaths until a job is leased alone
  std::uint32_t deaths_verdict = 3;    ///< ... until it is said to kill its worker
  std::uint32_t max_unstarted = 20;    ///< workers lost before they had begun it, until unsettled
  std::uint32_t max_lost_blobs = 5;    ///< times that a job may find what it needs lost
  std::uint32_t quarantine_after = 3;  ///< faults in a row of one worker
  /// Before a job goes back to a place that failed for it, when there is no other; doubles.
  base::Duration retry_wait = std::chrono::seconds(1);
  base::Duration probe_first = std::chrono::seconds(5);  ///< until the first probe; doubles
  base::Duration probe_longest = std::chrono::minutes(5);
  /// How long a job waits when nothing connected can do it.
  base::Duration wait_workers{0};

  // ---- silence, by the coordinator's clock only ----
  base::Duration suspect_after = std::chrono::seconds(8);  ///< no new leases
  base::Duration silent_after = std::chrono::seconds(15);  ///< lost
  /// A Tick later than this was our own fault: workers' silence meanwhile does not count.
  base::Duration lag = std::chrono::seconds(1);
  /// So long what a worker says may differ from what it was given, until it is asked for a Hello.
  base::Duration idle_grace = std::chrono::seconds(5);
  base::Duration overdue_slack = std::chrono::seconds(30);  ///< over the worker's own limits
};

}  // namespace layerfarm::coordinator::core
