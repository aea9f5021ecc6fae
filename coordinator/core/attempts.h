// What workers say about attempts. Internal to coordinator/core.
#pragma once

#include "coordinator/core/events.h"
#include "coordinator/core/state.h"

namespace layerfarm::coordinator::core {

void attempts_started(State& state, const AttemptsStarted& event);
void attempts_ended(State& state, const AttemptsEnded& event);

/// The job in this item is not done by this worker any more: what happened to it decides where it
/// goes. The item is closed.
void mishap(State& state, std::uint32_t slot, Item& item, Mishap what, domain::Ending ending);
/// Back to the queue, nobody blamed. The item is closed.
void hand_back(State& state, std::uint32_t slot, Item& item);

}  // namespace layerfarm::coordinator::core
