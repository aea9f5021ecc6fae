#include "shared/domain/verdict.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

using namespace layerfarm;
using namespace layerfarm::domain;

namespace {

template <typename T>
Comparison compared(DType type, const std::vector<T>& expected, const std::vector<T>& actual,
                    const Tolerance& tolerance = {}) {
  const auto view = [](const std::vector<T>& values) {
    return base::BytesView(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  };
  return compare({type, {static_cast<std::int64_t>(expected.size())}}, view(expected),
                 {type, {static_cast<std::int64_t>(actual.size())}}, view(actual), tolerance);
}
Comparison floats(const std::vector<float>& expected, const std::vector<float>& actual,
                  const Tolerance& tolerance = {}) {
  return compared(DType::Float32, expected, actual, tolerance);
}

}  // namespace

TEST_CASE("status names go both ways") {
  for (const Status status : {Status::Success, Status::Difference, Status::Error}) {
    CHECK(status_from_name(status_name(status)) == status);
  }
  CHECK(!status_from_name("Success"));
  CHECK(!status_from_name(""));
}

TEST_CASE("outputs within tolerance are a success without a reason") {
  const auto verdict = judge({floats({1, 2}, {1, 2.0001F})}, 1, {});
  REQUIRE(verdict);
  CHECK(verdict->status == Status::Success);
  CHECK(verdict->reason.empty());
  CHECK(verdict->max_rel_diff.value() > 0);
  CHECK(verdict->max_abs_diff.value() == doctest::Approx(1e-4).epsilon(0.01));
  CHECK(verdict->total == 2);
  CHECK(verdict->counts_known);
}

TEST_CASE("reasons are worded as the spec says and joined") {
  const auto text = [](const std::vector<Comparison>& outputs, std::size_t expected,
                       const Tolerance& tolerance = {}) {
    const auto verdict = judge(outputs, expected, tolerance);
    REQUIRE(verdict);
    CHECK(verdict->status == Status::Difference);
    return verdict->reason;
  };
  CHECK(text({floats({1, 2, 3}, {1, 4, 3})}, 1) == "1/3 exceed fp_max_tol 0.01");
  CHECK(text({compared<std::int32_t>(DType::Int32, {1, 2}, {1, 4})}, 1) == "1/2 exceed int_tol 1");
  CHECK(text({compared<std::uint8_t>(DType::Bool, {1, 0}, {1, 1})}, 1) ==
        "1/2 boolean differences");
  CHECK(text({floats({1, NAN}, {3, 1})}, 1) == "NaN positions differ; 1/2 exceed fp_max_tol 0.01");
  CHECK(text({floats({1, NAN}, {3, 1}), floats({NAN}, {1})}, 2) ==
        "NaN positions differ; 1/2 exceed fp_max_tol 0.01");
  CHECK(text({floats({1, 2}, {0, 0})}, 1) == "output is all zero; 2/2 exceed fp_max_tol 0.01");
  CHECK(text({floats({1, 2}, {1})}, 1) == "size differs: 2 vs 1");
  CHECK(text({floats({1}, {1})}, 2) == "number of outputs differ: 2 vs 1");
  CHECK(text({floats({1}, {2}), compared<std::int32_t>(DType::Int32, {1}, {9})}, 2) ==
        "1/1 exceed fp_max_tol 0.01; 1/1 exceed int_tol 1");
}

TEST_CASE("numbers are summed over the outputs, and absent where nothing could be compared") {
  const auto both = judge(
      {floats({1, 1}, {2, 1}), compared<std::int32_t>(DType::Int32, {1, 1, 1}, {1, 9, 1})}, 2, {});
  REQUIRE(both);
  CHECK(both->num_diffs == 2);
  CHECK(both->total == 5);
  CHECK(both->max_abs_diff.value() == 8);
  CHECK(both->max_rel_diff.value() == doctest::Approx(1.0 / 3));
  const auto integers = judge({compared<std::int32_t>(DType::Int32, {1}, {9})}, 1, {});
  REQUIRE(integers);
  CHECK(!integers->max_rel_diff);
  const auto sizes = judge({floats({1, 2}, {1})}, 1, {});
  REQUIRE(sizes);
  CHECK(!sizes->max_abs_diff);
  CHECK(sizes->total == 2);
}

TEST_CASE("integers off by one pass and off by two fail") {
  CHECK(judge({compared<std::int64_t>(DType::Int64, {5}, {6})}, 1, {})->status == Status::Success);
  CHECK(judge({compared<std::int64_t>(DType::Int64, {5}, {7})}, 1, {})->status ==
        Status::Difference);
}

TEST_CASE("another bound of integers is judged from the stored numbers where they decide") {
  const auto bound = [](std::uint32_t integers) {
    Tolerance out;
    out.int_tol = integers;
    return out;
  };
  const Comparison ones = compared<std::int64_t>(DType::Int64, {5, 5, 5}, {5, 6, 4});
  const auto exact = judge({ones}, 1, bound(0));
  REQUIRE(exact);
  CHECK(exact->status == Status::Difference);
  CHECK(exact->reason == "2/3 exceed int_tol 0");
  CHECK(exact->num_diffs == 2);
  const Comparison far = compared<std::int64_t>(DType::Int64, {5, 5, 5}, {5, 6, 9});
  CHECK(judge({far}, 1, bound(0))->num_diffs == 2);
  CHECK(judge({far}, 1, bound(4))->status == Status::Success);
  // Between two and the greatest difference nothing is known: compared anew.
  CHECK(!judge({far}, 1, bound(2)));
  // Back from an exact comparison to the usual bound.
  const Comparison strict = compared<std::int64_t>(DType::Int64, {5, 5, 5}, {5, 6, 9}, bound(0));
  CHECK(judge({strict}, 1, {})->reason == "1/3 exceed int_tol 1");
  // A bool has no bound.
  CHECK(judge({compared<std::uint8_t>(DType::Bool, {1, 0}, {1, 1})}, 1, bound(5))->status ==
        Status::Difference);
}

TEST_CASE("integers off by one are known of what an older program stored where all are near") {
  Comparison old = compared<std::int32_t>(DType::Int32, {5, 5, 5, 5}, {5, 6, 4, 5});
  old.num_off_by_one.reset();
  CHECK(off_by_one(old) == 2);
  Comparison far = compared<std::int32_t>(DType::Int32, {5, 5}, {6, 9});
  CHECK(off_by_one(far) == 1);
  far.num_off_by_one.reset();
  CHECK(!off_by_one(far));
  CHECK(off_by_one(floats({1}, {2})) == 0);
  CHECK(is_exact_integer(DType::Int64));
  CHECK(is_exact_integer(DType::UInt32));
  for (const DType type : {DType::Int8, DType::UInt16, DType::Bool, DType::Float32})
    CHECK_FALSE(is_exact_integer(type));
}

TEST_CASE("what the greatest element excuses is counted, and said where it hides small ones") {
  const Tolerance tolerance{0.01, 0.01, 0.02};
  // A mask of -10000: an output whose small values are all wrong passes.
  std::vector<float> expected;
  std::vector<float> actual;
  for (int i = 0; i < 40; ++i) {
    expected.push_back(i < 30 ? -10000.0F : static_cast<float>(i - 35) * 4 + 1);
    actual.push_back(i < 30 ? -10000.0F : 7.5F);
  }
  const Comparison masked = floats(expected, actual, tolerance);
  CHECK(judge({masked}, 1, tolerance)->status == Status::Success);
  const auto hidden = forgiven({masked}, tolerance);
  REQUIRE(hidden);
  CHECK(hidden->elements == 10);
  CHECK(hidden->hides);
  // Without the fraction nothing is excused, and the case fails.
  CHECK(forgiven({masked}, {0.01, 0.01, 0})->elements == 0);
  CHECK(judge({masked}, 1, {0.01, 0.01, 0})->status == Status::Difference);
  // The same mask with the small values right: one is off by a little, as noise is.
  std::vector<float> noisy = expected;
  noisy[35] += 0.5F;
  CHECK(forgiven({floats(expected, noisy, tolerance)}, tolerance)->elements == 1);
  CHECK_FALSE(forgiven({floats(expected, noisy, tolerance)}, tolerance)->hides);
  // Noise near zero in an output whose values spread evenly hides nothing.
  std::vector<float> even;
  std::vector<float> half;
  for (int i = 1; i <= 1000; ++i) {
    even.push_back(static_cast<float>(i) / 10);
    half.push_back(even.back() + 0.05F);
  }
  const auto near_zero = forgiven({floats(even, half, tolerance)}, tolerance);
  CHECK(near_zero->elements > 20);
  CHECK_FALSE(near_zero->hides);
  // More than half of all elements, however they spread.
  std::vector<float> off = even;
  for (float& value : off) value += 1.9F;
  CHECK(forgiven({floats(even, off, tolerance)}, tolerance)->hides);
}

TEST_CASE("numbers of an older program tell what is excused where the bound is an edge") {
  Comparison old = floats({1, 1, 1, 1, 100}, {1.5F, 1.5F, 1, 1, 100}, {0.01, 0.01, 0.02});
  old.num_forgiven.reset();
  old.num_small = 0;
  CHECK(forgiven({old}, {0.01, 0.01, 0.02})->elements == 2);
  CHECK_FALSE(forgiven({old}, {0.01, 0.01, 0.02})->hides);
  CHECK(!forgiven({old}, {0.01, 0.015, 0.02}));
  // Counted by a newer one at another bound it is known too.
  const Tolerance other{0.01, 0.015, 0.02};
  CHECK(forgiven({floats({1, 1, 100}, {1.5F, 1, 100}, other)}, other)->elements == 1);
}

TEST_CASE("another tolerance is judged from the stored numbers where they decide") {
  const Comparison output = floats({1, 1, 1, 100}, {1.004F, 1.03F, 1, 100}, {0.01, 0.01, 0});
  // rel: 0.002, 0.0148, 0, 0
  CHECK(judge({output}, 1, {0.01, 0.02, 0})->status == Status::Success);
  CHECK(judge({output}, 1, {0.01, 0.01, 0})->num_diffs == 1);
  // 0.001 is an edge of the histogram, so even the counts are there.
  const auto finer = judge({output}, 1, {0.001, 0.001, 0});
  REQUIRE(finer);
  CHECK(finer->status == Status::Difference);
  CHECK(finer->num_diffs == 2);
  CHECK(finer->reason == "2/4 exceed fp_max_tol 0.001");
  // 0.003 is none: it fails for certain, but how often is not known.
  CHECK(!judge({output}, 1, {0.003, 0.003, 0}));
  // On success the count is not needed.
  const auto loose = judge({output}, 1, {0.003, 0.02, 0});
  REQUIRE(loose);
  CHECK(loose->status == Status::Success);
  CHECK(!loose->counts_known);
}

TEST_CASE("another abs fraction is judged where the bounds decide") {
  // Differences 0.03 and 0.004 at a greatest value of 100, so 3e-4 and 4e-5 of it.
  const Comparison output = floats({1, 1, 100}, {1.004F, 1.03F, 100}, {0.01, 0.01, 0});
  CHECK(judge({output}, 1, {0.01, 0.01, 1e-3})->status == Status::Success);
  CHECK(judge({output}, 1, {0.01, 0.01, 0.9})->status == Status::Success);
  // Between 1e-4 (where it still fails) and 1e-3 (where it passes) nothing is known.
  CHECK(!judge({output}, 1, {0.01, 0.01, 5e-4}));
  // At 5e-5 it fails for certain, but the count is missing.
  CHECK(!judge({output}, 1, {0.01, 0.01, 5e-5}));
  // Judged at the tolerance it was counted at, all is known.
  const Comparison again = floats({1, 1, 100}, {1.004F, 1.03F, 100}, {0.01, 0.01, 5e-4});
  CHECK(judge({again}, 1, {0.01, 0.01, 5e-4})->status == Status::Success);
}

TEST_CASE("whatever judge answers is what comparing anew at that tolerance gives") {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<float> value(-1, 1);
  const double tolerances[] = {0, 1e-5, 1e-3, 2e-3, 0.01, 0.015, 0.05, 0.3};
  const double fractions[] = {0, 1e-5, 5e-5, 1e-3, 3e-3, 0.05, 0.2};
  int answered = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<float> e;
    std::vector<float> o;
    const float noise = std::pow(10.0F, -static_cast<float>(random() % 6));
    for (int i = 0; i < 50; ++i) {
      e.push_back(value(random));
      o.push_back(e.back() + noise * value(random) * value(random));
    }
    const auto any = [&] {
      return Tolerance{tolerances[random() % 8], tolerances[random() % 8], fractions[random() % 7]};
    };
    const Tolerance asked = any();
    const auto from_stored = judge({floats(e, o, any())}, 1, asked);
    const auto anew = judge({floats(e, o, asked)}, 1, asked);
    REQUIRE(anew);
    CHECK(anew->counts_known);
    if (!from_stored) continue;
    ++answered;
    CHECK(from_stored->status == anew->status);
    CHECK(from_stored->reason == anew->reason);
    CHECK(from_stored->max_rel_diff == anew->max_rel_diff);
    if (from_stored->counts_known) CHECK(from_stored->num_diffs == anew->num_diffs);
    const auto known = forgiven({floats(e, o, asked)}, asked);
    REQUIRE(known);
    const auto stored = forgiven({floats(e, o, any())}, asked);
    if (stored) CHECK(stored->elements == known->elements);
  }
  CHECK(answered > 100);
}
