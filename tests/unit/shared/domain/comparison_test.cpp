#include "shared/domain/comparison.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "shared/domain/half.h"

using namespace layerfarm;
using namespace layerfarm::domain;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

template <typename T>
base::Bytes bytes(const std::vector<T>& values) {
  base::Bytes out(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

template <typename T>
Comparison compared(DType type, const std::vector<T>& expected, const std::vector<T>& actual,
                    const Tolerance& tolerance = {}) {
  return compare({type, {static_cast<std::int64_t>(expected.size())}}, bytes(expected),
                 {type, {static_cast<std::int64_t>(actual.size())}}, bytes(actual), tolerance);
}
Comparison floats(const std::vector<float>& expected, const std::vector<float>& actual,
                  const Tolerance& tolerance = {}) {
  return compared(DType::Float32, expected, actual, tolerance);
}

/// The same numbers the slow way: one element after the other, in the words of the spec.
template <typename T>
Comparison slow(DType type, const std::vector<T>& expected, const std::vector<T>& actual,
                const Tolerance& tolerance) {
  Comparison out;
  out.dtype = type;
  out.counted_at = tolerance;
  out.total = expected.size();
  T max_expected = 0;
  bool nan_differs = false;
  bool inf_differs = false;
  bool expected_zero = true;
  bool actual_zero = true;
  std::vector<T> e = expected;
  std::vector<T> o = actual;
  for (std::size_t i = 0; i < e.size(); ++i) {
    if (e[i] != 0) expected_zero = false;
    if (o[i] != 0) actual_zero = false;
    if (std::isfinite(e[i])) max_expected = std::max(max_expected, std::abs(e[i]));
    if (std::isnan(e[i]) != std::isnan(o[i]))
      nan_differs = true;
    else if (std::isinf(e[i]) || std::isinf(o[i]))
      inf_differs = inf_differs || e[i] != o[i];
    if (!std::isfinite(e[i]) || !std::isfinite(o[i])) e[i] = o[i] = 0;
  }
  out.max_expected = static_cast<double>(max_expected);
  double sum = 0;
  double sum_relative = 0;
  double ee = 0;
  double oo = 0;
  double eo = 0;
  double worst = -1;
  std::uint64_t forgiven = 0;
  for (std::size_t i = 0; i < e.size(); ++i) {
    const T difference = std::abs(e[i] - o[i]);
    const T relative = difference / (std::abs(e[i]) + std::abs(o[i]) + static_cast<T>(1e-6));
    out.max_abs = std::max(out.max_abs, static_cast<double>(difference));
    out.max_rel = std::max(out.max_rel, static_cast<double>(relative));
    sum += static_cast<double>(difference);
    sum_relative += static_cast<double>(relative);
    ee += static_cast<double>(e[i]) * static_cast<double>(e[i]);
    oo += static_cast<double>(o[i]) * static_cast<double>(o[i]);
    eo += static_cast<double>(e[i]) * static_cast<double>(o[i]);
    if (static_cast<double>(relative) > worst) {
      worst = static_cast<double>(relative);
      out.worst_index = i;
      out.worst_expected = static_cast<double>(e[i]);
      out.worst_actual = static_cast<double>(o[i]);
    }
    const bool zero = e[i] == 0 && o[i] == 0;
    if (std::abs(e[i]) <= static_cast<T>(kSmallShare * out.max_expected) && !zero) ++out.num_small;
    if (difference <= static_cast<T>(tolerance.fp_abs_tol_frac * out.max_expected))
      forgiven += relative > static_cast<T>(tolerance.fp_max_tol) ? 1 : 0;
    if (difference > static_cast<T>(tolerance.fp_abs_tol_frac * out.max_expected)) {
      out.num_diffs += relative > static_cast<T>(tolerance.fp_avg_tol) ? 1 : 0;
      out.num_failed += relative > static_cast<T>(tolerance.fp_max_tol) ? 1 : 0;
      out.required_max_tol = std::max(out.required_max_tol, static_cast<double>(relative));
    }
    for (std::size_t k = 0; k < kAbsFractions.size(); ++k) {
      if (difference > static_cast<T>(kAbsFractions[k] * out.max_expected)) {
        out.max_rel_above[k] = std::max(out.max_rel_above[k], static_cast<double>(relative));
      }
    }
    std::size_t bin = 0;
    while (bin < kRelativeEdges.size() && relative > static_cast<T>(kRelativeEdges[bin])) ++bin;
    ++out.rel_histogram[bin];
  }
  out.num_forgiven = forgiven;
  out.mean_abs = sum / static_cast<double>(std::max<std::size_t>(e.size(), 1));
  out.mean_rel = sum_relative / static_cast<double>(std::max<std::size_t>(e.size(), 1));
  out.cosine = ee == 0 && oo == 0   ? 1
               : ee == 0 || oo == 0 ? 0
                                    : eo / (std::sqrt(ee) * std::sqrt(oo));
  if (nan_differs)
    out.failure = "NaN positions differ";
  else if (inf_differs)
    out.failure = "Inf positions differ";
  else if (!expected_zero && actual_zero)
    out.failure = "output is all zero";
  return out;
}

/// Sums are added in another order, so they agree only nearly; all else exactly.
void check_equal(Comparison got, Comparison want) {
  const auto near = [](double& a, double& b) {
    CHECK(std::abs(a - b) <= 1e-9 * (1 + std::abs(b)));
    a = b;
  };
  near(got.mean_abs, want.mean_abs);
  near(got.mean_rel, want.mean_rel);
  near(got.cosine, want.cosine);
  CHECK(got.total == want.total);
  CHECK(got.failure == want.failure);
  CHECK(got.max_abs == want.max_abs);
  CHECK(got.max_rel == want.max_rel);
  CHECK(got.max_expected == want.max_expected);
  CHECK(got.worst_index == want.worst_index);
  CHECK(got.worst_expected == want.worst_expected);
  CHECK(got.worst_actual == want.worst_actual);
  CHECK(got.num_diffs == want.num_diffs);
  CHECK(got.num_failed == want.num_failed);
  CHECK(got.num_forgiven == want.num_forgiven);
  CHECK(got.num_small == want.num_small);
  CHECK(got.required_max_tol == want.required_max_tol);
  CHECK(got.rel_histogram == want.rel_histogram);
  CHECK(got.max_rel_above == want.max_rel_above);
  CHECK(got == want);
}

}  // namespace

TEST_CASE("the blockwise comparison gives the numbers of the slow one on random outputs") {
  std::mt19937_64 random(20261130);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::size_t sizes[] = {0, 1, 5, 2047, 2048, 2049, 6000};
  for (int trial = 0; trial < 120; ++trial) {
    CAPTURE(trial);
    const std::size_t count = sizes[pick(std::size(sizes))];
    const double noise = std::pow(10.0, -static_cast<double>(pick(9)));
    const double specials = pick(3) == 0 ? 0.001 : 0.0;
    const double scale = std::pow(10.0, static_cast<double>(pick(7)) - 3);
    std::uniform_real_distribution<double> value(-1, 1);
    std::vector<float> e;
    std::vector<float> o;
    for (std::size_t i = 0; i < count; ++i) {
      const double base_value = value(random) * scale * (pick(10) == 0 ? 1e-4 : 1.0);
      e.push_back(static_cast<float>(base_value));
      o.push_back(pick(2) == 0 ? e.back()
                               : static_cast<float>(base_value + value(random) * noise * scale));
      if (specials > 0 && value(random) < specials * 2 - 1) {
        const float special[] = {kNan, kInf, -kInf, 0.0F};
        e.back() = special[pick(4)];
        o.back() = pick(4) == 0 ? special[pick(4)] : e.back();
      }
    }
    if (pick(15) == 0) std::fill(o.begin(), o.end(), 0.0F);
    const double tolerances[] = {0.0, 1e-6, 1e-3, 0.01, 0.5};
    const Tolerance tolerance{tolerances[pick(5)], tolerances[pick(5)], tolerances[pick(4)]};
    check_equal(floats(e, o, tolerance), slow(DType::Float32, e, o, tolerance));

    const std::vector<double> e64(e.begin(), e.end());
    const std::vector<double> o64(o.begin(), o.end());
    check_equal(compared(DType::Float64, e64, o64, tolerance),
                slow(DType::Float64, e64, o64, tolerance));

    std::vector<std::uint16_t> e16;
    std::vector<std::uint16_t> o16;
    std::vector<float> e16_as_float;
    std::vector<float> o16_as_float;
    const bool brain = pick(2) == 0;
    for (std::size_t i = 0; i < count; ++i) {
      e16.push_back(brain ? float_to_bfloat16(e[i]) : float_to_half(e[i]));
      o16.push_back(brain ? float_to_bfloat16(o[i]) : float_to_half(o[i]));
      e16_as_float.push_back(brain ? bfloat16_to_float(e16[i]) : half_to_float(e16[i]));
      o16_as_float.push_back(brain ? bfloat16_to_float(o16[i]) : half_to_float(o16[i]));
    }
    const DType type = brain ? DType::BFloat16 : DType::Float16;
    check_equal(compared(type, e16, o16, tolerance),
                slow(type, e16_as_float, o16_as_float, tolerance));
  }
}

TEST_CASE("element counts must agree, shapes need not") {
  const Comparison differs = floats({1, 2, 3}, {1, 2});
  CHECK(differs.failure == "size differs: 3 vs 2");
  CHECK(differs.total == 3);
  const std::vector<float> six = {1, 2, 3, 4, 5, 6};
  CHECK(compare({DType::Float32, {2, 3}}, bytes(six), {DType::Float32, {6}}, bytes(six), {})
            .failure.empty());
  CHECK(floats({}, {}).failure.empty());
}

TEST_CASE("NaN must stand in the same places") {
  CHECK(floats({1, kNan}, {1, kNan}).failure.empty());
  CHECK(floats({1, kNan}, {1, 2}).failure == "NaN positions differ");
  CHECK(floats({1, 2}, {1, kNan}).failure == "NaN positions differ");
  CHECK(floats({1, kInf}, {1, kNan}).failure == "NaN positions differ");
  CHECK(floats({kNan}, {kNan}).failure.empty());
}

TEST_CASE("Inf is compared by place and sign") {
  CHECK(floats({1, kInf}, {1, kInf}).failure.empty());
  CHECK(floats({1, kInf}, {1, -kInf}).failure == "Inf positions differ");
  CHECK(floats({1, kInf}, {1, 1e30F}).failure == "Inf positions differ");
  CHECK(floats({1, 1e30F}, {1, kInf}).failure == "Inf positions differ");
}

TEST_CASE("an output that is all zero fails unless the reference is too") {
  CHECK(floats({1e-30F, 0}, {0, -0.0F}).failure == "output is all zero");
  CHECK(floats({0, 0}, {0, 0}).failure.empty());
  CHECK(floats({0, 0}, {0, 1e-3F}).failure.empty());
  CHECK(compared<std::int32_t>(DType::Int32, {1, 0}, {0, 0}).failure == "output is all zero");
  // Inf and NaN are not zero.
  CHECK(floats({kInf, 1}, {kInf, 0}).failure.empty());
}

TEST_CASE("a relative difference exactly at the tolerance passes") {
  const float e = 1.0F;
  const float o = 0.98F;
  const float relative = std::abs(e - o) / (std::abs(e) + std::abs(o) + 1e-6F);
  const auto at = static_cast<double>(relative);
  CHECK(floats({e}, {o}, {at, at, 0}).num_failed == 0);
  const auto below = static_cast<double>(std::nextafter(relative, 0.0F));
  CHECK(floats({e}, {o}, {below, below, 0}).num_failed == 1);
  // A tolerance written in decimal means the float nearest to it, as in the original.
  CHECK(floats({e}, {o}, {0.5, static_cast<double>(relative) * (1 - 1e-12), 0}).num_failed == 0);
}

TEST_CASE("differences below a fraction of the greatest expected value do not count") {
  const std::vector<float> e = {100, 0.001F};
  const std::vector<float> o = {100, 0.002F};
  CHECK(floats(e, o, {0.01, 0.01, 0}).num_failed == 1);
  const Comparison with = floats(e, o, {0.01, 0.01, 1e-4});
  CHECK(with.num_failed == 0);
  CHECK(with.num_diffs == 0);
  CHECK(with.required_max_tol == 0);
  CHECK(with.max_rel > 0.3);
  CHECK(with.max_rel_above[0] == with.max_rel);
  CHECK(with.max_rel_above[1] ==
        0);  // 1e-5 x 100 is the difference itself, and only what exceeds it counts
}

TEST_CASE("sums beyond the range of float are not lost") {
  const Comparison far = floats({3e38F}, {-3e38F});
  CHECK(far.max_rel == doctest::Approx(1));
  CHECK(far.max_abs == doctest::Approx(6e38));
  CHECK(far.num_failed == 1);
  CHECK(floats({3e38F}, {2e38F}).max_rel == doctest::Approx(0.2));
  const Comparison wide = compared<double>(DType::Float64, {1.7e308, 1}, {-1.7e308, 1});
  CHECK(wide.max_rel == doctest::Approx(1));
  CHECK(std::isfinite(wide.max_abs));
  CHECK(std::isfinite(wide.mean_abs));
  CHECK(wide.cosine == doctest::Approx(-1));
}

TEST_CASE("a cosine of very large or very small numbers is still one") {
  CHECK(compared<double>(DType::Float64, {1e200, 2e200}, {1e200, 2e200}).cosine ==
        doctest::Approx(1));
  CHECK(compared<double>(DType::Float64, {1e-200, 2e-200}, {1e-200, 2e-200}).cosine ==
        doctest::Approx(1));
  CHECK(floats({1, 0}, {0, 1}).cosine == doctest::Approx(0));
  CHECK(floats({0, 0}, {0, 0}).cosine == 1);
  CHECK(floats({0, 0}, {0, 1}).cosine == 0);
}

TEST_CASE("integers are exact, and off by one passes") {
  CHECK(compared<std::int32_t>(DType::Int32, {5, -7}, {6, -8}).num_failed == 0);
  const Comparison two = compared<std::int32_t>(DType::Int32, {5, -7}, {5, -9});
  CHECK(two.num_failed == 1);
  CHECK(two.max_abs == 2);
  CHECK(two.worst_index == 1);
  CHECK(two.worst_expected == -7);
  CHECK(two.worst_actual == -9);
  // Float arithmetic would not see this.
  CHECK(compared<std::int32_t>(DType::Int32, {1 << 30}, {(1 << 30) + 2}).num_failed == 1);
  CHECK(compared<std::uint64_t>(DType::UInt64, {~0ULL}, {~0ULL - 2}).num_failed == 1);
  CHECK(compared<std::uint64_t>(DType::UInt64, {~0ULL}, {~0ULL - 1}).num_failed == 0);
  const auto least = std::numeric_limits<std::int64_t>::min();
  const auto most = std::numeric_limits<std::int64_t>::max();
  CHECK(compared<std::int64_t>(DType::Int64, {least}, {most}).max_abs == doctest::Approx(0x1p64));
  CHECK(compared<std::int8_t>(DType::Int8, {-128}, {127}).max_abs == 255);
  CHECK(compared<std::uint8_t>(DType::UInt8, {0, 3}, {255, 3}).max_abs == 255);
  CHECK(compared<std::int16_t>(DType::Int16, {1}, {2}).mean_abs == 1);
  CHECK(compared<std::uint16_t>(DType::UInt16, {1}, {4}).num_diffs == 1);
  CHECK(compared<std::uint32_t>(DType::UInt32, {~0U}, {0U - 3}).num_failed == 1);
}

TEST_CASE("integers are counted by the bound that is asked for, and those off by one apart") {
  const std::vector<std::int64_t> expected = {5, 5, 5, 5};
  const std::vector<std::int64_t> actual = {5, 6, 4, 8};
  const Comparison usual = compared<std::int64_t>(DType::Int64, expected, actual);
  CHECK(usual.num_failed == 1);
  CHECK(usual.num_off_by_one == 2);
  Tolerance tolerance;
  tolerance.int_tol = 0;
  CHECK(compared<std::int64_t>(DType::Int64, expected, actual, tolerance).num_failed == 3);
  tolerance.int_tol = 3;
  CHECK(compared<std::int64_t>(DType::Int64, expected, actual, tolerance).num_failed == 0);
  // A bool that differs is wrong, not off by one.
  CHECK(!compared<std::uint8_t>(DType::Bool, {1, 0}, {0, 0}).num_off_by_one);
}

TEST_CASE("any difference of a bool fails, and every non-zero byte is true") {
  CHECK(compared<std::uint8_t>(DType::Bool, {1, 0}, {1, 0}).num_failed == 0);
  CHECK(compared<std::uint8_t>(DType::Bool, {1, 0}, {255, 0}).num_failed == 0);
  CHECK(compared<std::uint8_t>(DType::Bool, {1, 0, 1}, {0, 1, 1}).num_failed == 2);
  CHECK(compare({DType::Bool, {2}}, bytes<std::uint8_t>({1, 0}), {DType::Int8, {2}},
                bytes<std::uint8_t>({1, 1}), {})
            .num_failed == 1);
}

TEST_CASE("outputs of two types are compared by value") {
  const Comparison wide = compare({DType::Float32, {1}}, bytes<float>({0.5F}),
                                  {DType::Float64, {1}}, bytes<double>({0.5}), {});
  CHECK(wide.dtype == DType::Float64);
  CHECK(wide.max_abs == 0);
  CHECK(compare({DType::Int64, {1}}, bytes<std::int64_t>({-1}), {DType::UInt64, {1}},
                bytes<std::uint64_t>({~0ULL}), {})
            .num_failed == 1);
  CHECK(compare({DType::Int32, {1}}, bytes<std::int32_t>({4}), {DType::Float32, {1}},
                bytes<float>({4}), {})
            .num_failed == 0);
}

TEST_CASE("a type without arithmetic is said, not computed") {
  CHECK(compare({DType::String, {1}}, "abc", {DType::String, {1}}, "abc", {}).failure ==
        "outputs of type string cannot be compared");
  CHECK(compare({DType::Complex64, {1}}, "12345678", {DType::Complex64, {1}}, "12345678", {})
            .failure == "outputs of type complex64 cannot be compared");
}

TEST_CASE("the histogram counts every element once") {
  const Comparison out = floats({0, 1, 1, 1, 1e-20F}, {0, 1, 1.001F, 3, 1});
  std::uint64_t sum = 0;
  for (const std::uint64_t bin : out.rel_histogram) sum += bin;
  CHECK(sum == 5);
  CHECK(out.rel_histogram[0] == 2);
  CHECK(out.rel_histogram[6] == 1);   // 5e-4: above 1e-4, not above 1e-3
  CHECK(out.rel_histogram[11] == 2);  // 0.5 and just below 1
}
