// All state of the core. Topics (flow, dispatch, registration, attempts, watch, ability) are files
// of functions over it. Internal to coordinator/core.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "coordinator/core/actions.h"
#include "coordinator/core/failures.h"
#include "coordinator/core/jobs.h"
#include "coordinator/core/leases.h"
#include "coordinator/core/policy.h"
#include "coordinator/core/queues.h"
#include "coordinator/core/timers.h"
#include "coordinator/core/workers.h"

namespace layerfarm::coordinator::core {

struct State {
  explicit State(CorePolicy given) : policy(given), next_attempt(given.first_attempt) {}

  CorePolicy policy;

  // ---- jobs ----
  JobTable jobs;
  std::vector<ReadyQueue> queues;
  std::map<QueueKey, std::uint16_t> queue_of;
  std::vector<std::uint16_t> batch;             ///< by group
  std::unordered_map<JobId, Trouble> troubles;  ///< looked up, never walked
  std::map<JobId, std::vector<JobId>>
      awaiting;                         ///< producer -> jobs that wait for it beside their needs
  std::map<JobId, base::Time> resting;  ///< and until when

  // ---- workers ----
  std::map<WorkerId, Worker> workers;
  std::map<HostId, Host> hosts;
  std::vector<Kind> kinds;
  std::map<std::vector<ClassId>, std::uint32_t> kind_of;
  std::vector<WorkClass> classes;  ///< by ClassId
  std::uint32_t workers_expected = 0;

  std::uint32_t draining_hosts = 0;

  // ---- leases ----
  LeaseTable leases;
  std::uint64_t next_attempt;
  /// Leases that wait behind another one and are untouched: (first attempt, slot).
  std::set<std::pair<AttemptId, std::uint32_t>> prefetched;

  /// Attempts that were begun and lost with their workers; such a worker may come back with them.
  /// Only the newest few thousand.
  std::map<AttemptId, JobId> orphans;

  // ---- time ----
  base::Time now{0};
  base::Duration blind{0};  ///< how long we ourselves were late, in all
  Timers timers;

  // ---- this turn ----
  std::vector<Action> actions;
  std::map<WorkerId, std::vector<AttemptId>> cancels;  ///< to be said at the end of the turn
  std::vector<ClassId> dirty_classes;                  ///< something became ready, or fit
  std::set<std::uint32_t> dirty_kinds;                 ///< some worker became hungry

  bool ticking = false;  ///< the event is a Tick
  bool paused = false;
  bool stopping = false;
  bool stopped_said = false;
  bool settled_said = true;

  /// The clock that runs only while we attend: silence is measured by it.
  [[nodiscard]] base::Time attentive() const { return now - blind; }
  [[nodiscard]] WorkClass& class_at(ClassId ability);
  [[nodiscard]] WorkClass& class_of(JobId job) { return classes[queue(job).key().ability.value()]; }
  [[nodiscard]] ReadyQueue& queue(JobId job) { return queues[jobs[job].queue]; }
  [[nodiscard]] const ReadyQueue& queue(JobId job) const { return queues[jobs[job].queue]; }
  [[nodiscard]] Worker* worker(WorkerId id);
  [[nodiscard]] const Trouble* trouble(JobId job) const;
  void emit(Action action) { actions.push_back(std::move(action)); }
  void mark_dirty(ClassId ability);
};

}  // namespace layerfarm::coordinator::core
