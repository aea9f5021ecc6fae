#include "shared/domain/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include "shared/domain/half.h"

namespace layerfarm::domain {
namespace {

// Elements are taken in blocks that stay in the first-level cache; each step below is one short
// loop over a block, so that the compiler can vectorise it, and steps that a block's greatest
// difference makes pointless are left out.
constexpr std::size_t kBlock = 2048;

__extension__ using I128 = __int128;

template <typename Stored>
Stored stored_at(base::BytesView bytes, std::size_t index) {
  Stored value;
  std::memcpy(&value, bytes.data() + index * sizeof(Stored), sizeof(Stored));
  return value;
}

/// Reads `count` elements from `start` on as numbers of type Work.
template <typename Work>
void load(DType type, base::BytesView bytes, std::size_t start, std::size_t count, Work* out) {
  const auto each = [&]<typename Stored>(Stored, const auto& convert) {
    for (std::size_t i = 0; i < count; ++i)
      out[i] = static_cast<Work>(convert(stored_at<Stored>(bytes, start + i)));
  };
  const auto same = [](auto value) { return value; };
  switch (type) {
    case DType::Float32:
      each(float{}, same);
      break;
    case DType::Float64:
      each(double{}, same);
      break;
    case DType::Float16:
      each(std::uint16_t{}, half_to_float);
      break;
    case DType::BFloat16:
      each(std::uint16_t{}, bfloat16_to_float);
      break;
    case DType::UInt8:
      each(std::uint8_t{}, same);
      break;
    case DType::Int8:
      each(std::int8_t{}, same);
      break;
    case DType::UInt16:
      each(std::uint16_t{}, same);
      break;
    case DType::Int16:
      each(std::int16_t{}, same);
      break;
    case DType::UInt32:
      each(std::uint32_t{}, same);
      break;
    case DType::Int32:
      each(std::int32_t{}, same);
      break;
    case DType::UInt64:
      each(std::uint64_t{}, same);
      break;
    case DType::Int64:
      each(std::int64_t{}, same);
      break;
    case DType::Bool:
      each(std::uint8_t{}, [](std::uint8_t value) { return value != 0 ? 1 : 0; });
      break;
    case DType::Undefined:
    case DType::String:
    case DType::Complex64:
    case DType::Complex128:
      break;
  }
}

/// A pair of outputs with equal element counts.
struct Pair {
  DType expected_type;
  base::BytesView expected;
  DType actual_type;
  base::BytesView actual;
  std::size_t total;
};

/// Sums for the cosine, kept so that squares neither overflow nor vanish.
struct Dots {
  double scale = 1;
  double expected = 0;
  double actual = 0;
  double both = 0;

  [[nodiscard]] double cosine() const {
    if (expected == 0 && actual == 0) return 1;
    if (expected == 0 || actual == 0) return 0;
    return std::clamp(both / (std::sqrt(expected) * std::sqrt(actual)), -1.0, 1.0);
  }
};

double finite(double value) { return std::min(value, std::numeric_limits<double>::max()); }

/// Comparison of floating-point outputs in the arithmetic of T (float or double).
template <typename T>
class FloatComparer {
 public:
  FloatComparer(const Pair& pair, Comparison& out)
      : pair_(pair),
        out_(out),
        avg_tol_(static_cast<T>(out.counted_at.fp_avg_tol)),
        max_tol_(static_cast<T>(out.counted_at.fp_max_tol)) {
    for (std::size_t i = 0; i < kRelativeEdges.size(); ++i)
      edges_[i] = static_cast<T>(kRelativeEdges[i]);
  }

