#include "coordinator/core/core.h"

#include "coordinator/core/ability.h"
#include "coordinator/core/attempts.h"
#include "coordinator/core/dispatch.h"
#include "coordinator/core/flow.h"
#include "coordinator/core/leasing.h"
#include "coordinator/core/registration.h"
#include "coordinator/core/watch.h"

namespace layerfarm::coordinator::core {
namespace {

void take(State& state, const GroupsAdded& event) { add_groups(state, event); }
void take(State& state, const JobsAdded& event) { add_jobs(state, event); }
void take(State& state, const JobsDropped& event) { drop_jobs(state, event); }
void take(State& state, const JobsWanted& event) { want_jobs(state, event); }
void take(State& state, const WorkerJoined& event) { worker_joined(state, event); }
void take(State& state, const WorkerLeft& event) { worker_left(state, event); }

void take(State& state, const WorkersExpected& event) {
  state.workers_expected = event.count;
  judge_all_abilities(state);
}

void take(State& state, const AttemptsStarted& event) {
  heard(state, event.worker);
  attempts_started(state, event);
}

void take(State& state, const AttemptsEnded& event) {
  heard(state, event.worker);
  attempts_ended(state, event);
}

void take(State& state, const WorkerHeard& event) {
  heard(state, event.worker);
  check_heartbeat(state, event);
}

void take(State& state, const LeasingPaused& event) { state.paused = event.paused; }
void take(State&, const Tick&) {}

void take(State& state, const Stop& event) {
  state.stopping = true;
  if (!event.now) return;
  for (const auto& [id, worker] : state.workers) {
    for (const std::uint32_t slot : worker.leases) {
      for (Item& item : state.leases[slot].items) {
        if (item.state != ItemState::Closed) cancel(state, id, item);
      }
    }
  }
}

void say_what_ended(State& state) {
  if (!state.settled_said && state.jobs.open() == 0) {
    state.settled_said = true;
    state.emit(AllSettled{});
  }
  if (state.stopping && !state.stopped_said && state.leases.live() == 0) {
    state.stopped_said = true;
    state.emit(Stopped{});
  }
}

void say_cancels(State& state) {
  for (auto& [worker, attempts] : state.cancels) {
    if (state.worker(worker) != nullptr) {
      state.emit(CancelAttempts{worker, std::move(attempts)});
    }
  }
  state.cancels.clear();
}

}  // namespace

Core::Core(CorePolicy policy) : state_(std::make_unique<State>(policy)) {}
Core::~Core() = default;
Core::Core(Core&&) noexcept = default;
Core& Core::operator=(Core&&) noexcept = default;

std::vector<Action> Core::step(const Event& event, base::Time now) {
  State& state = *state_;
  advance(state, now);
  state.ticking = std::holds_alternative<Tick>(event);
  std::visit([&](const auto& e) { take(state, e); }, event);
  fire_timers(state);
  judge_abilities(state);
  dispatch(state);
  say_cancels(state);
  say_what_ended(state);
  return std::exchange(state.actions, {});
}

std::optional<base::Time> Core::next_deadline() const { return state_->timers.next(); }

Counts Core::counts() const {
  const State& state = *state_;
  Counts counts;
  counts.jobs = state.jobs.size();
  counts.settled = state.jobs.count<Settled>() + state.jobs.count<Dropped>();
  counts.waiting = state.jobs.count<Waiting>() + state.jobs.count<Resting>();
  counts.ready = state.jobs.count<Ready>();
  counts.leased = state.jobs.count<Leased>();
  counts.workers = static_cast<std::uint32_t>(state.workers.size());
  for (const auto& [id, worker] : state.workers) {
    if (!worker.leases.empty()) ++counts.busy;
    if (!worker.fit()) ++counts.quarantined;
  }
  return counts;
}

std::size_t Core::bytes_per_job() { return sizeof(Job) + sizeof(Entry); }

}  // namespace layerfarm::coordinator::core
