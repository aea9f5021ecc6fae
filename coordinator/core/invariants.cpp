// What must hold after every step, checked the slow way: by walking everything.
#include <algorithm>
#include <string>

#include "coordinator/core/core.h"
#include "coordinator/core/dispatch.h"
#include "coordinator/core/leasing.h"
#include "coordinator/core/state.h"

namespace layerfarm::coordinator::core {
namespace {

std::string name(JobId job) { return "job " + std::to_string(job.value()); }
std::string name(WorkerId worker) { return "worker " + std::to_string(worker.value()); }
std::string name(ClassId ability) { return "ability " + std::to_string(ability.value()); }

std::string check_job(const State& state, JobId id) {
  const Job& job = state.jobs[id];
  bool needs_done = true;
  for (const std::uint32_t need : job.needs) {
    if (need == kNone) continue;
    needs_done = needs_done && state.jobs.succeeded(JobId{need});
    const bool lost = state.jobs.over(JobId{need}) && !state.jobs.succeeded(JobId{need});
    if (lost && !state.jobs.over(id) && !state.jobs.is<Leased>(id)) {
      return name(id) + " waits for " + name(JobId{need}) + ", which will never succeed";
    }
  }
  const Trouble* trouble = state.trouble(id);
  const bool awaits = trouble != nullptr && trouble->awaits > 0;
  if (state.jobs.is<Ready>(id) && !needs_done) return name(id) + " is ready before its needs";
  if (state.jobs.is<Waiting>(id) && needs_done && !awaits) {
    return name(id) + " waits for nothing";
  }
  if (state.jobs.is<Resting>(id) != state.resting.contains(id)) {
    return name(id) + " rests without a timer, or has one without resting";
  }
  if (const auto* leased = std::get_if<Leased>(&job.state)) {
    if (leased->lease >= state.leases.slots() || !state.leases.in_use(leased->lease)) {
      return name(id) + " is in a lease that is gone";
    }
    const Item& item = state.leases[leased->lease].items.at(leased->item);
    if (item.job != id || item.state == ItemState::Closed || item.state == ItemState::Fenced) {
      return name(id) + " is in a lease that does not hold it";
    }
  }
  return {};
}

std::string check_lease(const State& state, std::uint32_t slot) {
  const Lease& lease = state.leases[slot];
  const auto open = std::count_if(lease.items.begin(), lease.items.end(),
                                  [](const Item& item) { return item.state != ItemState::Closed; });
  if (static_cast<std::uint32_t>(open) != lease.open) return "a lease miscounts its open items";
  if (!std::is_sorted(lease.items.begin(), lease.items.end(),
                      [](const Item& a, const Item& b) { return a.attempt < b.attempt; })) {
    return "a lease's attempts do not ascend";
  }
  const auto worker = state.workers.find(lease.worker);
  if (worker == state.workers.end()) return "a lease is in the hand of " + name(lease.worker);
  const auto& leases = worker->second.leases;
  if (std::count(leases.begin(), leases.end(), slot) != 1) {
    return name(lease.worker) + " does not know its lease";
  }
  for (std::uint32_t i = 0; i < lease.items.size(); ++i) {
    const Item& item = lease.items[i];
    if (item.state != ItemState::Given && item.state != ItemState::Begun) continue;
    const auto* leased = std::get_if<Leased>(&state.jobs[item.job].state);
    if (leased == nullptr || leased->lease != slot || leased->item != i) {
      return name(item.job) + " does not know that it is leased";
    }
  }
  return {};
}

std::string check_worker(const State& state, WorkerId id, const Worker& worker) {
  const Kind& kind = state.kinds[worker.kind];
  const bool in_set = kind.hungry.contains({worker.hungry_with, id});
  if (worker.hungry != in_set) return name(id) + " is not in the hungry set as it believes";
  if (worker.hungry && worker.hungry_with != worker.leases.size()) {
    return name(id) + " is hungry under an old number";
  }
  if (worker.hungry != may_take(state, worker)) {
    return name(id) + (worker.hungry ? " is" : " is not") + " hungry, against the rules";
  }
  for (const std::uint32_t slot : worker.leases) {
    if (!state.leases.in_use(slot) || state.leases[slot].worker != id) {
      return name(id) + " holds a lease that is not its own";
    }
  }
  return {};
}

std::string check_class(const State& state, ClassId ability) {
  const WorkClass& work = state.classes[ability.value()];
  std::uint32_t ready[kFlavours] = {};
  for (std::uint32_t value = 0; value < state.jobs.size(); ++value) {
    const QueueKey& key = state.queue(JobId{value}).key();
    if (key.ability == ability && state.jobs.is<Ready>(JobId{value})) {
      ++ready[static_cast<std::size_t>(key.flavour)];
    }
  }
  std::uint32_t able = 0;
  std::uint32_t fit = 0;
  for (const auto& [id, worker] : state.workers) {
    if (!state.kinds[worker.kind].able(ability)) continue;
    ++able;
    if (worker.fit()) ++fit;
  }
  if (!std::equal(std::begin(ready), std::end(ready), std::begin(work.ready))) {
    return name(ability) + " miscounts its ready jobs";
  }
  if (able != work.able || fit != work.fit) return name(ability) + " miscounts its workers";
  return {};
}

std::string check_host(const State& state, HostId id, const Host& host) {
  std::uint32_t leases = 0;
  std::uint32_t exclusive = 0;
  for (const WorkerId worker : host.workers) {
    for (const std::uint32_t slot : state.workers.at(worker).leases) {
      ++leases;
      if (state.leases[slot].exclusive) ++exclusive;
    }
  }
  const std::string self = "host " + std::to_string(id.value());
  if (leases != host.leases) return self + " miscounts its leases";
  if (host.exclusive != (exclusive > 0)) return self + " does not know whether it is exclusive";
  if (exclusive > 0 && leases > 1) return self + " runs something beside an exclusive job";
  return {};
}

/// Nothing that is ready waits while a worker that could have it idles.
std::string check_nobody_idles(const State& state) {
  if (state.paused || state.stopping) return {};
  for (std::uint32_t value = 0; value < state.jobs.size(); ++value) {
    const JobId job{value};
    if (!state.jobs.is<Ready>(job)) continue;
    const QueueKey& key = state.queue(job).key();
    if (key.flavour != Flavour::Normal) continue;
    const Trouble* trouble = state.trouble(job);
    for (const auto& [id, worker] : state.workers) {
      if (!worker.leases.empty() || !may_take(state, worker)) continue;
      if (!state.kinds[worker.kind].able(key.ability)) continue;
      if (trouble != nullptr && !avoidable(state, id, key.ability, trouble->avoid)) continue;
      return name(job) + " is ready and " + name(id) + ", which could do it, idles";
    }
  }
  return {};
}

}  // namespace

std::string Core::check_invariants() const {
  const State& state = *state_;
  std::string broken;
  const auto check = [&](std::string found) {
    if (broken.empty()) broken = std::move(found);
  };
  for (std::uint32_t i = 0; i < state.jobs.size(); ++i) check(check_job(state, JobId{i}));
  for (std::uint32_t i = 0; i < state.leases.slots(); ++i) {
    if (state.leases.in_use(i)) check(check_lease(state, i));
  }
  for (const auto& [id, worker] : state.workers) check(check_worker(state, id, worker));
  for (std::size_t i = 0; i < state.classes.size(); ++i) {
    check(check_class(state, ClassId{static_cast<std::uint16_t>(i)}));
  }
  for (const auto& [id, host] : state.hosts) check(check_host(state, id, host));
  check(check_nobody_idles(state));
  return broken;
}

}  // namespace layerfarm::coordinator::core
