// CaseLog: what a run says of each settled case while it goes on. Loop thread only.
#pragma once

#include <string>

#include "coordinator/app/console.h"
#include "coordinator/app/progress.h"
#include "coordinator/app/run_reports.h"
#include "coordinator/plan/case_settled.h"
#include "coordinator/report/case_result.h"

namespace layerfarm::coordinator::app {

class CaseLog {
 public:
  /// Chips are named only where there are several.
  CaseLog(Console& console, const Progress& progress, bool several_chips)
      : console_(console), progress_(progress), several_chips_(several_chips) {}

  /// A case with a result, and how far the run is.
  void say(const plan::CaseSettled& settled, const report::CaseResult& result,
           const ReportSetup& setup);
  /// A case that was skipped, or has no verdict.
  void say_without_result(const plan::CaseSettled& settled, const ReportSetup& setup);

 private:
  [[nodiscard]] static std::string label(const plan::CaseSettled& settled,
                                         const ReportSetup& setup);

  Console& console_;
  const Progress& progress_;
  bool several_chips_;
};

}  // namespace layerfarm::coordinator::app
