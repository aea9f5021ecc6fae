#include "shared/domain/half.h"

#include <bit>
#include <cmath>

namespace layerfarm::domain {

std::uint16_t double_to_half(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 48) & 0x8000U);
  const std::uint64_t magnitude = bits & 0x7FFFFFFFFFFFFFFFULL;
  if (magnitude > 0x7FF0000000000000ULL) {  // NaN: keep what fits of the payload, stay quiet
    return static_cast<std::uint16_t>(sign | 0x7E00U | ((magnitude >> 42) & 0x1FFU));
  }
  const double absolute = std::bit_cast<double>(magnitude);
  if (absolute >= 65520.0) return static_cast<std::uint16_t>(sign | 0x7C00U);
  if (absolute < 0x1p-14) {
    // Scaling by a power of two is exact, so this is the one rounding; 1024 carries over into the
    // least normal number.
    return static_cast<std::uint16_t>(
        sign | static_cast<std::uint16_t>(std::nearbyint(absolute * 0x1p24)));
  }
  constexpr int kDropped = 52 - 10;
  const std::uint64_t half_way =
      (std::uint64_t{1} << (kDropped - 1)) - 1 + ((magnitude >> kDropped) & 1U);
  const std::uint64_t rounded = (magnitude + half_way) >> kDropped;
  return static_cast<std::uint16_t>(sign |
                                    static_cast<std::uint16_t>(rounded - ((1023 - 15) << 10)));
}

std::uint16_t float_to_half(float value) { return double_to_half(static_cast<double>(value)); }

std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x0040U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace layerfarm::domain
