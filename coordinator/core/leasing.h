// Leases come into hands and go out of them: what that means for worker, host and queue.
// Internal to coordinator/core.
#pragma once

#include <cstdint>

#include "coordinator/core/state.h"

namespace layerfarm::coordinator::core {

/// The lease in `slot`, its items filled in, is now the worker's last one.
void open_lease(State& state, WorkerId worker, std::uint32_t slot);
/// Ends an item; the lease ends with its last one.
void close_item(State& state, std::uint32_t slot, Item& item);
/// Asks for an item back (said once, at the end of the turn).
void cancel(State& state, WorkerId worker, Item& item);
/// Asks for all that the worker has not begun.
void cancel_untouched(State& state, WorkerId worker);

/// Whether the worker may be given another lease now.
[[nodiscard]] bool may_take(const State& state, const Worker& worker);
/// Puts the worker in its kind's hungry set, or takes it out, as `may_take` says.
void refresh(State& state, WorkerId id);
/// As `refresh`, for all workers of a host.
void refresh_host(State& state, HostId host);

}  // namespace layerfarm::coordinator::core
