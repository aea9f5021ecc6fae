#include "coordinator/core/ability.h"

#include <utility>
#include <vector>

#include "coordinator/core/flow.h"
#include "coordinator/core/leasing.h"

namespace layerfarm::coordinator::core {
namespace {

/// Every ready job of an ability, most urgent first within its queue.
std::vector<JobId> ready_jobs(State& state, const WorkClass& work) {
  std::vector<JobId> jobs;
  for (const std::uint16_t index : work.queues) {
    ReadyQueue& queue = state.queues[index];
    for (const auto& [avoid, entries] : queue.specials()) {
      for (const Entry& entry : entries) jobs.emplace_back(entry.job);
    }
    for (const JobId job : queue.normal_jobs(state.jobs)) jobs.push_back(job);
  }
  return jobs;
}

void give_up(State& state, ClassId ability) {
  for (const JobId job : ready_jobs(state, state.class_at(ability))) {
    if (!state.jobs.is<Ready>(job)) continue;  // settled by one before it
    settle(state, job,
           Unsettled{.reason = UnsettledReason::NoWorker, .cause = job, .ability = ability});
  }
}

/// Said and acted on with a Tick after the turn in which it began, so that the caller has its
/// chance to say that workers are on their way.
void judge_missing(State& state, ClassId ability) {
  WorkClass& work = state.class_at(ability);
  const bool missing = work.all_ready() > 0 && work.fit == 0 && state.workers_expected == 0;
  if (!missing) {
    if (std::exchange(work.missing_said, false) && work.fit > 0) state.emit(AbilityFound{ability});
    work.missing_since.reset();
    return;
  }
  if (!work.missing_since) {
    work.missing_since = state.now;
    state.timers.arm(state.now, TimerKind::Class, ability.value());
    state.timers.arm(state.now + state.policy.wait_workers, TimerKind::Class, ability.value());
    return;
  }
  if (!state.ticking) {
    state.timers.arm(state.now, TimerKind::Class, ability.value());
    return;
  }
  if (!std::exchange(work.missing_said, true)) {
    state.emit(AbilityMissing{ability, work.all_ready()});
  }
  if (state.now < *work.missing_since + state.policy.wait_workers) return;
  work.missing_since.reset();
  give_up(state, ability);
}

void wait_for_host(State& state, ClassId ability) {
  state.class_at(ability).exclusive_since = state.now;
  state.timers.arm(state.now + state.policy.exclusive_patience, TimerKind::Class, ability.value());
}

/// After so much patience one host is drained for the exclusive job.
void judge_exclusive(State& state, ClassId ability) {
  WorkClass& work = state.class_at(ability);
  if (work.ready[static_cast<std::size_t>(Flavour::Exclusive)] == 0) {
    return;
  }
  if (!work.exclusive_since) wait_for_host(state, ability);
  if (state.now < *work.exclusive_since + state.policy.exclusive_patience) return;
  for (auto& [id, host] : state.hosts) {
    for (const WorkerId worker : host.workers) {
      const Worker& candidate = state.workers.at(worker);
      if (!candidate.fit() || !state.kinds[candidate.kind].able(ability)) continue;
      if (!host.exclusive && !host.draining) {
        host.draining = true;
        ++state.draining_hosts;
        refresh_host(state, id);
      }
      return;
    }
  }
}

/// A host that was drained for work that is gone is free again.
void end_draining(State& state) {
  for (auto& [id, host] : state.hosts) {
    if (!host.draining) continue;
    bool wanted = false;
    for (const WorkerId worker : host.workers) {
      for (const ClassId ability : state.kinds[state.workers.at(worker).kind].classes) {
        wanted = wanted || state.class_at(ability).exclusive_since.has_value();
      }
    }
    if (wanted) continue;
    host.draining = false;
    --state.draining_hosts;
    refresh_host(state, id);
  }
}

}  // namespace

void judge_abilities(State& state) {
  if (state.stopping) return;
  // Giving up settles jobs, which may make others ready: those are judged in turn.
  for (std::size_t i = 0; i < state.dirty_classes.size(); ++i) {
    const ClassId ability = state.dirty_classes[i];
    judge_missing(state, ability);
    judge_exclusive(state, ability);
  }
  if (state.draining_hosts > 0) end_draining(state);
}

void judge_all_abilities(State& state) {
  for (std::size_t i = 0; i < state.classes.size(); ++i) {
    state.mark_dirty(ClassId{static_cast<std::uint16_t>(i)});
  }
}

}  // namespace layerfarm::coordinator::core
