// What discover says at its end: the reports, or a dry run's forecast. Loop thread only.
#pragma once

#include <vector>

#include "coordinator/app/console.h"
#include "coordinator/app/discover_request.h"
#include "coordinator/app/run_reports.h"
#include "coordinator/plan/forecast.h"

namespace layerfarm::coordinator::app {

void say_end_reports(Console& console, const std::vector<OpenReport>& reports,
                     const RunResult& result);
/// On standard output; as JSON with --json.
void print_forecast(const plan::Forecast& forecast, const DiscoverOptions& options);

}  // namespace layerfarm::coordinator::app
