// RunReports: the reports of a run, one per (model, chip): settled cases go in, files are kept up
// to date by a timer. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/app/console.h"
#include "coordinator/app/doubtful_passes.h"
#include "coordinator/app/known_outcomes.h"
#include "coordinator/app/model_list.h"
#include "coordinator/plan/case_book.h"
#include "coordinator/report/report_state.h"
#include "coordinator/report/report_writer.h"

namespace layerfarm::coordinator::app {

/// What a report is about, known once its model was read.
struct ReportSetup {
  std::string model_name;
  std::string suffix = {};  ///< of file and case names; not empty for a subgraph
  /// How the run's lines call the model; empty when there is only one, so that nobody need ask.
  std::string label = {};
  /// What a line that is about the whole model begins with.
  [[nodiscard]] std::string line_start() const { return label.empty() ? "" : label + ": "; }
  std::shared_ptr<const domain::ModelAnalysis> model;
  std::shared_ptr<const plan::PlanChip> chip;
  report::ReportPaths paths;
  std::string shown_path = {};  ///< of the report, as the user named its folder
  report::json::Value settings;
  std::string reference;
  std::vector<std::pair<std::string, std::string>> tools;
  report::Rule rule = report::Rule::Priority;
  plan::PlanOptions options;
  domain::InputSet inputs;    ///< of the first repeat; each further one has the next seed
  std::uint32_t repeats = 1;  ///< verdicts that each case gets
  domain::ToolIdentity reference_tool;
};

/// One report.
struct OpenReport {
  ReportSetup setup;
  std::unique_ptr<report::ReportState> state;
  std::unique_ptr<report::ReportWriter> writer;
  base::Time next_write{0};
  std::uint64_t fresh = 0;
  std::uint64_t stored = 0;
  std::uint64_t timed = 0;  ///< timed in this run
  DoubtfulPasses doubtful;
  std::vector<bool> settled;  ///< by layer x executors + executor: this run has a verdict
  std::string trouble;  ///< the write error that was said last; empty = none, or said to be over
  std::optional<base::Time> well_since;  ///< of the first write that worked since `trouble`
};

/// As Prepared::reference names the first engine.
[[nodiscard]] std::string reference_name(const domain::ToolIdentity& reference);
/// Tolerances that users see: chip file under flags, per executor.
[[nodiscard]] domain::ChipSpec with_tolerances(domain::ChipSpec chip,
                                               const plan::ToleranceFlags& flags);

/// Makes the state of a report and takes over what is on disk. Errors name the file.
struct OpenedReport {
  OpenReport report;
  report::Takeover takeover;
  plan::OldReport old;
  std::string warning;  ///< about locations
};
[[nodiscard]] base::Result<OpenedReport> open_report(ReportSetup setup);
/// What became of the file that was there, for people: what was set aside and why, that it does not
/// say of which settings it is, whose recommendations are kept.
[[nodiscard]] std::vector<std::string> takeover_lines(const report::Takeover& takeover,
                                                      const ReportSetup& setup);
/// Empty, or the line that says why a recommendation by timing will not come about: the chip's
/// times are an emulator's beside hardware's, or nothing is timed in this run and the report that
/// it goes on with holds no times.
[[nodiscard]] std::string timing_rule_line(const OpenReport& report);

/// A settled case as the report shows it; empty for skipped and unsettled ones.
[[nodiscard]] std::optional<report::CaseResult> case_result_of(const plan::CaseSettled& settled,
                                                               const ReportSetup& setup,
                                                               KnownOutcomes& known);

/// A case as its report shows it: with several repeats, what they come to together.
struct ShownCase {
  const OpenReport* report = nullptr;
  plan::CaseSettled settled;                 ///< of the repeat that is shown
  std::optional<report::CaseResult> result;  ///< none for skipped and unsettled ones
};

class RunReports {
 public:
  RunReports(Console& console, KnownOutcomes& known) : console_(console), known_(known) {}

  /// The reports of one model. The case book has got their request once for each repeat.
  void add(std::vector<OpenReport> reports);
  [[nodiscard]] std::vector<OpenReport>& all() { return reports_; }
  /// Puts the case into its report. Empty while other repeats of it are open.
  std::optional<ShownCase> settle(const plan::CaseSettled& settled);
  /// Writes what is due; `now` from the same clock as at the start.
  void write_due(base::Time now);
  /// When write_due has something to do next; empty = nothing changed.
  [[nodiscard]] std::optional<base::Time> next_due() const;
  /// Writes every report for good. False when one could not be written.
  [[nodiscard]] bool finish(report::Phase phase);

 private:
  std::optional<ShownCase> show(OpenReport& report, const plan::CaseSettled& settled,
                                std::optional<report::CaseResult> result);
  std::optional<ShownCase> show_repeats(OpenReport& report,
                                        const std::vector<plan::CaseSettled>& repeats);
  void say_when_over(OpenReport& report, report::Phase phase);
  bool write(OpenReport& report, report::Phase phase);
  void judge_again(OpenReport& report, const report::Takeover& takeover);

  Console& console_;
  KnownOutcomes& known_;
  std::vector<OpenReport> reports_;
  std::vector<std::size_t> report_of_;  ///< by file id
  /// (report, case) -> the repeats that are settled, until all are.
  std::map<std::pair<std::size_t, std::uint32_t>, std::vector<plan::CaseSettled>> waiting_;
};

}  // namespace layerfarm::coordinator::app
