// Tolerance: what a difference may be before a case is called `difference` (spec section 22,
// design.md section 8).
#pragma once

namespace layerfarm::domain {

struct Tolerance {
  double fp_avg_tol =
      0.01;  ///< relative difference above which an element is counted; does not decide
  double fp_max_tol = 0.01;      ///< relative difference above which an element fails the case
  double fp_abs_tol_frac = 0.0;  ///< an element counts only when its absolute difference also
                                 ///< exceeds this x max|expected|
  friend bool operator==(const Tolerance&, const Tolerance&) = default;
};

/// Integer outputs: |expected - actual| up to this passes (spec section 22). Not adjustable, as in
/// the original.
inline constexpr int kIntegerTolerance = 1;

}  // namespace layerfarm::domain
