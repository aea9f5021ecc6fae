// What a run of the whole model says: its result in the report file, and lines for people. Pure;
// any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/report/json.h"
#include "coordinator/report/texts.h"
#include "shared/domain/outcome.h"
#include "shared/domain/verdict.h"

namespace layerfarm::coordinator::report {

/// A whole model's run, judged.
struct WholeResult {
  domain::Status status = domain::Status::Error;
  domain::Tolerance tolerance;
  domain::Judgement judgement;  ///< of a comparison
  domain::WholeRun run;         ///< of a comparison
  std::string failure;          ///< error: first line of why there is none
  /// With boundaries asked for: per segment, whether what leaves it is within the tolerance.
  std::vector<domain::Judgement> boundaries;
};
/// Empty when the stored numbers cannot decide at this tolerance.
[[nodiscard]] std::optional<WholeResult> judge_whole(const domain::Outcome& outcome,
                                                     const domain::Tolerance& tolerance);
/// Place of the first segment of which something that leaves it is wrong.
[[nodiscard]] std::optional<std::size_t> first_wrong(const WholeResult& result);
/// Right at the outputs, and at every boundary that was looked at.
[[nodiscard]] bool passed(const WholeResult& result);
/// How often the run went from one executor to another.
[[nodiscard]] std::size_t switches(const domain::WholeRun& run);

/// Block 5 of the texts; empty for an error.
[[nodiscard]] std::optional<WholeModel> whole_model(const WholeResult& result);
/// `Full model <m>: comparison passed` and what belongs to it; without a newline at the end.
[[nodiscard]] std::string whole_lines(const std::string& model_name, const WholeResult& result);
/// Last line of a run that did not pass: what failed. Empty for one that passed.
[[nodiscard]] std::string failed_run_line(const WholeResult& result);
/// What `_whole_model` says, in a line: "passed", or what failed.
[[nodiscard]] std::string last_run_text(const json::Value& whole);
/// `_whole_model` of the report.
[[nodiscard]] json::Value whole_json(const WholeResult& result);

/// Renews what a run changes in a report: `mlir_location` of the layers that `locations` has
/// (layer id -> "line:column", or the op type), the result, and the closing keys.
void put_whole_result(json::Value& report, const std::map<std::string, std::string>& locations,
                      const WholeResult& result);

}  // namespace layerfarm::coordinator::report