  void run() {
    find_greatest();
    out_.max_expected = static_cast<double>(max_expected_);
    for (std::size_t i = 0; i < kAbsFractions.size(); ++i)
      thresholds_[i] = threshold(kAbsFractions[i]);
    counting_threshold_ = threshold(out_.counted_at.fp_abs_tol_frac);
    small_threshold_ = threshold(kSmallShare);
    // Squares beyond the range of double make a cosine of nothing: bring such outputs near 1 first.
    if (scaled_by_ > 1e140 || (scaled_by_ > 0 && scaled_by_ < 1e-140))
      dots_.scale = 1 / std::max(scaled_by_, 1e-300);
    for (std::size_t start = 0; start < pair_.total; start += kBlock)
      block(start, std::min(kBlock, pair_.total - start));
    finish();
  }

 private:
  [[nodiscard]] T threshold(double fraction) const {
    return static_cast<T>(fraction * static_cast<double>(max_expected_));
  }

  /// One pass ahead: thresholds depend on max|expected|, and for doubles the scale of the squares
  /// on both.
  void find_greatest() {
    for (std::size_t start = 0; start < pair_.total; start += kBlock) {
      const std::size_t count = std::min(kBlock, pair_.total - start);
      load(pair_.expected_type, pair_.expected, start, count, expected_);
      max_expected_ = std::max(max_expected_, greatest_finite(expected_, count));
      if constexpr (std::is_same_v<T, double>) {
        load(pair_.actual_type, pair_.actual, start, count, actual_);
        scaled_by_ = std::max(scaled_by_, greatest_finite(actual_, count));
      }
    }
    scaled_by_ = std::max(scaled_by_, static_cast<double>(max_expected_));
  }

  static T greatest_finite(const T* values, std::size_t count) {
    T most = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const T size = std::abs(values[i]);
      most = std::max(most, size <= std::numeric_limits<T>::max() ? size : T{0});
    }
    return most;
  }

  /// Loads a block; NaN and Inf are judged by place (and sign) and become equal zeros, so that no
  /// later step meets them.
  void load_pair(std::size_t start, std::size_t count) {
    load(pair_.expected_type, pair_.expected, start, count, expected_);
    load(pair_.actual_type, pair_.actual, start, count, actual_);
    T probe = 0;  // x - x is 0 for finite x and NaN for all else
    for (std::size_t i = 0; i < count; ++i)
      probe += (expected_[i] - expected_[i]) + (actual_[i] - actual_[i]);
    if (probe == 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      const T e = expected_[i];
      const T o = actual_[i];
      if (std::isfinite(e) && std::isfinite(o)) continue;
      nan_differs_ = nan_differs_ || std::isnan(e) != std::isnan(o);
      inf_differs_ = inf_differs_ || (!std::isnan(e) && !std::isnan(o) && e != o);
      expected_nonzero_ = expected_nonzero_ || !std::isfinite(e);
      actual_nonzero_ = actual_nonzero_ || !std::isfinite(o);
      expected_[i] = 0;
      actual_[i] = 0;
    }
  }

  void block(std::size_t start, std::size_t count) {
    load_pair(start, count);
    T overflow = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const T difference = std::abs(expected_[i] - actual_[i]);
      const T sum = std::abs(expected_[i]) + std::abs(actual_[i]) + static_cast<T>(1e-6);
      difference_[i] = difference;
      relative_[i] = difference / sum;
      overflow += sum - sum;
    }
    if (!(overflow == 0)) recompute_wide(count);
    T most = 0;
    T most_relative = 0;
    double sum = 0;
    double sum_relative = 0;
    for (std::size_t i = 0; i < count; ++i) {
      most = std::max(most, difference_[i]);
      most_relative = std::max(most_relative, relative_[i]);
      sum += static_cast<double>(difference_[i]);
      sum_relative += static_cast<double>(relative_[i]);
    }
    T any = 0;
    for (std::size_t i = 0; i < count; ++i) {
      any = std::max(any, std::abs(actual_[i]));
      const double e = static_cast<double>(expected_[i]) * dots_.scale;
      const double o = static_cast<double>(actual_[i]) * dots_.scale;
      dots_.expected += e * e;
      dots_.actual += o * o;
      dots_.both += e * o;
    }
    actual_nonzero_ = actual_nonzero_ || any > 0;
    sum_ += sum;
    sum_relative_ += sum_relative;
    out_.max_abs = std::max(out_.max_abs, static_cast<double>(most));
    if (start == 0 || most_relative > max_relative_) note_worst(start, count, most_relative);
    count_edges(count, most_relative);
    for (std::size_t k = 0; k < kAbsFractions.size(); ++k) {
      if (most > thresholds_[k]) raise_above(count, most_relative, thresholds_[k], above_[k]);
    }
    if (most > counting_threshold_) {
      raise_above(count, most_relative, counting_threshold_, required_);
      if (most_relative > avg_tol_) out_.num_diffs += count_above(count, avg_tol_);
      if (most_relative > max_tol_) out_.num_failed += count_above(count, max_tol_);
    }
    if (most_relative > max_tol_) forgiven_ += count_forgiven(count);
    out_.num_small += count_small(count);
  }

