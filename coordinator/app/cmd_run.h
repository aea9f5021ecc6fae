// `layerfarm run`: the whole model by the assignment of its report or compiler file.
#pragma once

#include <string>
#include <vector>

#include "coordinator/app/options.h"

namespace layerfarm::coordinator::app {

/// Returns the process's exit code. `command` is the command line, for the store.
int cmd_run(RunOptions options, const std::vector<std::string>& command);

}  // namespace layerfarm::coordinator::app
