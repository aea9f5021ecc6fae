#include "coordinator/core/attempts.h"

#include <algorithm>

#include "coordinator/core/flow.h"
#include "coordinator/core/leasing.h"
#include "coordinator/core/quarantine.h"

namespace layerfarm::coordinator::core {
namespace {

using domain::Ending;

struct Found {
  std::uint32_t slot = 0;
  Item* item = nullptr;
};

Found find_attempt(State& state, const Worker& worker, AttemptId attempt) {
  for (const std::uint32_t slot : worker.leases) {
    if (Item* item = state.leases[slot].find(attempt)) return {slot, item};
  }
  return {};
}

/// Notes that the worker is at this lease. Leases are worked on in order, so when an earlier one is
/// still open some message of it may be lost.
void note_progress(State& state, Worker& worker, std::uint32_t slot) {
  worker.progress = state.now;
  Lease& lease = state.leases[slot];
  if (lease.untouched) {
    lease.untouched = false;
    state.prefetched.erase({lease.items.front().attempt, slot});
  }
  if (worker.leases.front() != slot && !worker.astray_since) worker.astray_since = state.now;
}

bool needs_done(const State& state, JobId job) {
  return std::all_of(
      state.jobs[job].needs.begin(), state.jobs[job].needs.end(),
      [&](std::uint32_t need) { return need == kNone || state.jobs.succeeded(JobId{need}); });
}

bool fit_elsewhere(const State& state, JobId job) {
  const ClassId ability = state.queue(job).key().ability;
  const Trouble* trouble = state.trouble(job);
  std::uint32_t failed_here = 0;
  for (const WorkerId place : trouble->places) {
    const auto it = state.workers.find(place);
    if (it == state.workers.end() || !it->second.fit()) continue;
    if (state.kinds[it->second.kind].able(ability)) ++failed_here;
  }
  return failed_here == 0 || state.classes[ability.value()].fit > failed_here;
}

void answer(State& state, const Found& found, AttemptId attempt, Ending ending) {
  settle(state, found.item->job, Answered{attempt, ending}, found.slot);
  close_item(state, found.slot, *found.item);
}

/// Of the producers that the worker named, those that could run again.
std::vector<JobId> usable_producers(const State& state, JobId job, const EndedAttempt& ended) {
  std::vector<JobId> usable;
  for (const JobId producer : ended.lost) {
    if (!state.jobs.contains(producer) || producer == job) continue;
    if (!state.jobs.is<Dropped>(producer)) usable.push_back(producer);
  }
  return usable;
}

/// Producers run again and the job waits for them; nobody is blamed.
void blob_lost(State& state, const Found& found, const EndedAttempt& ended) {
  Item& item = *found.item;
  const JobId job = item.job;
  const std::vector<JobId> producers = usable_producers(state, job, ended);
  if (producers.empty()) {
    mishap(state, found.slot, item, Mishap::Fault, Ending::Infrastructure);
    return;
  }
  Trouble& trouble = state.troubles[job];
  trouble.last = ended.attempt;
  if (++trouble.lost_blobs > state.policy.max_lost_blobs) {
    settle(state, job,
           Unsettled{.reason = UnsettledReason::LostBlobs,
                     .cause = job,
                     .faults = trouble.lost_blobs,
                     .last = ended.attempt},
           found.slot);
    close_item(state, found.slot, item);
    return;
  }
  state.emit(JobRetried{job, ended.attempt, Ending::LostBlob});
  release_followers(state, job, found.slot);
  state.jobs.set_state(job, Waiting{});
  close_item(state, found.slot, item);
  for (const JobId producer : producers) await(state, job, producer);
  if (state.jobs.is<Waiting>(job)) place(state, job);
}

/// The worker did not do it: it was asked back, or could not be done there, or the worker leaves.
void not_done(State& state, const Found& found, Worker& worker) {
  Item& item = *found.item;
  if (!item.cancelled && needs_done(state, item.job)) {
    const WorkerId id = state.leases[found.slot].worker;
    worker.declines_until = state.now + state.policy.idle_grace;
    state.timers.arm(worker.declines_until, TimerKind::Worker, id.value());
    refresh(state, id);
  }
  hand_back(state, found.slot, item);
}

void take_ending(State& state, Worker& worker, const Found& found, const EndedAttempt& ended) {
  switch (ended.ending) {
    case Ending::Done:
    case Ending::Refused:
    case Ending::OverOutput:
      answer(state, found, ended.attempt, ended.ending);
      return;
    case Ending::Crashed:
      mishap(state, found.slot, *found.item, Mishap::Crashed, ended.ending);
      return;
    case Ending::TimedOut:
      mishap(state, found.slot, *found.item, Mishap::TimedOut, ended.ending);
      return;
    case Ending::OverMemory:
      mishap(state, found.slot, *found.item, Mishap::OverMemory, ended.ending);
      return;
    case Ending::Infrastructure:
      mishap(state, found.slot, *found.item, Mishap::Fault, ended.ending);
      return;
    case Ending::LostBlob:
      blob_lost(state, found, ended);
      return;
    case Ending::Cancelled:
      not_done(state, found, worker);
      return;
  }
}

}  // namespace

void mishap(State& state, std::uint32_t slot, Item& item, Mishap what, Ending ending) {
  const JobId job = item.job;
  const AttemptId attempt = item.attempt;
  Trouble& trouble = state.troubles[job];
  const WorkerId place_of = state.leases[slot].worker;
  switch (decide(trouble, what, place_of, attempt, state.policy)) {
    case Remedy::Verdict:
      settle(state, job, Answered{attempt, ending}, slot);
      break;
    case Remedy::KillsWorker:
      settle(state, job, KillsWorker{trouble.deaths}, slot);
      break;
    case Remedy::Unsettled:
      settle(state, job,
             Unsettled{.cause = job,
                       .places = static_cast<std::uint32_t>(trouble.places.size()),
                       .faults = trouble.faults,
                       .last = attempt},
             slot);
      break;
    case Remedy::Again:
      if (what != Mishap::Unstarted) state.emit(JobRetried{job, attempt, ending});
      release_followers(state, job, slot);
      state.jobs.set_state(job, Waiting{});
      // The memory is the host's: beside jobs of its other workers twice the claim is no claim.
      if (what == Mishap::OverMemory) make_exclusive(state, job);
      if (what == Mishap::Fault && !fit_elsewhere(state, job)) {
        place_after_rest(state, job, rest(trouble, state.policy));
      } else {
        place(state, job);
      }
      break;
  }
  close_item(state, slot, item);
}

void hand_back(State& state, std::uint32_t slot, Item& item) {
  const JobId job = item.job;
  release_followers(state, job, slot);
  state.jobs.set_state(job, Waiting{});
  close_item(state, slot, item);
  place(state, job);
}

void attempts_started(State& state, const AttemptsStarted& event) {
  Worker* worker = state.worker(event.worker);
  if (worker == nullptr) return;
  for (const AttemptId attempt : event.attempts) {
    const Found found = find_attempt(state, *worker, attempt);
    if (found.item == nullptr) {
      state.cancels[event.worker].push_back(attempt);
      continue;
    }
    note_progress(state, *worker, found.slot);
    if (found.item->state == ItemState::Given) found.item->state = ItemState::Begun;
  }
}

void attempts_ended(State& state, const AttemptsEnded& event) {
  Worker* worker = state.worker(event.worker);
  Acknowledge done{event.worker, {}};
  done.attempts.reserve(event.ended.size());
  for (const EndedAttempt& ended : event.ended) {
    done.attempts.push_back(ended.attempt);
    const Found found = worker != nullptr ? find_attempt(state, *worker, ended.attempt) : Found{};
    if (found.item == nullptr || found.item->state == ItemState::Closed) {
      state.emit(IgnoreLate{ended.attempt});
      continue;
    }
    note_progress(state, *worker, found.slot);
    if (found.item->state == ItemState::Fenced) {
      state.emit(IgnoreLate{ended.attempt});
      close_item(state, found.slot, *found.item);
      continue;
    }
    found.item->state = ItemState::Begun;  // said or not
    note_ending(state, event.worker, ended.ending);
    take_ending(state, *worker, found, ended);
  }
  if (worker != nullptr && !done.attempts.empty()) state.emit(std::move(done));
}

}  // namespace layerfarm::coordinator::core
