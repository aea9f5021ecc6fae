// Work that nothing connected can do, and exclusive work that never finds its host idle.
// Internal to coordinator/core.
#pragma once

#include "coordinator/core/state.h"

namespace layerfarm::coordinator::core {

/// Judges the abilities of which something changed this turn; before dispatch.
void judge_abilities(State& state);
/// The number of workers that are still to come changed: judges all.
void judge_all_abilities(State& state);

}  // namespace layerfarm::coordinator::core
