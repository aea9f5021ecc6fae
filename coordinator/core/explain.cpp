#include "coordinator/core/explain.h"

#include <algorithm>

#include "coordinator/core/core.h"
#include "coordinator/core/dispatch.h"
#include "coordinator/core/state.h"

namespace layerfarm::coordinator::core {
namespace {

Explanation of_lease(const State& state, const Leased& leased, Explanation out) {
  const Lease& lease = state.leases[leased.lease];
  const Item& item = lease.items[leased.item];
  out.why = item.state == ItemState::Begun ? Why::Running : Why::Leased;
  out.worker = lease.worker;
  out.attempt = item.attempt;
  return out;
}

Explanation of_waiting(const State& state, JobId id, Explanation out) {
  out.why = Why::NeedsJob;
  for (const std::uint32_t need : state.jobs[id].needs) {
    if (need != kNone && !state.jobs.succeeded(JobId{need})) {
      out.job = JobId{need};
      return out;
    }
  }
  for (const auto& [producer, jobs] : state.awaiting) {
    if (std::find(jobs.begin(), jobs.end(), id) != jobs.end()) out.job = producer;
  }
  return out;
}

/// Whether some fit worker could have it at once but for what it did to the job before.
bool waits_for_another_worker(const State& state, JobId id, ClassId ability) {
  const Trouble* trouble = state.trouble(id);
  if (trouble == nullptr || trouble->avoid.empty()) return false;
  return std::any_of(trouble->avoid.begin(), trouble->avoid.end(), [&](WorkerId place) {
    return state.workers.contains(place) && !avoidable(state, place, ability, trouble->avoid);
  });
}

Explanation of_ready(const State& state, JobId id, Explanation out) {
  const WorkClass& work = state.classes[out.ability.value()];
  const Flavour flavour = state.queue(id).key().flavour;
  const Entry self = entry_of(id, state.jobs[id]);
  for (const std::uint16_t index : work.queues) {
    for (const JobId other : state.queues[index].normal_jobs(state.jobs)) {
      if (entry_of(other, state.jobs[other]) < self) ++out.queued_before;
    }
  }
  out.why = Why::Queued;
  if (waits_for_another_worker(state, id, out.ability)) out.why = Why::OtherWorker;
  if (flavour == Flavour::Exclusive) out.why = Why::WaitsForHost;
  if (flavour == Flavour::Speculative) out.why = Why::Speculative;
  if (work.fit == 0) {
    out.why = work.able > 0 ? Why::Quarantined : Why::NoWorker;
    if (work.missing_since) out.until = *work.missing_since + state.policy.wait_workers;
  }
  if (state.paused || state.stopping) out.why = Why::Paused;
  return out;
}

}  // namespace

std::string_view why_name(Why why) {
  switch (why) {
    case Why::Settled:
      return "settled";
    case Why::Dropped:
      return "dropped";
    case Why::Running:
      return "running";
    case Why::Leased:
      return "leased";
    case Why::NeedsJob:
      return "needs a job";
    case Why::NoWorker:
      return "no worker can do it";
    case Why::Quarantined:
      return "its workers are quarantined";
    case Why::Queued:
      return "queued";
    case Why::OtherWorker:
      return "waits for another worker";
    case Why::Resting:
      return "resting";
    case Why::WaitsForHost:
      return "waits for an idle host";
    case Why::Speculative:
      return "speculative";
    case Why::Paused:
      return "leasing is paused";
  }
  return "";
}

Explanation Core::explain(JobId id) const {
  const State& state = *state_;
  Explanation out;
  if (!state.jobs.contains(id)) {
    out.why = Why::Dropped;
    return out;
  }
  out.ability = state.queue(id).key().ability;
  out.able_workers = state.classes[out.ability.value()].able;
  out.fit_workers = state.classes[out.ability.value()].fit;
  if (const Trouble* trouble = state.trouble(id)) out.faults = trouble->faults;
  const JobState& job = state.jobs[id].state;
  if (const auto* leased = std::get_if<Leased>(&job)) return of_lease(state, *leased, out);
  if (std::holds_alternative<Ready>(job)) return of_ready(state, id, out);
  if (std::holds_alternative<Waiting>(job)) return of_waiting(state, id, out);
  if (std::holds_alternative<Resting>(job)) {
    out.why = Why::Resting;
    out.until = state.resting.at(id);
    return out;
  }
  out.why = std::holds_alternative<Settled>(job) ? Why::Settled : Why::Dropped;
  return out;
}

}  // namespace layerfarm::coordinator::core
