// The two 16-bit float types as numbers: conversions with round-to-nearest-even, as NumPy and
// ml_dtypes do them.
#pragma once

#include <bit>
#include <cstdint>

namespace layerfarm::domain {

/// IEEE binary16.
[[nodiscard]] inline float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7FFFU;
  // Both forms are computed and one is chosen: a loop over this has no branch to predict.
  const auto tiny = std::bit_cast<std::uint32_t>(
      static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F);
  const std::uint32_t rebias = magnitude >= 0x7C00U ? (255U - 31U) << 23 : (127U - 15U) << 23;
  const std::uint32_t usual = (magnitude << 13) + rebias;
  return std::bit_cast<float>(sign | (magnitude < 0x400U ? tiny : usual));
}
/// One rounding from double (going through float would round twice).
[[nodiscard]] std::uint16_t double_to_half(double value);
[[nodiscard]] std::uint16_t float_to_half(float value);

/// bfloat16: the upper half of a float.
[[nodiscard]] inline float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
[[nodiscard]] std::uint16_t float_to_bfloat16(float value);

}  // namespace layerfarm::domain
