// Who gets what next. Internal to coordinator/core.
#pragma once

#include "coordinator/core/state.h"

namespace layerfarm::coordinator::core {

/// Gives leases until nobody who may take one can do anything that is ready. Called once a turn.
void dispatch(State& state);

/// Whether `worker` may have a job that avoids these (sorted): when it is not one of them, or when
/// nobody else who is fit can do it.
[[nodiscard]] bool avoidable(const State& state, WorkerId worker, ClassId ability,
                             const std::vector<WorkerId>& avoid);

}  // namespace layerfarm::coordinator::core
