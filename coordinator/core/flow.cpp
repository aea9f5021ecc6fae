#include "coordinator/core/flow.h"

#include <algorithm>

#include "coordinator/core/leasing.h"
#include "shared/base/check.h"

namespace layerfarm::coordinator::core {
namespace {

Flavour flavour_of(const JobSpec& spec) {
  if (spec.exclusive) return Flavour::Exclusive;
  return spec.speculative ? Flavour::Speculative : Flavour::Normal;
}

std::uint16_t queue_for(State& state, const QueueKey& key) {
  const auto found = state.queue_of.find(key);
  if (found != state.queue_of.end()) return found->second;
  LAYERFARM_CHECK(state.queues.size() < 0xffff);
  const auto index = static_cast<std::uint16_t>(state.queues.size());
  state.queues.emplace_back(index, key);
  state.queue_of.emplace(key, index);
  state.class_at(key.ability).queues.push_back(index);
  return index;
}

std::size_t flavour_index(const State& state, JobId job) {
  return static_cast<std::size_t>(state.queue(job).key().flavour);
}

bool needs(const Job& job, JobId other) {
  return job.needs[0] == other.value() || job.needs[1] == other.value();
}

/// How a job is settled when `need`, which it builds on, is over without success.
Settlement inherited(const State& state, const Settled& need) {
  if (need.fate == Fate::Failed) return DependencyFailed{need.cause};
  Unsettled how{.cause = need.cause};
  how.ability = state.queue(need.cause).key().ability;
  if (need.fate == Fate::NoWorker) how.reason = UnsettledReason::NoWorker;
  if (need.fate == Fate::LostBlobs) how.reason = UnsettledReason::LostBlobs;
  if (const Trouble* trouble = state.trouble(need.cause)) {
    how.places = static_cast<std::uint32_t>(trouble->places.size());
    how.faults = need.fate == Fate::LostBlobs ? trouble->lost_blobs : trouble->faults;
    how.last = trouble->last;
  }
  return how;
}

Settled settled_state(JobId job, const Settlement& how) {
  if (const auto* answered = std::get_if<Answered>(&how)) {
    const bool done = answered->ending == domain::Ending::Done;
    return {job, done ? Fate::Succeeded : Fate::Failed};
  }
  if (const auto* failed = std::get_if<DependencyFailed>(&how))
    return {failed->cause, Fate::Failed};
  const auto* unsettled = std::get_if<Unsettled>(&how);
  if (unsettled == nullptr) return {job, Fate::Failed};  // it kills its worker
  switch (unsettled->reason) {
    case UnsettledReason::NoWorker:
      return {unsettled->cause, Fate::NoWorker};
    case UnsettledReason::LostBlobs:
      return {unsettled->cause, Fate::LostBlobs};
    case UnsettledReason::Infrastructure:
      break;
  }
  return {unsettled->cause, Fate::Infrastructure};
}

void make_ready(State& state, JobId id) {
  state.jobs.set_state(id, Ready{});
  Job& job = state.jobs[id];
  const Trouble* trouble = state.trouble(id);
  job.special = trouble != nullptr && is_special(*trouble);
  WorkClass& work = state.class_of(id);
  ++work.ready[flavour_index(state, id)];
  if (job.special) {
    state.queue(id).push_special(id, job, trouble->avoid);
    if (trouble->alone) ++work.ready_alone;
  } else {
    state.queue(id).push(id, job);
  }
  state.mark_dirty(state.queue(id).key().ability);
}

/// The jobs that wait for `producer` beside their needs go on.
void end_awaiting(State& state, JobId producer) {
  const auto it = state.awaiting.find(producer);
  if (it == state.awaiting.end()) return;
  const std::vector<JobId> waiting = std::move(it->second);
  state.awaiting.erase(it);
  for (const JobId job : waiting) {
    --state.troubles[job].awaits;
    if (!state.jobs.is<Waiting>(job)) continue;
    const auto* settled = std::get_if<Settled>(&state.jobs[producer].state);
    if (settled != nullptr && settled->fate != Fate::Succeeded) {
      settle(state, job, inherited(state, *settled));
    } else {
      place(state, job);
    }
  }
}

/// What a settled job means for one that needs it.
void tell_dependent(State& state, JobId id, JobId dependent, std::uint32_t lease) {
  if (state.jobs.succeeded(id)) {
    if (state.jobs.is<Waiting>(dependent)) place(state, dependent);
    return;
  }
  if (state.jobs.over(dependent)) return;
  const auto* leased = std::get_if<Leased>(&state.jobs[dependent].state);
  if (leased != nullptr && leased->lease != lease) return;  // given when all was there: it goes on
  const auto held = leased != nullptr ? std::optional(*leased) : std::nullopt;
  settle(state, dependent, inherited(state, std::get<Settled>(state.jobs[id].state)), lease);
  if (held) close_item(state, held->lease, state.leases[held->lease].items[held->item]);
}

void drop(State& state, JobId job) {
  if (state.jobs.over(job)) return;
  if (const auto* leased = std::get_if<Leased>(&state.jobs[job].state)) {
    Lease& lease = state.leases[leased->lease];
    Item& item = lease.items[leased->item];
    item.state = ItemState::Fenced;
    cancel(state, lease.worker, item);
  } else {
    leave_queue(state, job);
  }
  state.jobs.set_state(job, Dropped{});
  state.jobs.each_dependent(job, [&](JobId dependent) {
    drop(state, dependent);
    return true;
  });
  end_awaiting(state, job);
}

/// A job that succeeded runs again; what builds on it waits.
void redo(State& state, JobId id) {
  state.jobs.each_dependent(id, [&](JobId dependent) {
    if (state.jobs.is<Ready>(dependent) || state.jobs.is<Resting>(dependent)) {
      leave_queue(state, dependent);
      state.jobs.set_state(dependent, Waiting{});
    }
    return true;
  });
  state.settled_said = false;
  place(state, id);
}

}  // namespace

void add_groups(State& state, const GroupsAdded& event) {
  for (const GroupSpec& spec : event.groups) {
    const std::size_t index = spec.group.value();
    if (index >= state.batch.size()) state.batch.resize(index + 1, 1);
    state.batch[index] = std::max<std::uint16_t>(spec.batch, 1);
  }
}

void add_jobs(State& state, const JobsAdded& event) {
  for (const JobSpec& spec : event.jobs) {
    LAYERFARM_CHECK(spec.id.value() == state.jobs.size());
    LAYERFARM_CHECK(spec.needs.size() <= 2);
    Job job{.cost_us = spec.cost_us, .limit_ms = spec.limit_ms, .priority = spec.priority};
    std::size_t slot = 0;
    for (const JobId need : spec.needs) {
      LAYERFARM_CHECK(need < spec.id);
      if (!needs(job, need)) job.needs[slot++] = need.value();
    }
    job.queue = queue_for(state, {spec.ability, spec.group, spec.stage, flavour_of(spec)});
    job.settled_before = spec.known != Known::No;
    if (spec.known == Known::Succeeded) job.state = Settled{spec.id, Fate::Succeeded};
    if (spec.known == Known::Failed) job.state = Settled{spec.id, Fate::Failed};
    state.jobs.add(job);
    if (spec.known == Known::No) place(state, spec.id);
  }
  state.settled_said = false;
}

void drop_jobs(State& state, const JobsDropped& event) {
  for (const JobId job : event.jobs) {
    if (state.jobs.contains(job)) drop(state, job);
  }
}

void want_jobs(State& state, const JobsWanted& event) {
  for (const JobId id : event.jobs) {
    if (!state.jobs.contains(id)) continue;
    QueueKey key = state.queue(id).key();
    if (key.flavour != Flavour::Speculative) continue;
    key.flavour = Flavour::Normal;
    const bool ready = state.jobs.is<Ready>(id);
    if (ready) leave_queue(state, id);
    state.jobs[id].queue = queue_for(state, key);
    if (ready) make_ready(state, id);
  }
}

void leave_queue(State& state, JobId id) {
  if (state.jobs.is<Resting>(id)) state.resting.erase(id);
  if (!state.jobs.is<Ready>(id)) return;
  Job& job = state.jobs[id];
  WorkClass& work = state.class_of(id);
  --work.ready[flavour_index(state, id)];
  if (state.queue(id).key().flavour == Flavour::Exclusive) {
    work.exclusive_since.reset();  // the next one's patience begins
    state.mark_dirty(state.queue(id).key().ability);
  }
  if (!job.special) {
    state.queue(id).leave();
    return;
  }
  const Trouble& trouble = state.troubles[id];
  if (trouble.alone) --work.ready_alone;
  state.queue(id).leave_special(id, job, trouble.avoid);
}

void place(State& state, JobId id) {
  const Job& job = state.jobs[id];
  bool missing = false;
  for (const std::uint32_t value : job.needs) {
    if (value == kNone) continue;
    const JobId need{value};
    if (state.jobs.is<Dropped>(need)) {
      state.jobs.set_state(id, Waiting{});
      drop(state, id);
      return;
    }
    if (const auto* settled = std::get_if<Settled>(&state.jobs[need].state)) {
      if (settled->fate == Fate::Succeeded) continue;
      settle(state, id, inherited(state, *settled));
      return;
    }
    missing = true;
  }
  const Trouble* trouble = state.trouble(id);
  if (missing || (trouble != nullptr && trouble->awaits > 0)) {
    state.jobs.set_state(id, Waiting{});
  } else {
    make_ready(state, id);
  }
}

void make_exclusive(State& state, JobId job) {
  QueueKey key = state.queue(job).key();
  key.flavour = Flavour::Exclusive;
  state.jobs[job].queue = queue_for(state, key);
}

void place_after_rest(State& state, JobId job, base::Duration rest) {
  place(state, job);
  if (!state.jobs.is<Ready>(job)) return;
  leave_queue(state, job);
  state.jobs.set_state(job, Resting{});
  state.resting.emplace(job, state.now + rest);
  state.timers.arm(state.now + rest, TimerKind::Job, job.value());
}

void wake(State& state, JobId job) {
  state.resting.erase(job);
  if (state.jobs.is<Resting>(job)) place(state, job);
}

void wake_for(State& state, const Kind& kind) {
  std::vector<JobId> able;
  for (const auto& [job, until] : state.resting) {
    if (kind.able(state.queue(job).key().ability)) able.push_back(job);
  }
  for (const JobId job : able) wake(state, job);
}

void settle(State& state, JobId id, Settlement how, std::uint32_t lease) {
  const Settled settled = settled_state(id, how);
  const bool again = std::exchange(state.jobs[id].settled_before, true);
  leave_queue(state, id);
  state.jobs.set_state(id, settled);
  state.emit(JobSettled{id, how, again});
  state.jobs.each_dependent(id, [&](JobId dependent) {
    tell_dependent(state, id, dependent, lease);
    return true;
  });
  if (!state.awaiting.empty()) end_awaiting(state, id);
}

void await(State& state, JobId job, JobId producer) {
  if (!state.jobs.is<Waiting>(job)) return;  // an earlier producer decided about it
  if (!needs(state.jobs[job], producer)) {
    const auto* settled = std::get_if<Settled>(&state.jobs[producer].state);
    if (settled != nullptr && settled->fate != Fate::Succeeded) {
      settle(state, job, inherited(state, *settled));
      return;
    }
    ++state.troubles[job].awaits;
    state.awaiting[producer].push_back(job);
  }
  if (state.jobs.succeeded(producer)) redo(state, producer);
}

void release_followers(State& state, JobId id, std::uint32_t slot) {
  state.jobs.each_dependent(id, [&](JobId dependent) {
    const auto* leased = std::get_if<Leased>(&state.jobs[dependent].state);
    if (leased == nullptr || leased->lease != slot) return true;
    const std::uint32_t item = leased->item;
    release_followers(state, dependent, slot);
    state.jobs.set_state(dependent, Waiting{});
    close_item(state, slot, state.leases[slot].items[item]);
    place(state, dependent);
    return true;
  });
}

}  // namespace layerfarm::coordinator::core
