// Workers come and go. Internal to coordinator/core.
#pragma once

#include "coordinator/core/events.h"
#include "coordinator/core/state.h"

namespace layerfarm::coordinator::core {

void worker_joined(State& state, const WorkerJoined& event);
void worker_left(State& state, const WorkerLeft& event);

/// Forgets a registration; what it had in hand goes back, begun jobs with the blame that `how`
/// brings.
void remove_worker(State& state, WorkerId worker, Departure how);

}  // namespace layerfarm::coordinator::core
