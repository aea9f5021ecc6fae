#include "shared/domain/half.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

using namespace layerfarm::domain;

TEST_CASE("every half that is a number survives the way to float and back") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) {
      CHECK(std::isnan(half_to_float(float_to_half(value))));
    } else {
      CHECK_MESSAGE(float_to_half(value) == half, bits);
    }
    // By the definition of the format.
    const int exponent = (half >> 10) & 0x1F;
    const double mantissa = half & 0x3FF;
    if (exponent == 0x1F) continue;
    const double magnitude =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    CHECK((half & 0x8000 ? -magnitude : magnitude) == static_cast<double>(value));
  }
}

TEST_CASE("rounding to half is to the nearest, ties to even, and done once") {
  // Values of NumPy's astype(float16).
  CHECK(double_to_half(1.0 / 3) == 13653);
  CHECK(double_to_half(1 + 0x1p-11) == 15360);
  CHECK(double_to_half(1 + 0x1p-11 + 0x1p-40) == 15361);  // through float this would be a tie
  CHECK(double_to_half(1.0009765625 + 0x1p-11) == 15362);
  CHECK(double_to_half(65519.9) == 31743);
  CHECK(double_to_half(65520) == 31744);
  CHECK(double_to_half(1e300) == 31744);
  CHECK(double_to_half(0x1p-25) == 0);
  CHECK(double_to_half(0x1.0001p-25) == 1);
  CHECK(double_to_half(6.1e-5) == 1023);
  CHECK(double_to_half(-0.0) == 0x8000);
  CHECK(double_to_half(-std::numeric_limits<double>::infinity()) == 0xFC00);
  CHECK(std::isnan(half_to_float(double_to_half(std::nan("")))));
}

TEST_CASE("bfloat16 is the upper half of a float, rounded to even") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = bfloat16_to_float(static_cast<std::uint16_t>(bits));
    if (!std::isnan(value)) CHECK_MESSAGE(float_to_bfloat16(value) == bits, bits);
  }
  CHECK(float_to_bfloat16(std::bit_cast<float>(0x3F808000U)) == 0x3F80);
  CHECK(float_to_bfloat16(std::bit_cast<float>(0x3F818000U)) == 0x3F82);
  CHECK(float_to_bfloat16(std::bit_cast<float>(0x3F808001U)) == 0x3F81);
  CHECK(float_to_bfloat16(std::numeric_limits<float>::max()) == 0x7F80);
  // A NaN whose payload lies in the lower half alone must not become Inf.
  CHECK(std::isnan(bfloat16_to_float(float_to_bfloat16(std::bit_cast<float>(0x7F800001U)))));
}
