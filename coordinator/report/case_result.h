// CaseResult: what a report says of one layer on one executor, made from a judged or failed
// outcome. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/report/json.h"
#include "shared/domain/chip.h"
#include "shared/domain/comparison.h"
#include "shared/domain/outcome.h"
#include "shared/domain/tolerance.h"
#include "shared/domain/verdict.h"

namespace layerfarm::coordinator::report {

/// `timing` of a result.
struct Timing {
  double runtime_ms = 0;  ///< mean, 3 decimals
  double min_ms = 0;
  double median_ms = 0;
  double spread_ms = 0;  ///< greatest minus least
  std::int64_t runs = 0;
  std::string what;  ///< what was measured: "session run" ...
};
/// Empty when there are no runs.
[[nodiscard]] std::optional<Timing> timing_of(const domain::Timed& timed);

/// Why there is no comparison.
struct Failure {
  bool in_setup = true;     ///< import, reference, compile; else while running
  std::string error_class;  ///< "ToolError", or the cause: "crashed: SIGSEGV"
  std::string text;         ///< whole diagnostic, normalised
  std::string where;        ///< the step: "compile" ...
};

/// Numbers over all outputs of a layer.
struct Numbers {
  std::uint64_t num_diffs = 0;
  std::uint64_t total = 0;
  std::optional<double> mean_rel_diff;       ///< floats only
  std::optional<double> required_tolerance;  ///< smallest fp_max_tol that would pass; floats only
  double cosine = 1;                         ///< the worst output's
  std::uint64_t worst_output = 0;
  std::uint64_t worst_index = 0;  ///< flat index in that output
  /// Elements that pass for their absolute difference alone; none = not known.
  std::optional<domain::Forgiven> forgiven;
  std::uint64_t integers = 0;    ///< elements of outputs that are integers (bools are none)
  std::uint64_t off_by_one = 0;  ///< of these, those that differ by one, as far as that is known
};

/// How often each verdict came, when repeats disagree.
struct FlakyCounts {
  std::int64_t success = 0;
  std::int64_t difference = 0;
  std::int64_t error = 0;
};

/// Compile cost, stored under --collect-timing.
struct CompileCost {
  double ms = 0;  ///< in a batch: its time / n
  std::uint32_t batch = 1;
  bool cached = false;
};

struct CaseResult {
  domain::Status status = domain::Status::Error;
  domain::Tolerance tolerance;  ///< in force when it was judged
  std::optional<double> max_rel_diff;
  std::optional<double> max_abs_diff;
  std::string reason;              ///< difference: why, in the comparison's words
  std::optional<Failure> failure;  ///< error
  std::optional<Numbers> numbers;
  std::optional<Timing> timing;
  std::optional<CompileCost> compile;
  std::optional<FlakyCounts> flaky;
  std::optional<domain::Evidence> evidence;  ///< only where it differs from the executor's
  std::string
      reference;  ///< engine that made the reference; written where it differs from the report's
  bool same_engine = false;  ///< the executor is that engine
  std::string copied_from;   ///< layer id, under --dedup-layers
  std::string note;          ///< "raised to opset 17" ...
};

/// A comparison that was judged. `outputs` are the numbers behind the judgement.
[[nodiscard]] CaseResult case_result(const domain::Judgement& judgement,
                                     const std::vector<domain::Comparison>& outputs,
                                     const domain::Tolerance& tolerance);
/// A stage that gave no comparison.
[[nodiscard]] CaseResult case_result(const domain::Diagnostic& diagnostic,
                                     const domain::Tolerance& tolerance);

/// `failure_report.summary`; empty on success.
[[nodiscard]] std::string failure_summary(const CaseResult& result);
/// The three lines on differences; a number that nothing has reads `n/a`.
[[nodiscard]] std::string difference_lines(std::optional<double> max_rel,
                                           std::optional<double> max_abs, std::uint64_t num_diffs,
                                           std::uint64_t total);
/// `  Number of differences: 3 out of 512 [0.59%]` without the indent.
[[nodiscard]] std::string count_line(std::uint64_t num_diffs, std::uint64_t total);
/// A diagnostic of at most 512 characters, cut after a whole line where there is one, then "...".
[[nodiscard]] std::string cut_diagnostic(std::string_view text);
[[nodiscard]] std::string_view first_line(std::string_view text);

/// Appends the result as JSON, indented for a member of `executors`. `reference` is the report's
/// own, not repeated in results.
void write_result(const CaseResult& result, std::string_view reference, std::string& out);
/// `{"fp_avg_tol": .., "fp_max_tol": ..}`; `fp_abs_tol_frac` only when it is not 0, `int_tol` only
/// when it is not the usual one.
[[nodiscard]] json::Value tolerance_json(const domain::Tolerance& tolerance);
/// The bounds that such an object has (null: none).
[[nodiscard]] domain::ToleranceEdit bounds_in(const json::Value* tolerance);

}  // namespace layerfarm::coordinator::report
