// ModelReports: where the reports of a model go, one per chip, and what is taken over from the
// files that are there. Loop thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/app/console.h"
#include "coordinator/app/discover_request.h"
#include "coordinator/app/model_reading.h"
#include "coordinator/app/run_reports.h"

namespace layerfarm::coordinator::app {

/// The user's options, as planning takes them.
[[nodiscard]] plan::PlanOptions plan_options_of(const DiscoverOptions& options);

/// `_settings` of a report: what decides what its layers are.
[[nodiscard]] report::json::Value report_settings(const DiscoverOptions& options,
                                                  const InputFiles& inputs);

class ModelReports {
 public:
  ModelReports(const DiscoverRequest& request, Console& console)
      : request_(request), console_(console) {}

  /// Opens a report for each chip, in their order, and says what became of older files. A dry run
  /// leaves those where they are.
  [[nodiscard]] base::Result<std::vector<OpenedReport>> open(const Reading& reading);

 private:
  [[nodiscard]] base::Result<report::ReportPaths> place(const Reading& reading,
                                                        const domain::ChipSpec& spec);
  [[nodiscard]] base::Result<report::ReportPaths> take_single(const Reading& reading,
                                                              const domain::ChipSpec& spec,
                                                              const report::ReportPaths& paths);
  [[nodiscard]] base::Result<void> move(const std::vector<report::Move>& moves,
                                        const std::string& what);
  [[nodiscard]] ReportSetup setup(const Reading& reading,
                                  const std::shared_ptr<const plan::PlanChip>& chip,
                                  report::ReportPaths paths) const;
  void say_opened(const ModelFile& model, const OpenedReport& opened);

  const DiscoverRequest& request_;
  Console& console_;
};

}  // namespace layerfarm::coordinator::app
