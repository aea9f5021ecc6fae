// Comparison of one output with its reference, in numbers from which a verdict can be derived for
// any tolerance later (spec section 22 with the mends of section 24; design.md, sections 5 and 8).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/domain/tensor.h"
#include "shared/domain/tolerance.h"

namespace layerfarm::domain {

/// Upper edges of the histogram of relative differences; bin i counts edges[i-1] < rel <= edges[i];
/// one more bin for the rest.
inline constexpr std::array<double, 12> kRelativeEdges = {0.0,  1e-8, 1e-7, 1e-6, 1e-5, 1e-4,
                                                          1e-3, 1e-2, 2e-2, 5e-2, 1e-1, 1.0};
/// Fractions of max|expected| for which the greatest relative difference is kept (see
/// Comparison::max_rel_above).
inline constexpr std::array<double, 8> kAbsFractions = {0.0,  1e-5, 1e-4, 1e-3,
                                                        5e-3, 1e-2, 2e-2, 5e-2};

/// What is small beside the greatest expected value (see Comparison::num_small).
inline constexpr double kSmallShare = 0.01;

/// rel = |e-o| / (|e|+|o|+1e-6). Arithmetic: float32 for f16, bf16 and f32, float64 for f64, exact
/// for integers and bool.
struct Comparison {
  /// Type of the expected output; where the two types differ, the one that the arithmetic is that
  /// of (float64, or bool when one is bool).
  DType dtype = DType::Undefined;
  std::uint64_t total = 0;
  /// Set when no tolerance can help: "size differs: a vs b", "NaN positions differ", "Inf positions
  /// differ", "output is all zero".
  std::string failure;
  double max_abs = 0;       ///< over all elements; integers: exact up to 2^53
  double max_rel = 0;       ///< floats only, over all elements
  double max_expected = 0;  ///< max|expected| over finite elements
  double mean_abs = 0;
  double mean_rel = 0;
  double cosine = 1;  ///< 1 when both are all zero, 0 when one is
  std::uint64_t worst_index =
      0;  ///< flat index of the element with the greatest relative (integers: absolute) difference
  double worst_expected = 0;
  double worst_actual = 0;
  Tolerance counted_at;          ///< the tolerance that the two counts below belong to
  std::uint64_t num_diffs = 0;   ///< floats: rel > fp_avg_tol; integers: difference above their
                                 ///< bound; bool: any difference
  std::uint64_t num_failed = 0;  ///< elements that fail the case at counted_at
  /// Floats: elements beyond fp_max_tol that pass at counted_at for their absolute difference
  /// alone. None: of an older program, which did not count them.
  std::optional<std::uint64_t> num_forgiven = std::nullopt;
  /// Floats: elements of at most kSmallShare x max|expected| that are not zero on both sides.
  std::uint64_t num_small = 0;
  /// Integers: elements that differ by exactly one. None: of an older program, or no integers.
  std::optional<std::uint64_t> num_off_by_one = std::nullopt;
  /// Smallest fp_max_tol that passes with counted_at.fp_abs_tol_frac ("tolerance needed"); floats
  /// only.
  double required_max_tol = 0;
  std::array<std::uint64_t, kRelativeEdges.size() + 1> rel_histogram{};
  /// Greatest rel among elements whose |e-o| exceeds kAbsFractions[i] x max_expected: falls with i,
  /// so it bounds every fraction between.
  std::array<double, kAbsFractions.size()> max_rel_above{};
  friend bool operator==(const Comparison&, const Comparison&) = default;
};

/// Compares one output. `expected` and `actual` are raw arrays; shapes may differ while element
/// counts agree.
[[nodiscard]] Comparison compare(const TensorType& expected_type, base::BytesView expected,
                                 const TensorType& actual_type, base::BytesView actual,
                                 const Tolerance& tolerance);
/// Of an output whose content the model's format leaves open: only its size is looked at, no
/// element counts.
[[nodiscard]] Comparison compare_size(const TensorType& expected_type, base::BytesView expected,
                                      const TensorType& actual_type, base::BytesView actual,
                                      const Tolerance& tolerance);

}  // namespace layerfarm::domain
