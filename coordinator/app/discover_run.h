// DiscoverRun: one accepted discover request from its models to its reports. Says what happens next
// above the dispatcher: models are read, cases planned as soon as their model is known, settled
// cases go into reports and log. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/app/console.h"
#include "coordinator/app/dispatcher.h"
#include "coordinator/app/failed_cases.h"
#include "coordinator/app/input_files.h"
#include "coordinator/app/known_outcomes.h"
#include "coordinator/app/model_list.h"
#include "coordinator/app/options.h"
#include "coordinator/app/progress.h"
#include "coordinator/app/run_reports.h"
#include "coordinator/app/worker_probe.h"
#include "coordinator/plan/case_book.h"
#include "coordinator/plan/forecast.h"
#include "coordinator/store/cache.h"

namespace layerfarm::coordinator::app {

/// A request that has passed all checks.
struct DiscoverRequest {
  DiscoverOptions options;
  std::vector<ModelFile> models;
  std::vector<std::shared_ptr<const plan::PlanChip>> chips;
  MachineDescription machine;
  InputFiles inputs;
  std::filesystem::path output_folder;  ///< absolute
  std::filesystem::path cache;
  std::vector<std::string> command;
};

/// How a run went, for the exit code.
struct RunResult {
  std::uint64_t failing_errors = 0;
  std::uint64_t failing_differences = 0;
  std::uint64_t unsettled = 0;
  std::uint64_t fresh = 0;    ///< cases that were run now
  bool model_failed = false;  ///< a model could not be read
  bool interrupted = false;
  bool files_failed = false;  ///< a report could not be written
};

class DiscoverRun final : public JobSource {
 public:
  DiscoverRun(DiscoverRequest request, Console& console, store::Store& store, store::RunId run);
  ~DiscoverRun() override;

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
  /// core::JobSpec for a planned job.
  [[nodiscard]] core::JobSpec spec_of(const plan::PlannedJob& job) const;
  [[nodiscard]] std::uint32_t limit_of(const plan::PlannedJob& job) const;
  void pin(const std::vector<plan::PlannedJob>& jobs);
  struct Reading;  ///< a model that is being read, or was
  void begin_reading();
  void model_read(Reading& reading, const domain::Outcome& outcome);
  void model_failed(Reading& reading, const std::string& why);
  [[nodiscard]] base::Result<std::shared_ptr<const domain::ModelAnalysis>> known_analysis(
      const Reading& reading, const domain::Outcome& outcome) const;
  void plan_when_due(Reading& reading);
  void check_names_when_due();
  void plan_model(Reading& reading);
  [[nodiscard]] base::Result<report::ReportPaths> place_report(const Reading& reading,
                                                               const domain::ChipSpec& chip);
  [[nodiscard]] report::json::Value settings() const;
  void carry_out(plan::Turn turn);
  void case_settled(const plan::CaseSettled& settled);
  void say_case(const plan::CaseSettled& settled, const report::CaseResult& result);
  void remember_file(const Reading& reading, const ReportSetup& setup);
  void loop();
  void finish();
  void say_end_reports();
  void say_forecast();
  void stop_now(const std::string& why);

  DiscoverRequest request_;
  Console& console_;
  store::Store& store_;
  store::RunId run_;
  KnownOutcomes known_;
  plan::CaseBook book_;
  base::MonotonicClock clock_;
  base::Time started_;
  RunReports reports_;
  Progress progress_;
  FailedCases failed_cases_;
  std::unique_ptr<store::BlobPins>
      pins_;  ///< null when the cache folder cannot hold the list: then lost blobs are made again
  std::vector<std::unique_ptr<Reading>> readings_;
  bool names_open_;  ///< --dim or --inputs name what only all models together can know
  std::map<core::JobId, std::vector<Reading*>>
      analyze_jobs_;  ///< models of equal content are read once
  std::map<plan::Group, std::size_t> chip_of_group_;
  plan::Forecast forecast_;
  Dispatcher* dispatcher_ = nullptr;
  RunResult result_;
  int interrupts_ = 0;
};

}  // namespace layerfarm::coordinator::app