  /// |e| + |o| left the range of T: such elements are computed in half scale, where nothing
  /// overflows.
  void recompute_wide(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const T sum = std::abs(expected_[i]) + std::abs(actual_[i]) + static_cast<T>(1e-6);
      if (std::isfinite(sum)) continue;
      const T half_difference = std::abs(expected_[i] / 2 - actual_[i] / 2);
      relative_[i] = half_difference / (std::abs(expected_[i] / 2) + std::abs(actual_[i] / 2));
      difference_[i] = half_difference > std::numeric_limits<T>::max() / 2
                           ? std::numeric_limits<T>::max()
                           : half_difference * 2;
      // The stored greatest difference is a double, which still holds what a float does not.
      out_.max_abs = std::max(out_.max_abs, finite(2 * static_cast<double>(half_difference)));
    }
  }

  void note_worst(std::size_t start, std::size_t count, T most_relative) {
    const auto* found = std::find(relative_, relative_ + count, most_relative);
    const std::ptrdiff_t at = found - relative_;
    max_relative_ = most_relative;
    out_.worst_index = start + static_cast<std::size_t>(at);
    out_.worst_expected = static_cast<double>(expected_[at]);
    out_.worst_actual = static_cast<double>(actual_[at]);
  }

  /// above_edge_[k] counts rel > edge k; the histogram is their differences.
  void count_edges(std::size_t count, T most_relative) {
    for (std::size_t k = 0; k < edges_.size() && most_relative > edges_[k]; ++k) {
      const T edge = edges_[k];
      std::uint32_t above = 0;
      for (std::size_t i = 0; i < count; ++i) above += relative_[i] > edge ? 1U : 0U;
      above_edge_[k] += above;
      if (above == 0) break;
    }
  }

  void raise_above(std::size_t count, T most_relative, T threshold, T& greatest) const {
    if (most_relative <= greatest) return;
    T most = greatest;
    for (std::size_t i = 0; i < count; ++i)
      most = std::max(most, difference_[i] > threshold ? relative_[i] : T{0});
    greatest = most;
  }

  [[nodiscard]] std::uint64_t count_above(std::size_t count, T tolerance) const {
    std::uint32_t above = 0;
    for (std::size_t i = 0; i < count; ++i) {
      above += relative_[i] > tolerance && difference_[i] > counting_threshold_ ? 1U : 0U;
    }
    return above;
  }

  [[nodiscard]] std::uint64_t count_forgiven(std::size_t count) const {
    std::uint32_t forgiven = 0;
    for (std::size_t i = 0; i < count; ++i)
      forgiven += relative_[i] > max_tol_ && difference_[i] <= counting_threshold_ ? 1U : 0U;
    return forgiven;
  }

  /// What is zero on both sides says nothing: any executor gives it.
  [[nodiscard]] std::uint64_t count_small(std::size_t count) const {
    std::uint32_t small = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const bool zero = expected_[i] == 0 && actual_[i] == 0;
      small += std::abs(expected_[i]) <= small_threshold_ && !zero ? 1U : 0U;
    }
    return small;
  }

  void finish() {
    out_.num_forgiven = forgiven_;
    out_.max_rel = static_cast<double>(max_relative_);
    const auto total = static_cast<double>(std::max<std::size_t>(pair_.total, 1));
    out_.mean_abs = finite(sum_ / total);
    out_.mean_rel = sum_relative_ / total;
    out_.cosine = dots_.cosine();
    out_.required_max_tol = static_cast<double>(required_);
    for (std::size_t k = 0; k < above_.size(); ++k)
      out_.max_rel_above[k] = static_cast<double>(above_[k]);
    std::uint64_t before = pair_.total;
    for (std::size_t k = 0; k < edges_.size(); ++k) {
      out_.rel_histogram[k] = before - above_edge_[k];
      before = above_edge_[k];
    }
    out_.rel_histogram[edges_.size()] = before;
    expected_nonzero_ = expected_nonzero_ || max_expected_ > 0;
    if (nan_differs_) {
      out_.failure = "NaN positions differ";
    } else if (inf_differs_) {
      out_.failure = "Inf positions differ";
    } else if (expected_nonzero_ && !actual_nonzero_) {
      out_.failure = "output is all zero";
    }
  }

  const Pair& pair_;
  Comparison& out_;
  const T avg_tol_;
  const T max_tol_;
  std::array<T, kRelativeEdges.size()> edges_{};
  std::array<T, kAbsFractions.size()> thresholds_{};
  T counting_threshold_ = 0;
  T small_threshold_ = 0;

  T max_expected_ = 0;
  double scaled_by_ = 0;
  T max_relative_ = 0;
  T required_ = 0;
  std::array<T, kAbsFractions.size()> above_{};
  std::array<std::uint64_t, kRelativeEdges.size()> above_edge_{};
  double sum_ = 0;
  double sum_relative_ = 0;
  std::uint64_t forgiven_ = 0;
  Dots dots_;
  bool nan_differs_ = false;
  bool inf_differs_ = false;
  bool expected_nonzero_ = false;
  bool actual_nonzero_ = false;

  T expected_[kBlock];
  T actual_[kBlock];
  T difference_[kBlock];
  T relative_[kBlock];
};

