#include "shared/domain/verdict.h"

#include <algorithm>
#include <cmath>

#include "shared/base/number_text.h"

namespace layerfarm::domain {
namespace {

/// Fewer elements than these are no sign of anything.
constexpr std::uint64_t kSign = 4;

/// a > b in the arithmetic that the comparison worked in: float32 but for float64.
bool exceeds(DType type, double value, double bound) {
  return type == DType::Float64 ? value > bound
                                : static_cast<float>(value) > static_cast<float>(bound);
}
bool same(DType type, double a, double b) { return !exceeds(type, a, b) && !exceeds(type, b, a); }

struct Counts {
  std::uint64_t diffs = 0;
  std::uint64_t failed = 0;
};

/// Elements with rel > bound, where the stored numbers tell. Only elements beyond the abs fraction
/// count.
std::optional<std::uint64_t> count_beyond(const Comparison& output, double bound, double fraction) {
  const Tolerance& at = output.counted_at;
  if (fraction == at.fp_abs_tol_frac) {
    if (same(output.dtype, bound, at.fp_avg_tol)) return output.num_diffs;
    if (same(output.dtype, bound, at.fp_max_tol)) return output.num_failed;
    if (!exceeds(output.dtype, output.required_max_tol, bound)) return 0;
  }
  for (std::size_t i = 0; i < kAbsFractions.size(); ++i) {
    if (fraction >= kAbsFractions[i] && !exceeds(output.dtype, output.max_rel_above[i], bound))
      return 0;
  }
  if (fraction != 0) return std::nullopt;
  if (output.num_forgiven && same(output.dtype, bound, at.fp_max_tol))
    return output.num_failed + *output.num_forgiven;
  // Without a fraction the histogram holds the count for the tolerances that are edges of it.
  for (std::size_t k = 0; k < kRelativeEdges.size(); ++k) {
    if (!same(output.dtype, bound, kRelativeEdges[k])) continue;
    std::uint64_t beyond = 0;
    for (std::size_t bin = k + 1; bin < output.rel_histogram.size(); ++bin)
      beyond += output.rel_histogram[bin];
    return beyond;
  }
  return std::nullopt;
}

/// Whether some element fails, where the stored numbers tell.
std::optional<bool> any_fails(const Comparison& output, const Tolerance& tolerance) {
  const auto fails = [&](double greatest) {
    return exceeds(output.dtype, greatest, tolerance.fp_max_tol);
  };
  if (tolerance.fp_abs_tol_frac == output.counted_at.fp_abs_tol_frac)
    return fails(output.required_max_tol);
  for (std::size_t i = 0; i < kAbsFractions.size(); ++i) {
    // A smaller fraction lets more elements count, so its greatest is an upper bound; a larger one
    // gives a lower bound.
    if (tolerance.fp_abs_tol_frac >= kAbsFractions[i] && !fails(output.max_rel_above[i]))
      return false;
    if (tolerance.fp_abs_tol_frac <= kAbsFractions[i] && fails(output.max_rel_above[i]))
      return true;
  }
  return std::nullopt;
}

/// Integers that differ by more than the bound, where the stored numbers tell.
std::optional<std::uint64_t> count_beyond(const Comparison& output, std::uint32_t bound) {
  const std::uint32_t counted = output.counted_at.integer_bound();
  if (bound == counted) return output.num_failed;
  if (output.max_abs <= static_cast<double>(bound)) return 0;
  const auto ones = off_by_one(output);
  if (!ones || bound > 1 || counted > 1) return std::nullopt;
  return bound == 0 ? output.num_failed + *ones : output.num_failed - *ones;
}

bool was_compared(const Comparison& output) {
  return !output.failure.starts_with("size differs") &&
         !output.failure.ends_with("cannot be compared");
}

void add_reason(std::string& reason, const std::string& more) {
  if (!reason.empty()) reason += "; ";
  reason += more;
}

/// For what several outputs can have in common.
void add_reason_once(std::string& reason, const std::string& more) {
  if (("; " + reason + "; ").find("; " + more + "; ") == std::string::npos)
    add_reason(reason, more);
}

}  // namespace

std::string_view status_name(Status status) {
  switch (status) {
    case Status::Success:
      return "success";
    case Status::Difference:
      return "difference";
    case Status::Error:
      return "error";
  }
  return "unknown";
}

std::optional<Status> status_from_name(std::string_view name) {
  for (const Status status : {Status::Success, Status::Difference, Status::Error}) {
    if (name == status_name(status)) return status;
  }
  return std::nullopt;
}

std::optional<Judgement> judge(const std::vector<Comparison>& outputs, std::size_t expected_outputs,
                               const Tolerance& tolerance) {
  Judgement out;
  bool failed = false;
  if (outputs.size() != expected_outputs) {
    failed = true;
    add_reason(out.reason, "number of outputs differ: " + std::to_string(expected_outputs) +
                               " vs " + std::to_string(outputs.size()));
  }
  for (const Comparison& output : outputs) {
    out.total += output.total;
    if (!output.failure.empty()) {
      failed = true;
      add_reason_once(out.reason, output.failure);
    }
    if (!was_compared(output)) continue;
    out.max_abs_diff = std::max(out.max_abs_diff.value_or(0), output.max_abs);
    std::string what;
    std::optional<Counts> counts;
    if (is_floating(output.dtype)) {
      out.max_rel_diff = std::max(out.max_rel_diff.value_or(0), output.max_rel);
      what = " exceed fp_max_tol " + base::number_text(tolerance.fp_max_tol);
      const std::optional<bool> fails = any_fails(output, tolerance);
      if (!fails) return std::nullopt;
      failed = failed || *fails;
      const auto diffs = count_beyond(output, tolerance.fp_avg_tol, tolerance.fp_abs_tol_frac);
      const auto beyond = count_beyond(output, tolerance.fp_max_tol, tolerance.fp_abs_tol_frac);
      if (diffs && beyond) counts = Counts{*diffs, *beyond};
    } else {
      const bool boolean = output.dtype == DType::Bool;
      const std::uint32_t bound = tolerance.integer_bound();
      what = boolean ? " boolean differences" : " exceed int_tol " + std::to_string(bound);
      const auto beyond = boolean ? std::optional(output.num_failed) : count_beyond(output, bound);
      // Which is nearly always known, and cheap to find anew.
      if (!beyond) return std::nullopt;
      failed = failed || *beyond > 0;
      counts = Counts{*beyond, *beyond};
    }
    if (!counts) {
      out.counts_known = false;
      continue;
    }
    out.num_diffs += counts->diffs;
    if (counts->failed > 0)
      add_reason(out.reason,
                 std::to_string(counts->failed) + "/" + std::to_string(output.total) + what);
  }
  out.status = failed ? Status::Difference : Status::Success;
  // A difference is shown with its counts, so without them the outputs have to be compared again.
  if (failed && !out.counts_known) return std::nullopt;
  return out;
}

std::optional<Forgiven> forgiven(const std::vector<Comparison>& outputs,
                                 const Tolerance& tolerance) {
  Forgiven out;
  for (const Comparison& output : outputs) {
    if (!is_floating(output.dtype) || !was_compared(output)) continue;
    const auto beyond = count_beyond(output, tolerance.fp_max_tol, 0);
    const auto failed = count_beyond(output, tolerance.fp_max_tol, tolerance.fp_abs_tol_frac);
    if (!beyond || !failed) return std::nullopt;
    const std::uint64_t passed = *beyond - std::min(*beyond, *failed);
    out.elements += passed;
    if (passed < kSign) continue;
    const bool apart = output.num_small >= output.total / 10;
    out.hides = out.hides || passed > output.total / 2 || (apart && passed > output.num_small / 2);
  }
  return out;
}

std::optional<std::uint64_t> off_by_one(const Comparison& output) {
  if (is_floating(output.dtype) || output.dtype == DType::Bool || !was_compared(output)) return 0;
  if (output.num_off_by_one) return output.num_off_by_one;
  // An older program kept the mean alone, which tells where nothing differs by more.
  if (output.max_abs > 1) return std::nullopt;
  return static_cast<std::uint64_t>(
      std::llround(output.mean_abs * static_cast<double>(output.total)));
}

bool is_exact_integer(DType type) {
  return !is_floating(type) && type != DType::Bool && dtype_size(type) >= 4;
}

}  // namespace layerfarm::domain
