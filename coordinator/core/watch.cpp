#include "coordinator/core/watch.h"

#include <algorithm>

#include "coordinator/core/ability.h"
#include "coordinator/core/flow.h"
#include "coordinator/core/leasing.h"
#include "coordinator/core/registration.h"

namespace layerfarm::coordinator::core {
namespace {

/// When the job in hand is over every bound that the worker itself has for it; empty = unbounded.
std::optional<base::Time> overdue_at(const State& state, const Worker& worker) {
  if (worker.leases.empty()) return std::nullopt;
  std::chrono::milliseconds bound{0};
  bool begun = false;
  for (const Item& item : state.leases[worker.leases.front()].items) {
    if (item.state != ItemState::Begun) continue;
    const std::uint32_t limit_ms = state.jobs[item.job].limit_ms;
    if (limit_ms == 0) return std::nullopt;
    bound += std::chrono::milliseconds(limit_ms);
    begun = true;
  }
  if (!begun) return std::nullopt;
  return worker.progress + bound + state.policy.overdue_slack;
}

void drop_worker(State& state, WorkerId id, DropReason reason) {
  state.emit(DropWorker{id, reason});
  remove_worker(state, id, Departure::Lost);
}

void suspect(State& state, WorkerId id, Worker& worker, bool is_suspect) {
  if (worker.suspect == is_suspect) return;
  worker.suspect = is_suspect;
  refresh(state, id);
}

void wake_if_rested(State& state, JobId job) {
  const auto it = state.resting.find(job);
  if (it != state.resting.end() && it->second <= state.now) wake(state, job);
}

void ask_hello(State& state, WorkerId id, Worker& worker) {
  if (state.now - worker.asked_hello < state.policy.idle_grace) return;
  worker.asked_hello = state.now;
  state.emit(AskHello{id});
}

}  // namespace

void advance(State& state, base::Time now) {
  now = std::max(now, state.now);
  if (const auto due = state.timers.next(); due && now > *due + state.policy.lag) {
    state.blind += now - std::max(*due, state.now);
  }
  state.now = now;
}

void heard(State& state, WorkerId id) {
  Worker* worker = state.worker(id);
  if (worker == nullptr) return;
  worker->heard = state.attentive();
  suspect(state, id, *worker, false);
}

void check_heartbeat(State& state, const WorkerHeard& event) {
  Worker* worker = state.worker(event.worker);
  if (worker == nullptr) return;
  const base::Duration quiet = state.now - worker->progress;
  const bool lost_lease = event.idle && !worker->leases.empty() && quiet >= state.policy.idle_grace;
  const bool lost_answer =
      worker->astray_since && state.now - *worker->astray_since >= state.policy.idle_grace;
  if (lost_lease || lost_answer) ask_hello(state, event.worker, *worker);
  if (event.attempt == AttemptId{}) return;
  for (const std::uint32_t slot : worker->leases) {
    const Item* item = state.leases[slot].find(event.attempt);
    // Asked back, and it goes on: the request may have been lost, so it is said again.
    if (item != nullptr && item->state == ItemState::Fenced) {
      state.cancels[event.worker].push_back(event.attempt);
    }
    if (item != nullptr) return;
  }
  state.cancels[event.worker].push_back(event.attempt);  // not ours any more
}

void watch(State& state, WorkerId id) {
  Worker* worker = state.worker(id);
  if (worker == nullptr) return;
  const base::Duration silent = state.attentive() - worker->heard;
  if (silent >= state.policy.silent_after) {
    drop_worker(state, id, DropReason::Silent);
    return;
  }
  const std::optional<base::Time> overdue = overdue_at(state, *worker);
  if (overdue && state.now >= *overdue) {
    drop_worker(state, id, DropReason::Overdue);
    return;
  }
  suspect(state, id, *worker, silent >= state.policy.suspect_after);
  refresh(state, id);  // a probe may be due, or it declines no more
  const base::Duration patience =
      worker->suspect ? state.policy.silent_after : state.policy.suspect_after;
  base::Time next = worker->heard + state.blind + patience;
  if (overdue) next = std::min(next, *overdue);
  if (worker->next_look > state.now && worker->next_look <= next) return;  // armed already
  worker->next_look = next;
  state.timers.arm(next, TimerKind::Worker, id.value());
}

void fire_timers(State& state) {
  while (const auto timer = state.timers.pop_due(state.now)) {
    switch (timer->kind) {
      case TimerKind::Worker:
        watch(state, WorkerId{timer->id});
        break;
      case TimerKind::Job:
        wake_if_rested(state, JobId{timer->id});
        break;
      case TimerKind::Class:
        state.mark_dirty(ClassId{static_cast<std::uint16_t>(timer->id)});
        break;
    }
  }
}

}  // namespace layerfarm::coordinator::core
