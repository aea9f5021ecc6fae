// `layerfarm discover`: checks everything that can be checked before any work, then runs. Nothing
// is written before the checks are through.
#pragma once

#include <string>
#include <vector>

#include "coordinator/app/options.h"

namespace layerfarm::coordinator::app {

/// Returns the exit code. `command` is argv, for the record.
int cmd_discover(DiscoverOptions options, const std::vector<std::string>& command);

}  // namespace layerfarm::coordinator::app