/// Exact comparison of integers and bools; Work holds every value of both types.
template <typename Work>
void compare_integers(const Pair& pair, Comparison& out) {
  using Distance = std::conditional_t<std::is_same_v<Work, I128>, I128, std::uint64_t>;
  const bool boolean = out.dtype == DType::Bool;
  const Distance allowed = boolean ? 0 : out.counted_at.integer_bound();
  Work expected[kBlock];
  Work actual[kBlock];
  Distance greatest = 0;
  double max_expected = 0;
  double sum = 0;
  bool expected_nonzero = false;
  bool actual_nonzero = false;
  std::uint64_t beyond = 0;
  std::uint64_t off_by_one = 0;
  Dots dots;
  for (std::size_t start = 0; start < pair.total; start += kBlock) {
    const std::size_t count = std::min(kBlock, pair.total - start);
    load(pair.expected_type, pair.expected, start, count, expected);
    load(pair.actual_type, pair.actual, start, count, actual);
    for (std::size_t i = 0; i < count; ++i) {
      const Work e = expected[i];
      const Work o = actual[i];
      // Unsigned wrap-around gives the exact distance, which can be larger than the signed type
      // holds.
      const Distance distance = e > o ? static_cast<Distance>(e) - static_cast<Distance>(o)
                                      : static_cast<Distance>(o) - static_cast<Distance>(e);
      beyond += distance > allowed ? 1U : 0U;
      off_by_one += distance == 1 ? 1U : 0U;
      if (distance > greatest || start + i == 0) {
        greatest = distance;
        out.worst_index = start + i;
        out.worst_expected = static_cast<double>(e);
        out.worst_actual = static_cast<double>(o);
      }
      const auto real = static_cast<double>(e);
      const auto other = static_cast<double>(o);
      max_expected = std::max(max_expected, std::abs(real));
      sum += static_cast<double>(distance);
      dots.expected += real * real;
      dots.actual += other * other;
      dots.both += real * other;
      expected_nonzero = expected_nonzero || e != 0;
      actual_nonzero = actual_nonzero || o != 0;
    }
  }
  out.max_abs = static_cast<double>(greatest);
  out.max_expected = max_expected;
  out.mean_abs = sum / static_cast<double>(std::max<std::size_t>(pair.total, 1));
  out.cosine = dots.cosine();
  out.num_diffs = beyond;
  out.num_failed = beyond;
  if (!boolean) out.num_off_by_one = off_by_one;
  if (expected_nonzero && !actual_nonzero) out.failure = "output is all zero";
}

