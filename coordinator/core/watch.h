// What time brings: silence, work that is overdue, probes, and messages that were lost.
// Internal to coordinator/core.
#pragma once

#include "coordinator/core/events.h"
#include "coordinator/core/state.h"

namespace layerfarm::coordinator::core {

/// `now` was reached; when a deadline passed long ago it was we who slept, which excuses the
/// workers.
void advance(State& state, base::Time now);
/// A sign of life.
void heard(State& state, WorkerId worker);
/// A heartbeat may not fit what the worker was given: then a message was lost.
void check_heartbeat(State& state, const WorkerHeard& event);
/// Looks after one worker, and arms the timer for the next look.
void watch(State& state, WorkerId worker);
/// Everything that is due.
void fire_timers(State& state);

}  // namespace layerfarm::coordinator::core
