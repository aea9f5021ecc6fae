#include "coordinator/core/leasing.h"

#include <algorithm>

namespace layerfarm::coordinator::core {
namespace {

/// What is first in a worker's hand is worked on, so it is prefetched no more.
void first_is_no_prefetch(State& state, const Worker& worker) {
  if (worker.leases.empty()) return;
  const std::uint32_t first = worker.leases.front();
  state.prefetched.erase({state.leases[first].items.front().attempt, first});
}

/// How long a case of this queue takes, from a lease that was worked through.
void learn(State& state, const Lease& lease, const Worker& worker) {
  if (lease.cases == 0 || lease.untouched || worker.credits == 0) return;
  const base::Time began = std::max(lease.given, worker.lease_ended);
  state.queues[lease.queue].learn((state.now - began) / lease.cases);
}

void end_lease(State& state, std::uint32_t slot) {
  Lease& lease = state.leases[slot];
  const WorkerId id = lease.worker;
  Worker& worker = state.workers.at(id);
  Host& host = state.hosts.at(worker.host);
  learn(state, lease, worker);
  state.prefetched.erase({lease.items.front().attempt, slot});
  if (worker.leases.front() == slot) worker.astray_since.reset();
  worker.leases.erase(std::find(worker.leases.begin(), worker.leases.end(), slot));
  first_is_no_prefetch(state, worker);
  worker.lease_ended = state.now;
  if (worker.leases.empty()) worker.alone = false;
  --host.leases;
  if (lease.exclusive) host.exclusive = false;
  state.leases.remove(slot);
  refresh(state, id);
  if (host.leases == 0) refresh_host(state, worker.host);
}

}  // namespace

void open_lease(State& state, WorkerId id, std::uint32_t slot) {
  Worker& worker = state.workers.at(id);
  Host& host = state.hosts.at(worker.host);
  Lease& lease = state.leases[slot];
  lease.worker = id;
  lease.open = static_cast<std::uint32_t>(lease.items.size());
  lease.given = state.now;
  if (!worker.leases.empty()) state.prefetched.insert({lease.items.front().attempt, slot});
  worker.leases.push_back(slot);
  worker.alone = worker.alone || lease.alone;
  worker.progress = state.now;
  ++host.leases;
  refresh(state, id);
  if (lease.exclusive) {
    host.exclusive = true;
    refresh_host(state, worker.host);
  }
}

void close_item(State& state, std::uint32_t slot, Item& item) {
  if (item.state == ItemState::Closed) return;
  item.state = ItemState::Closed;
  if (--state.leases[slot].open == 0) end_lease(state, slot);
}

void cancel(State& state, WorkerId worker, Item& item) {
  if (item.cancelled) return;
  item.cancelled = true;
  state.cancels[worker].push_back(item.attempt);
}

void cancel_untouched(State& state, WorkerId id) {
  for (const std::uint32_t slot : state.workers.at(id).leases) {
    for (Item& item : state.leases[slot].items) {
      if (item.state == ItemState::Given) cancel(state, id, item);
    }
  }
}

bool may_take(const State& state, const Worker& worker) {
  const Host& host = state.hosts.at(worker.host);
  if (worker.suspect || worker.alone || host.exclusive || host.draining) return false;
  if (worker.leases.size() >= worker.credits || state.now < worker.declines_until) return false;
  if (!worker.quarantine) return true;
  return worker.leases.empty() && state.now >= worker.quarantine->next_probe;
}

void refresh(State& state, WorkerId id) {
  Worker& worker = state.workers.at(id);
  Kind& kind = state.kinds[worker.kind];
  if (worker.hungry) kind.hungry.erase({worker.hungry_with, id});
  worker.hungry = may_take(state, worker);
  if (!worker.hungry) return;
  worker.hungry_with = static_cast<std::uint32_t>(worker.leases.size());
  kind.hungry.insert({worker.hungry_with, id});
  state.dirty_kinds.insert(worker.kind);
}

void refresh_host(State& state, HostId host) {
  for (const WorkerId worker : state.hosts.at(host).workers) {
    refresh(state, worker);
    state.dirty_kinds.insert(state.workers.at(worker).kind);
  }
}

}  // namespace layerfarm::coordinator::core
