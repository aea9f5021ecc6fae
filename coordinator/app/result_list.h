// The list that `--json` writes to standard output: one object per (model, chip, layer, executor)
// with a result.
#pragma once

#include <string>
#include <vector>

#include "coordinator/app/run_reports.h"

namespace layerfarm::coordinator::app {

[[nodiscard]] std::string result_list(const std::vector<OpenReport>& reports);

}  // namespace layerfarm::coordinator::app
