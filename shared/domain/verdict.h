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

/// What passes at a tolerance for its absolute difference alone, over all outputs.
struct Forgiven {
  std::uint64_t elements = 0;  ///< beyond fp_max_tol, within fp_abs_tol_frac x max|expected|
  /// In some output these are more than half of all elements; or more than half of those that are
  /// small beside a greatest value which stands apart (a tenth of the elements, or more, do not
  /// reach kSmallShare of it). Then the greatest value hides that what is small is wrong. A few
  /// elements are no sign of it: noise near zero gives them anywhere.
  bool hides = false;
};

/// Judges stored comparisons. Empty when the stored numbers cannot decide, or cannot give the
/// counts, at this tolerance: a recompare job is due. `expected_outputs` is the number of outputs
/// the reference has.
[[nodiscard]] std::optional<Judgement> judge(const std::vector<Comparison>& outputs,
                                             std::size_t expected_outputs,
                                             const Tolerance& tolerance);

/// Empty when the stored numbers do not tell.
[[nodiscard]] std::optional<Forgiven> forgiven(const std::vector<Comparison>& outputs,
                                               const Tolerance& tolerance);
/// Elements of one output that are integers and differ by exactly one; empty when the stored
/// numbers do not tell.
[[nodiscard]] std::optional<std::uint64_t> off_by_one(const Comparison& output);
/// Whether an output's integers are exact by their type: indices, shapes and masks, which nothing
/// rounds, have 32 or 64 bits; what has fewer is likely a quantized value.
[[nodiscard]] bool is_exact_integer(DType type);

}  // namespace layerfarm::domain
