#include "coordinator/core/dispatch.h"

#include <algorithm>
#include <tuple>

#include "coordinator/core/draft.h"
#include "coordinator/core/leasing.h"

namespace layerfarm::coordinator::core {
namespace {

/// What finishes cases comes before what begins them; what makes jobs comes first of all.
int stage_rank(domain::Stage stage) {
  switch (stage) {
    case domain::Stage::Analyze:
    case domain::Stage::Whole:
      return 0;
    case domain::Stage::Recompare:
      return 1;
    case domain::Stage::Time:
      return 2;
    case domain::Stage::Execute:
      return 3;
    case domain::Stage::Compile:
      return 4;
    case domain::Stage::Prepare:
      return 5;
  }
  return 6;
}

/// The best job for a worker so far.
struct Pick {
  std::uint16_t queue = 0;
  Entry entry;
  bool special = false;

  [[nodiscard]] auto rank(const State& state) const {
    return std::tuple(-static_cast<int>(entry.priority), !special,
                      stage_rank(state.queues[queue].key().stage), entry);
  }
};

void consider(const State& state, std::optional<Pick>& best, Pick pick) {
  if (!best || pick.rank(state) < best->rank(state)) best = pick;
}

void consider_queue(State& state, std::optional<Pick>& best, std::uint16_t index, WorkerId worker) {
  ReadyQueue& queue = state.queues[index];
  if (queue.size() == 0) return;
  if (const auto top = queue.top(state.jobs)) consider(state, best, {index, *top, false});
  for (const auto& [avoid, entries] : queue.specials()) {
    if (!avoidable(state, worker, queue.key().ability, avoid)) continue;
    consider(state, best, {index, *entries.begin(), true});
  }
}

std::optional<Pick> pick(State& state, WorkerId id, const Kind& kind, Flavour flavour) {
  std::optional<Pick> best;
  for (const ClassId ability : kind.classes) {
    const WorkClass& work = state.classes[ability.value()];
    if (work.ready[static_cast<std::size_t>(flavour)] == 0) continue;
    for (const std::uint16_t queue : work.queues) {
      if (state.queues[queue].key().flavour != flavour) continue;
      consider_queue(state, best, queue, id);
    }
  }
  return best;
}

struct Backlog {
  std::uint32_t cases = 0;     ///< ready jobs that lead cases
  std::uint32_t prepares = 0;  ///< ready jobs that usually come along
  bool alone = false;          ///< some job wants a worker to itself
};

Backlog backlog(const State& state, const Kind& kind, Flavour flavour) {
  Backlog sum;
  for (const ClassId ability : kind.classes) {
    const WorkClass& work = state.classes[ability.value()];
    if (work.all_ready() == 0) continue;
    sum.alone = sum.alone || work.ready_alone > 0;
    for (const std::uint16_t index : work.queues) {
      const ReadyQueue& queue = state.queues[index];
      if (queue.key().flavour != flavour) continue;
      (queue.key().stage == domain::Stage::Prepare ? sum.prepares : sum.cases) += queue.size();
    }
  }
  return sum;
}

/// How many cases of a queue make a lease: about policy.lease_target of work, or a batch for
/// compilers that gain by it, and never more than a fair share of what is left.
std::uint32_t lease_size(const State& state, const Pick& pick, const Backlog& left) {
  if (pick.special) return 1;
  const ReadyQueue& queue = state.queues[pick.queue];
  const QueueKey& key = queue.key();
  if (key.flavour == Flavour::Exclusive || key.stage == domain::Stage::Analyze) return 1;
  base::Duration each = queue.mean();
  if (each == base::Duration{0}) each = std::chrono::microseconds(pick.entry.cost_us);
  std::int64_t size = each > base::Duration{0} ? state.policy.lease_target / each : 1;
  const std::size_t group = key.group.value();
  if (key.flavour == Flavour::Normal && key.stage == domain::Stage::Compile &&
      group < state.batch.size()) {
    size = std::max<std::int64_t>(size, state.batch[group]);
  }
  const std::uint32_t all =
      key.stage == domain::Stage::Prepare ? left.cases + left.prepares : left.cases;
  const std::uint32_t fit = std::max(1U, state.classes[key.ability.value()].fit);
  const std::uint32_t shares = std::max(1U, state.policy.shares * fit);
  const std::int64_t share = (all + shares - 1) / shares;
  const std::int64_t most = state.policy.max_jobs_per_lease;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(std::min(size, share), 1, most));
}

void give(State& state, WorkerId worker, const Pick& pick, std::uint32_t cases) {
  Draft draft(state, worker, pick.queue);
  draft.add_case(JobId{pick.entry.job});
  while (--cases > 0) {
    const auto next = state.queues[pick.queue].top(state.jobs);
    if (!next || next->priority != pick.entry.priority) break;
    if (!draft.add_case(JobId{next->job})) break;
  }
  draft.give();
}

enum class Served : std::uint8_t {
  Given,
  NothingForIt,  ///< another worker may still get something
  KeptBack,      ///< what is left is for workers that will be idle
};

Served serve(State& state, WorkerId id, Flavour flavour) {
  const Worker& worker = state.workers.at(id);
  const Kind& kind = state.kinds[worker.kind];
  const Backlog left = backlog(state, kind, flavour);
  const bool prefetch = !worker.leases.empty();
  if (prefetch && left.alone) return Served::KeptBack;
  const auto best = pick(state, id, kind, flavour);
  if (!best) return Served::NothingForIt;
  const ClassId ability = state.queues[best->queue].key().ability;
  if (prefetch && left.cases + left.prepares <= state.classes[ability.value()].fit) {
    return Served::KeptBack;
  }
  give(state, id, *best, worker.quarantine ? 1 : lease_size(state, *best, left));
  return Served::Given;
}

/// The hungry workers of a kind that idle (or that have something already), one after the other;
/// the set may change meanwhile.
template <typename F>
void each_hungry(const Kind& kind, bool idle, F&& f) {
  std::pair<std::uint32_t, WorkerId> from{idle ? 0U : 1U, WorkerId{0}};
  auto it = kind.hungry.lower_bound(from);
  while (it != kind.hungry.end()) {
    const auto [leases, worker] = *it;
    if (idle && leases > 0) return;
    if (!f(worker)) return;
    it = kind.hungry.upper_bound({leases, worker});
  }
}

bool anything_ready(const State& state, const Kind& kind, Flavour flavour) {
  return std::any_of(kind.classes.begin(), kind.classes.end(), [&](ClassId ability) {
    return state.classes[ability.value()].ready[static_cast<std::size_t>(flavour)] > 0;
  });
}

/// Every hungry worker of this kind that idles (or that has something already) gets what it can.
void serve_kind(State& state, const Kind& kind, Flavour flavour, bool idle) {
  each_hungry(kind, idle, [&](WorkerId worker) {
    if (!anything_ready(state, kind, flavour)) return false;
    return serve(state, worker, flavour) != Served::KeptBack;
  });
}

/// Exclusive work for hosts that do nothing.
void serve_exclusive(State& state, const Kind& kind) {
  if (!anything_ready(state, kind, Flavour::Exclusive)) return;
  for (auto& [id, host] : state.hosts) {
    if (host.leases > 0) continue;
    for (const WorkerId worker : host.workers) {
      const Worker& candidate = state.workers.at(worker);
      if (&state.kinds[candidate.kind] != &kind) continue;
      const bool drained = std::exchange(host.draining, false);
      const bool served =
          may_take(state, candidate) && serve(state, worker, Flavour::Exclusive) == Served::Given;
      if (!served) {
        host.draining = drained;
        continue;
      }
      if (drained) --state.draining_hosts;
      break;
    }
  }
}

void speculate(State& state, const Kind& kind) {
  // An exclusive job waits for a host to be idle: speculation would keep it waiting.
  if (anything_ready(state, kind, Flavour::Exclusive)) return;
  serve_kind(state, kind, Flavour::Speculative, /*idle=*/true);
}

bool all_able(const State& state, const Kind& kind, const Lease& lease) {
  return std::all_of(lease.items.begin(), lease.items.end(), [&](const Item& item) {
    return kind.able(state.queue(item.job).key().ability);
  });
}

/// Whether it is worth while to take a lease out of the hand of a worker that is busy with another.
bool worth_recalling(const State& state, const Lease& lease) {
  if (lease.alone || lease.exclusive) return false;
  const Lease& before = state.leases[state.workers.at(lease.worker).leases.front()];
  const base::Duration each = state.queues[before.queue].mean();
  const base::Duration wait = before.given + each * before.cases - state.now;
  return each == base::Duration{0} || wait >= state.policy.recall_over;
}

/// An idle worker for which nothing is ready gets what another has only prefetched: it is asked
/// back here, and is ready when it comes.
void recall_for_idle(State& state, const Kind& kind) {
  each_hungry(kind, /*idle=*/true, [&](WorkerId worker) {
    if (!state.workers.at(worker).fit()) return true;
    const auto found =
        std::find_if(state.prefetched.begin(), state.prefetched.end(), [&](const auto& entry) {
          const Lease& lease = state.leases[entry.second];
          return all_able(state, kind, lease) && worth_recalling(state, lease);
        });
    if (found == state.prefetched.end()) return false;
    Lease& lease = state.leases[found->second];
    for (Item& item : lease.items) {
      if (item.state == ItemState::Given) cancel(state, lease.worker, item);
    }
    state.prefetched.erase(found);
    return true;
  });
}

std::vector<std::uint32_t> take_dirty_kinds(State& state) {
  for (const ClassId ability : state.dirty_classes) {
    WorkClass& work = state.classes[ability.value()];
    work.dirty = false;
    state.dirty_kinds.insert(work.kinds.begin(), work.kinds.end());
  }
  state.dirty_classes.clear();
  return {state.dirty_kinds.begin(), state.dirty_kinds.end()};
}

}  // namespace

