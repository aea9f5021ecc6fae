#include "coordinator/core/failures.h"

#include <algorithm>

namespace layerfarm::coordinator::core {
namespace {

void insert_sorted(std::vector<WorkerId>& places, WorkerId place) {
  const auto at = std::lower_bound(places.begin(), places.end(), place);
  if (at == places.end() || *at != place) places.insert(at, place);
}

void count(std::uint8_t& counter) {
  if (counter < 255) ++counter;
}

Remedy try_again(std::uint8_t& tries, const CorePolicy& policy) {
  count(tries);
  return tries < policy.tries_per_kind ? Remedy::Again : Remedy::Verdict;
}

/// Not the case's fault: the place is counted, and each place only once.
Remedy fault(Trouble& trouble, WorkerId place, const CorePolicy& policy) {
  count(trouble.faults);
  insert_sorted(trouble.places, place);
  insert_sorted(trouble.avoid, place);
  const bool enough =
      trouble.places.size() >= policy.max_places || trouble.faults >= policy.max_faults;
  return enough ? Remedy::Unsettled : Remedy::Again;
}

/// A death is a fault of the place too, but what it says about the job comes first.
Remedy death(Trouble& trouble, WorkerId place, const CorePolicy& policy) {
  count(trouble.deaths);
  const Remedy as_fault = fault(trouble, place, policy);
  if (trouble.deaths >= policy.deaths_verdict) return Remedy::KillsWorker;
  if (trouble.deaths >= policy.deaths_alone) trouble.alone = true;
  return as_fault;
}

}  // namespace

Remedy decide(Trouble& trouble, Mishap what, WorkerId place, AttemptId attempt,
              const CorePolicy& policy) {
  trouble.last = attempt;
  switch (what) {
    case Mishap::Crashed:
      insert_sorted(trouble.avoid, place);
      return try_again(trouble.crashes, policy);
    case Mishap::TimedOut:
      return try_again(trouble.timeouts, policy);
    case Mishap::OverMemory:
      trouble.memory_factor = policy.memory_factor;
      return try_again(trouble.memory_kills, policy);
    case Mishap::Fault:
    case Mishap::WorkerLost:
      return fault(trouble, place, policy);
    case Mishap::WorkerDied:
      return death(trouble, place, policy);
    case Mishap::Unstarted:
      count(trouble.unstarted);
      return trouble.unstarted < policy.max_unstarted ? Remedy::Again : Remedy::Unsettled;
  }
  return Remedy::Unsettled;
}

bool is_special(const Trouble& trouble) {
  return trouble.alone || !trouble.avoid.empty() || trouble.memory_factor > 1;
}

base::Duration rest(const Trouble& trouble, const CorePolicy& policy) {
  const int doublings = std::clamp(static_cast<int>(trouble.faults) - 1, 0, 16);
  return policy.retry_wait * (std::int64_t{1} << doublings);
}

}  // namespace layerfarm::coordinator::core
