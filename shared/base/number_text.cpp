#include "shared/base/number_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace layerfarm::base {

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer{};
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                     std::chars_format::scientific);
  std::string text(buffer.data(), written.ptr);
  const std::string sign = text.front() == '-' ? "-" : "";
  if (!sign.empty()) text.erase(0, 1);
  const std::size_t mark = text.find('e');
  const int exponent = std::atoi(text.c_str() + mark + 1);
  std::string digits = text.substr(0, mark);
  if (digits.size() > 1) digits.erase(1, 1);  // the point
  const auto count = static_cast<int>(digits.size());
  // Python leaves the plain form where it would need more than 16 places before or 4 zeros after
  // the point.
  if (exponent < -4 || exponent >= 16) {
    if (count > 1) digits.insert(1, ".");
    const std::string size = std::to_string(std::abs(exponent));
    return sign + digits + (exponent < 0 ? "e-" : "e+") + (size.size() < 2 ? "0" : "") + size;
  }
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (exponent + 1 >= count)
    return sign + digits + std::string(static_cast<std::size_t>(exponent + 1 - count), '0') + ".0";
  return sign + digits.insert(static_cast<std::size_t>(exponent + 1), ".");
}

}  // namespace layerfarm::base
