// DiscoverRun: one accepted discover request from its models to its reports. Says what happens next
// above the dispatcher: models are read, cases planned as soon as their model is known, settled
// cases go into reports and log. Loop thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/app/case_log.h"
#include "coordinator/app/console.h"
#include "coordinator/app/discover_request.h"
#include "coordinator/app/dispatcher.h"
#include "coordinator/app/failed_cases.h"
#include "coordinator/app/ir_dumps.h"
#include "coordinator/app/known_outcomes.h"
#include "coordinator/app/model_reading.h"
#include "coordinator/app/model_reports.h"
#include "coordinator/app/plan_core.h"
#include "coordinator/app/progress.h"
#include "coordinator/app/run_reports.h"
#include "coordinator/plan/case_book.h"
#include "coordinator/plan/forecast.h"
#include "coordinator/store/cache.h"

namespace layerfarm::coordinator::app {

class DiscoverRun final : public JobSource {
 public:
  DiscoverRun(DiscoverRequest request, Console& console, store::Store& store, store::RunId run);

  /// Everything but the exit code. `dispatcher` has this as its source.
  RunResult go(Dispatcher& dispatcher);

  // JobSource
  [[nodiscard]] JobContent content(core::JobId job) const override;
  [[nodiscard]] base::Digest key(core::JobId job) const override;
  [[nodiscard]] std::vector<core::JobId> producers_of(
      core::JobId job, const std::vector<base::Digest>& lost) override;
  void on_settled(const core::JobSettled& settled,
                  const std::shared_ptr<const domain::Outcome>& outcome) override;
  void on_note(const std::string& text, bool verbose) override;
  void on_activity(const std::string& worker, const std::string& what) override;
  void on_interrupt() override;

 private:
  void begin_reading();
  void model_failed(Reading& reading, const std::string& why);
  void check_names_when_due();
  void plan_when_due(Reading& reading);
  void plan_model(Reading& reading);
  void say_unmatched(const Reading& reading);
  void remember_file(const Reading& reading, const ReportSetup& setup);
  void carry_out(plan::Turn turn);
  void pin(const std::vector<plan::PlannedJob>& jobs);
  void case_settled(const plan::CaseSettled& one);
  [[nodiscard]] plan::JobAnswer answer_of(
      const core::JobSettled& settled, const std::shared_ptr<const domain::Outcome>& outcome) const;
  void add_reading_job(const plan::PlannedJob& job);
  void model_settled(Reading& reading, const plan::JobAnswer& answer);
  void loop();
  void finish();
  void stop_now(const std::string& why);

  DiscoverRequest request_;
  Console& console_;
  store::Store& store_;
  store::RunId run_;
  KnownOutcomes known_;
  plan::CaseBook book_;
  base::MonotonicClock clock_;
  base::Time started_;
  ModelReading models_;
  ModelReports model_reports_;
  JobSpecs specs_;
  bool names_open_;  ///< names were given that only all models together can know
  RunReports reports_;
  Progress progress_;
  CaseLog log_;
  FailedCases failed_cases_;
  IrDumps ir_dumps_;
  std::unique_ptr<store::BlobPins>
      pins_;  ///< null when the cache folder cannot hold the list: then lost blobs are made again
  plan::Forecast forecast_;
  Dispatcher* dispatcher_ = nullptr;
  RunResult result_;
  int interrupts_ = 0;
};

}  // namespace layerfarm::coordinator::app
