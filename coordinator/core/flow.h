// How a job moves between its states, and what that means for the jobs around it.
// Internal to coordinator/core.
#pragma once

#include <cstdint>

#include "coordinator/core/events.h"
#include "coordinator/core/state.h"

namespace layerfarm::coordinator::core {

void add_groups(State& state, const GroupsAdded& event);
void add_jobs(State& state, const JobsAdded& event);
void drop_jobs(State& state, const JobsDropped& event);
void want_jobs(State& state, const JobsWanted& event);

/// Takes a job out of its queue (Ready) or its rest; its state is the caller's to set next.
void leave_queue(State& state, JobId job);
/// For a job that is in no queue and no lease: Ready, Waiting or, when what it needs failed,
/// settled.
void place(State& state, JobId job);
/// From now on the job, which is in no queue, runs while nothing else runs on its host.
void make_exclusive(State& state, JobId job);
/// As `place`, but it rests first.
void place_after_rest(State& state, JobId job, base::Duration rest);
/// The rest is over, or a new place appeared.
void wake(State& state, JobId job);
/// Every resting job that a worker of this kind could do.
void wake_for(State& state, const Kind& kind);

/// Gives the job its answer and does what follows from it. `lease`: the one in which it was
/// answered, whose later jobs that build on it will not be done when it failed; kNone = none.
void settle(State& state, JobId job, Settlement how, std::uint32_t lease = kNone);
/// What `producer` made was lost, and `job` (Waiting) needs it: the producer runs again, unless it
/// is about to anyway, and the job waits for that.
void await(State& state, JobId job, JobId producer);

/// Later jobs of the same lease that need `job` will not be done by it: they go back.
void release_followers(State& state, JobId job, std::uint32_t lease);

}  // namespace layerfarm::coordinator::core
