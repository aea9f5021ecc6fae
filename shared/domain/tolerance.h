// Tolerance: what a difference may be before a case is called `difference` (spec section 22,
// design.md section 8).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

namespace layerfarm::domain {

/// Integer outputs: |expected - actual| up to this passes where nobody says otherwise (spec section
/// 22).
inline constexpr std::uint32_t kIntegerTolerance = 1;

struct Tolerance {
  double fp_avg_tol =
      0.01;  ///< relative difference above which an element is counted; does not decide
  double fp_max_tol = 0.01;      ///< relative difference above which an element fails the case
  double fp_abs_tol_frac = 0.0;  ///< an element counts only when its absolute difference also
                                 ///< exceeds this x max|expected|
  /// Difference of integers above which an element fails the case; none = kIntegerTolerance.
  std::optional<std::uint32_t> int_tol = std::nullopt;

  [[nodiscard]] std::uint32_t integer_bound() const { return int_tol.value_or(kIntegerTolerance); }
  friend bool operator==(const Tolerance&, const Tolerance&) = default;
};

/// Bounds that a person set for a layer, those that were set; the others stay what they are.
struct ToleranceEdit {
  std::optional<double> fp_avg_tol;
  std::optional<double> fp_max_tol;
  std::optional<double> fp_abs_tol_frac;
  std::optional<std::uint32_t> int_tol;

  [[nodiscard]] bool empty() const {
    return !fp_avg_tol && !fp_max_tol && !fp_abs_tol_frac && !int_tol;
  }
  [[nodiscard]] Tolerance over(Tolerance tolerance) const {
    tolerance.fp_avg_tol = fp_avg_tol.value_or(tolerance.fp_avg_tol);
    tolerance.fp_max_tol = fp_max_tol.value_or(tolerance.fp_max_tol);
    tolerance.fp_abs_tol_frac = fp_abs_tol_frac.value_or(tolerance.fp_abs_tol_frac);
    if (int_tol) tolerance.int_tol = int_tol;
    return tolerance;
  }
  friend auto operator<=>(const ToleranceEdit&, const ToleranceEdit&) = default;
};

}  // namespace layerfarm::domain