bool avoidable(const State& state, WorkerId worker, ClassId ability,
               const std::vector<WorkerId>& avoid) {
  if (!std::binary_search(avoid.begin(), avoid.end(), worker)) return true;
  std::uint32_t avoided = 0;
  for (const WorkerId id : avoid) {
    const auto it = state.workers.find(id);
    if (it == state.workers.end() || !it->second.fit()) continue;
    if (state.kinds[it->second.kind].able(ability)) ++avoided;
  }
  return state.classes[ability.value()].fit <= avoided;
}

void dispatch(State& state) {
  if (state.paused || state.stopping) return;  // what is dirty stays so
  const std::vector<std::uint32_t> dirty = take_dirty_kinds(state);
  const auto each = [&](auto&& f) {
    for (const std::uint32_t kind : dirty) f(state.kinds[kind]);
  };
  each([&](const Kind& kind) { serve_kind(state, kind, Flavour::Normal, /*idle=*/true); });
  each([&](const Kind& kind) { serve_kind(state, kind, Flavour::Normal, /*idle=*/false); });
  each([&](const Kind& kind) { serve_exclusive(state, kind); });
  each([&](const Kind& kind) { speculate(state, kind); });
  if (state.policy.recall) {
    each([&](const Kind& kind) {
      if (!anything_ready(state, kind, Flavour::Normal)) recall_for_idle(state, kind);
    });
  }
  state.dirty_kinds.clear();
}

}  // namespace layerfarm::coordinator::core
