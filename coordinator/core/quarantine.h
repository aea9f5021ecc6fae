// Workers that fail one job after the other, and their way back. Internal to coordinator/core.
#pragma once

#include "coordinator/core/state.h"
#include "shared/domain/outcome.h"

namespace layerfarm::coordinator::core {

/// An attempt of this worker ended so: counts its faults in a row, quarantines or readmits it.
void note_ending(State& state, WorkerId worker, domain::Ending ending);
/// On one machine somebody must stay fit: readmits a worker when an ability has nobody left.
void keep_one_fit(State& state);

/// One more or one less is fit, for all abilities of a kind.
void count_fit(State& state, const Kind& kind, int change);

}  // namespace layerfarm::coordinator::core
