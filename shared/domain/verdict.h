// Verdict: an outcome judged against a tolerance. Pure; the same numbers and tolerance always give
// the same verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/domain/comparison.h"
#include "shared/domain/tolerance.h"

namespace layerfarm::domain {

/// What users see in the report. `Success` = ran, within tolerance.
enum class Status : std::uint8_t { Success, Difference, Error };
[[nodiscard]] std::string_view status_name(Status status);  ///< "success", "difference", "error"
[[nodiscard]] std::optional<Status> status_from_name(std::string_view name);

struct Judgement {
  Status status = Status::Error;
  /// Joined reasons, for example "3/4096 exceed fp_max_tol 0.01; NaN positions differ"; empty on
  /// success (spec section 22).
  std::string reason;
  // Summed over the outputs, for the report's three lines. Absent when no output has the number.
  std::optional<double> max_rel_diff;
  std::optional<double> max_abs_diff;
  std::uint64_t num_diffs = 0;
  std::uint64_t total = 0;
  bool counts_known = true;  ///< false only on success, where the status is certain but `num_diffs`
                             ///< is a lower bound
};

/// Judges stored comparisons. Empty when the stored numbers cannot decide, or cannot give the
/// counts, at this tolerance: a recompare job is due. `expected_outputs` is the number of outputs
/// the reference has.
[[nodiscard]] std::optional<Judgement> judge(const std::vector<Comparison>& outputs,
                                             std::size_t expected_outputs,
                                             const Tolerance& tolerance);

}  // namespace layerfarm::domain
