#include "coordinator/core/draft.h"

#include <algorithm>

#include "coordinator/core/flow.h"
#include "coordinator/core/leasing.h"

namespace layerfarm::coordinator::core {
namespace {

/// Dependents of one job that are looked at; a job with more is led to by the others' own turns.
constexpr int kMostDependents = 64;

}  // namespace

Draft::Draft(State& state, WorkerId worker, std::uint16_t queue)
    : state_(state),
      worker_(worker),
      kind_(state.kinds[state.workers.at(worker).kind]),
      key_(state.queues[queue].key()),
      group_(key_.group),
      slot_(state.leases.create()) {
  Lease& lease = state_.leases[slot_];
  lease.queue = queue;
  lease.exclusive = key_.flavour == Flavour::Exclusive;
}

bool Draft::add_case(JobId lead) {
  if (full()) return false;
  if (const Trouble* trouble = state_.trouble(lead); trouble != nullptr) {
    alone_ = trouble->alone;
    memory_factor_ = trouble->memory_factor;
  }
  Lease& lease = state_.leases[slot_];
  const std::size_t first = lease.items.size();
  add(lead);
  ++lease.cases;
  if (!alone_ && key_.flavour != Flavour::Exclusive) follow(lead);
  order_by_stage(first);
  return true;
}

void Draft::give() {
  Lease& lease = state_.leases[slot_];
  lease.alone = alone_;
  const std::size_t group = group_.value();
  const bool batched = group < state_.batch.size() && state_.batch[group] > 1;
  if (batched && key_.stage == domain::Stage::Compile && lease.cases > 1) order_by_stage(0);
  GiveLease order{
      .worker = worker_, .group = group_, .alone = alone_, .exclusive = lease.exclusive};
  order.jobs.reserve(lease.items.size());
  for (Item& item : lease.items) {
    item.attempt = AttemptId{state_.next_attempt++};
    order.jobs.push_back({item.job, item.attempt, memory_factor_});
  }
  open_lease(state_, worker_, slot_);
  state_.emit(std::move(order));
}

bool Draft::full() const {
  return state_.leases[slot_].items.size() >= state_.policy.max_jobs_per_lease;
}

bool Draft::holds(JobId job) const {
  const auto* leased = std::get_if<Leased>(&state_.jobs[job].state);
  return leased != nullptr && leased->lease == slot_;
}

/// The worker can do it, and it may stand in one lease with the rest.
bool Draft::fits(JobId job) const {
  const QueueKey& key = state_.queue(job).key();
  if (!kind_.able(key.ability)) return false;
  if (key.flavour == Flavour::Exclusive) return false;
  if (key.flavour == Flavour::Speculative && key_.flavour != Flavour::Speculative) return false;
  return key.group == kNoGroup || group_ == kNoGroup || key.group == group_;
}

bool Draft::can_pull(JobId job) const {
  return state_.jobs.is<Ready>(job) && !state_.jobs[job].special && fits(job);
}

void Draft::add(JobId job) {
  leave_queue(state_, job);
  Lease& lease = state_.leases[slot_];
  state_.jobs.set_state(job, Leased{slot_, static_cast<std::uint32_t>(lease.items.size())});
  lease.items.push_back({.job = job});
  const GroupId group = state_.queue(job).key().group;
  if (group_ == kNoGroup) group_ = group;
}

void Draft::follow(JobId job) {
  int looked_at = 0;
  state_.jobs.each_dependent(job, [&](JobId dependent) {
    take_up(dependent);
    return ++looked_at < kMostDependents && !full();
  });
}

/// Adds a waiting job when all that it needs is settled, in this lease, or can be pulled in. When
/// this worker cannot do it, what it needs and belongs to no chip is pulled in all the same:
/// whoever runs it should not wait for that.
void Draft::take_up(JobId dependent) {
  if (!state_.jobs.is<Waiting>(dependent) || state_.trouble(dependent) != nullptr) return;
  bool possible = fits(dependent);
  std::vector<JobId> pulled;
  for (const std::uint32_t value : state_.jobs[dependent].needs) {
    if (value == kNone) continue;
    const JobId need{value};
    if (state_.jobs.succeeded(need) || holds(need)) continue;
    if (can_pull(need)) {
      pulled.push_back(need);
    } else {
      possible = false;
    }
  }
  for (const JobId need : pulled) {
    if (full()) return;
    if (possible || state_.queue(need).key().group == kNoGroup) add(need);
  }
  if (!possible || full()) return;
  add(dependent);
  follow(dependent);
}

void Draft::order_by_stage(std::size_t first) {
  Lease& lease = state_.leases[slot_];
  if (lease.items.size() - first < 2) return;
  const auto stage = [this](const Item& item) {
    return static_cast<int>(state_.queue(item.job).key().stage);
  };
  std::stable_sort(lease.items.begin() + static_cast<std::ptrdiff_t>(first), lease.items.end(),
                   [&](const Item& a, const Item& b) { return stage(a) < stage(b); });
  for (std::size_t i = first; i < lease.items.size(); ++i) {
    state_.jobs.set_state(lease.items[i].job, Leased{slot_, static_cast<std::uint32_t>(i)});
  }
}

}  // namespace layerfarm::coordinator::core
