// The verdicts are a function of the facts: what each job is by itself, not who did what when.
#pragma once

#include <string>
#include <vector>

#include "tests/sim/world.h"

namespace layerfarm::sim {

/// Fails the world for the first job whose verdict does not follow from its nature and the verdicts
/// of what it needs. Unsettled jobs and killers are excused here: the budgets' checker judges them.
void check_verdicts(World& world, const std::vector<std::string>& verdicts);

}  // namespace layerfarm::sim