bool comparable(DType type) {
  return dtype_size(type) != 0 && type != DType::Complex64 && type != DType::Complex128;
}

struct Counts {
  std::uint64_t expected = 0;
  std::uint64_t actual = 0;
};

/// What both comparisons begin with; where the outputs cannot be compared, `out` says why.
Counts begin(const TensorType& expected_type, base::BytesView expected,
             const TensorType& actual_type, base::BytesView actual, const Tolerance& tolerance,
             Comparison& out) {
  out.dtype = expected_type.dtype;
  out.counted_at = tolerance;
  for (const DType type : {expected_type.dtype, actual_type.dtype}) {
    if (comparable(type)) continue;
    out.failure = "outputs of type " + dtype_name(type) + " cannot be compared";
    return {};
  }
  // What lies in memory decides, whatever the shapes promise.
  const Counts counts{expected.size() / dtype_size(expected_type.dtype),
                      actual.size() / dtype_size(actual_type.dtype)};
  if (counts.expected != counts.actual) {
    out.failure =
        "size differs: " + std::to_string(counts.expected) + " vs " + std::to_string(counts.actual);
  }
  return counts;
}

}  // namespace

Comparison compare_size(const TensorType& expected_type, base::BytesView expected,
                        const TensorType& actual_type, base::BytesView actual,
                        const Tolerance& tolerance) {
  Comparison out;
  begin(expected_type, expected, actual_type, actual, tolerance, out);
  return out;
}

Comparison compare(const TensorType& expected_type, base::BytesView expected,
                   const TensorType& actual_type, base::BytesView actual,
                   const Tolerance& tolerance) {
  Comparison out;
  out.total = begin(expected_type, expected, actual_type, actual, tolerance, out).expected;
  if (!out.failure.empty()) return out;
  const Pair pair{expected_type.dtype, expected, actual_type.dtype, actual,
                  static_cast<std::size_t>(out.total)};
  const auto either = [&](DType type) {
    return pair.expected_type == type || pair.actual_type == type;
  };
  const bool some_float = is_floating(pair.expected_type) || is_floating(pair.actual_type);
  const bool all_float = is_floating(pair.expected_type) && is_floating(pair.actual_type);
  if (all_float && !either(DType::Float64)) {
    FloatComparer<float>(pair, out).run();
  } else if (some_float) {
    out.dtype = DType::Float64;
    FloatComparer<double>(pair, out).run();
  } else {
    if (either(DType::Bool)) out.dtype = DType::Bool;
    if (!either(DType::UInt64)) {
      compare_integers<std::int64_t>(pair, out);
    } else if (pair.expected_type == pair.actual_type) {
      compare_integers<std::uint64_t>(pair, out);
    } else {
      compare_integers<I128>(pair, out);
    }
  }
  return out;
}

}  // namespace layerfarm::domain
