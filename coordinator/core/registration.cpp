#include "coordinator/core/registration.h"

#include <algorithm>

#include "coordinator/core/attempts.h"
#include "coordinator/core/flow.h"
#include "coordinator/core/leasing.h"
#include "coordinator/core/quarantine.h"
#include "coordinator/core/watch.h"
#include "shared/base/check.h"

namespace layerfarm::coordinator::core {
namespace {

constexpr std::size_t kMostOrphans = 4096;

std::uint32_t kind_for(State& state, std::vector<ClassId> abilities) {
  std::sort(abilities.begin(), abilities.end());
  abilities.erase(std::unique(abilities.begin(), abilities.end()), abilities.end());
  const auto found = state.kind_of.find(abilities);
  if (found != state.kind_of.end()) return found->second;
  const auto index = static_cast<std::uint32_t>(state.kinds.size());
  Kind kind;
  for (const ClassId ability : abilities) {
    state.class_at(ability).kinds.push_back(index);
    if (ability.value() >= kind.can.size()) kind.can.resize(ability.value() + std::size_t{1});
    kind.can[ability.value()] = true;
  }
  kind.classes = abilities;
  state.kinds.push_back(std::move(kind));
  state.kind_of.emplace(std::move(abilities), index);
  return index;
}

void enrol(State& state, WorkerId id, Worker worker) {
  Kind& kind = state.kinds[worker.kind];
  ++kind.workers;
  for (const ClassId ability : kind.classes) ++state.classes[ability.value()].able;
  if (worker.fit()) count_fit(state, kind, +1);
  Host& host = state.hosts[worker.host];
  host.workers.insert(id);
  host.leases += static_cast<std::uint32_t>(worker.leases.size());
  state.workers.emplace(id, std::move(worker));
}

/// The counterpart of `enrol`; the worker's leases are the caller's.
Worker strike_off(State& state, WorkerId id) {
  const auto it = state.workers.find(id);
  Worker worker = std::move(it->second);
  Kind& kind = state.kinds[worker.kind];
  if (worker.hungry) kind.hungry.erase({worker.hungry_with, id});
  worker.hungry = false;
  --kind.workers;
  for (const ClassId ability : kind.classes) --state.classes[ability.value()].able;
  if (worker.fit()) count_fit(state, kind, -1);
  Host& host = state.hosts.at(worker.host);
  host.workers.erase(id);
  host.leases -= static_cast<std::uint32_t>(worker.leases.size());
  const HostId host_id = worker.host;
  if (host.workers.empty()) {
    if (host.draining) --state.draining_hosts;
    state.hosts.erase(host_id);
  }
  state.workers.erase(it);
  return worker;
}

/// Calls `each` for every open item of a lease, which it may close.
template <typename F>
void each_open(State& state, std::uint32_t slot, F&& each) {
  // Later jobs of a lease first: they go back on their own account before what they need does.
  for (std::size_t i = state.leases[slot].items.size(); i-- > 0;) {
    if (!state.leases.in_use(slot)) return;
    Item& item = state.leases[slot].items[i];
    if (item.state != ItemState::Closed) each(item);
  }
}

Mishap mishap_of(const Item& item, Departure how) {
  if (item.state != ItemState::Begun) return Mishap::Unstarted;
  return how == Departure::Died ? Mishap::WorkerDied : Mishap::WorkerLost;
}

/// A known process registered again: what it still holds moves over, the rest was lost on the way.
void take_over(State& state, WorkerId old_id, WorkerId id, const std::vector<HeldAttempt>& held) {
  const auto holds = [&](const Item& item) {
    return std::any_of(held.begin(), held.end(),
                       [&](const HeldAttempt& h) { return h.attempt == item.attempt; });
  };
  const std::vector<std::uint32_t> slots = state.workers.at(old_id).leases;
  for (const std::uint32_t slot : slots) {
    each_open(state, slot, [&](Item& item) {
      const bool fenced = item.state == ItemState::Fenced;
      if (holds(item)) {
        // Fenced, and it is still at it: the request to stop was lost, so it is said again.
        if (fenced) state.cancels[id].push_back(item.attempt);
      } else if (fenced) {
        close_item(state, slot, item);
      } else {
        hand_back(state, slot, item);
      }
    });
  }
  Worker old = strike_off(state, old_id);
  for (const std::uint32_t slot : old.leases) state.leases[slot].worker = id;
  Worker fresh = state.workers.at(id);
  strike_off(state, id);
  fresh.leases = std::move(old.leases);
  fresh.alone = old.alone;
  fresh.faults_in_row = old.faults_in_row;
  fresh.quarantine = old.quarantine;
  fresh.lease_ended = old.lease_ended;
  enrol(state, id, std::move(fresh));
  if (const Worker& worker = state.workers.at(id); worker.quarantine) {
    state.timers.arm(worker.quarantine->next_probe, TimerKind::Worker, id.value());
  }
  for (const std::uint32_t slot : state.workers.at(id).leases) {
    if (state.leases[slot].exclusive) state.hosts.at(state.workers.at(id).host).exclusive = true;
  }
}

/// Attempts are given to one worker only, so whoever holds one is that worker, registered anew.
std::optional<WorkerId> earlier_registration(const State& state, const WorkerJoined& event) {
  if (event.replaces) return event.replaces;
  for (std::uint32_t slot = 0; slot < state.leases.slots(); ++slot) {
    if (!state.leases.in_use(slot)) continue;
    const Lease& lease = state.leases[slot];
    for (const HeldAttempt& held : event.held) {
      if (lease.find(held.attempt) != nullptr) return lease.worker;
    }
  }
  return std::nullopt;
}

/// The job that this attempt is taken on for again: it was lost with its worker, or is of an
/// earlier life, and the job is free. What was dealt with in this life must not count twice.
std::optional<JobId> adoptable(const State& state, const HeldAttempt& held) {
  const auto lost = state.orphans.find(held.attempt);
  const bool orphan = lost != state.orphans.end();
  const bool earlier = held.attempt.value() < state.policy.first_attempt;
  const std::optional<JobId> job = orphan ? lost->second : held.job;
  if (!job || !(orphan || earlier) || !state.jobs.contains(*job)) return std::nullopt;
  if (state.jobs.over(*job) || state.jobs.is<Leased>(*job)) return std::nullopt;
  if (const Trouble* trouble = state.trouble(*job)) {
    // An earlier life's attempt may be the one that went wrong; and an orphan runs without what the
    // job is to have by now.
    if (earlier || trouble->alone || trouble->memory_factor > 1) return std::nullopt;
  }
  return job;
}

void remember_orphan(State& state, const Item& item) {
  if (item.state != ItemState::Begun) return;
  state.orphans.emplace(item.attempt, item.job);
  if (state.orphans.size() > kMostOrphans) state.orphans.erase(state.orphans.begin());
}

bool has_in_hand(const State& state, const Worker& worker, AttemptId attempt) {
  return std::any_of(worker.leases.begin(), worker.leases.end(), [&](std::uint32_t slot) {
    const Item* item = state.leases[slot].find(attempt);
    return item != nullptr && item->state != ItemState::Closed;
  });
}

void adopt(State& state, WorkerId id, std::vector<HeldAttempt> held) {
  std::sort(held.begin(), held.end(),
            [](const auto& a, const auto& b) { return a.attempt < b.attempt; });
  std::vector<Item> items;
  for (const HeldAttempt& one : held) {
    if (!items.empty() && items.back().attempt == one.attempt) continue;
    if (has_in_hand(state, state.workers.at(id), one.attempt)) continue;
    const std::optional<JobId> job = adoptable(state, one);
    const Host& host = state.hosts.at(state.workers.at(id).host);
    if (!job || host.exclusive) {
      state.cancels[id].push_back(one.attempt);
      continue;
    }
    state.next_attempt = std::max(state.next_attempt, one.attempt.value() + 1);
    state.orphans.erase(one.attempt);
    leave_queue(state, *job);
    // Held out of every queue until the lease below has it.
    state.jobs.set_state(*job, Leased{});
    items.push_back({.attempt = one.attempt, .job = *job, .state = ItemState::Begun});
  }
  if (items.empty()) return;
  const std::uint32_t slot = state.leases.create();
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    state.jobs.set_state(items[i].job, Leased{slot, i});
  }
  Lease& lease = state.leases[slot];
  lease.queue = state.jobs[items.front().job].queue;
  lease.untouched = false;
  lease.items = std::move(items);
  open_lease(state, id, slot);
}

}  // namespace

void worker_joined(State& state, const WorkerJoined& event) {
  LAYERFARM_CHECK(!state.workers.contains(event.worker));  // our own caller counts registrations
  Worker worker{.host = event.host, .credits = std::max(1U, event.leases)};
  worker.kind = kind_for(state, event.abilities);
  worker.heard = state.attentive();
  worker.progress = state.now;
  enrol(state, event.worker, std::move(worker));
  if (const auto old = earlier_registration(state, event); old && state.worker(*old) != nullptr) {
    LAYERFARM_CHECK(*old != event.worker);
    // A process does not change its machine: whoever says so is another one.
    if (state.worker(*old)->host == event.host) take_over(state, *old, event.worker, event.held);
  }
  adopt(state, event.worker, event.held);
  wake_for(state, state.kinds[state.workers.at(event.worker).kind]);
  refresh(state, event.worker);
  watch(state, event.worker);
}

void worker_left(State& state, const WorkerLeft& event) {
  if (state.worker(event.worker) == nullptr) return;
  // On one machine a link breaks only when the process behind it is gone.
  const bool died = state.policy.local && event.how == Departure::Lost;
  remove_worker(state, event.worker, died ? Departure::Died : event.how);
}

void remove_worker(State& state, WorkerId id, Departure how) {
  // It takes nothing more, and is no fit place for what it leaves behind.
  state.workers.at(id).credits = 0;
  const std::vector<std::uint32_t> slots = state.workers.at(id).leases;
  for (const std::uint32_t slot : slots) {
    each_open(state, slot, [&](Item& item) {
      if (item.state == ItemState::Fenced) {
        close_item(state, slot, item);
      } else if (how == Departure::Planned) {
        hand_back(state, slot, item);
      } else {
        if (how == Departure::Lost) remember_orphan(state, item);
        mishap(state, slot, item, mishap_of(item, how), domain::Ending::Infrastructure);
      }
    });
  }
  // A local worker that was lost is started again; WorkersExpected corrects this when it is not.
  if (state.policy.local && how != Departure::Planned) ++state.workers_expected;
  const HostId host = state.workers.at(id).host;
  strike_off(state, id);
  state.cancels.erase(id);
  if (state.hosts.contains(host)) refresh_host(state, host);
  keep_one_fit(state);
}

}  // namespace layerfarm::coordinator::core
