#include "shared/base/text.h"

#include <algorithm>
#include <cctype>

namespace layerfarm::base {
namespace {

/// Length of the colour sequence at the front of `text`, else 0.
std::size_t colour_length(std::string_view text) {
  if (!text.starts_with("\033[")) return 0;
  std::size_t at = 2;
  while (at < text.size() && (text[at] == ';' || (text[at] >= '0' && text[at] <= '9'))) ++at;
  return at < text.size() && text[at] == 'm' ? at + 1 : 0;
}

/// Bytes of the control code at the front of `text`, else 0: ASCII ones, and U+0080 to U+009F,
/// which some terminals obey too.
std::size_t control_length(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  if (byte == 0x7f || (byte < 0x20 && byte != '\n' && byte != '\t')) return 1;
  if (byte != 0xc2 || text.size() < 2) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  return second >= 0x80 && second < 0xa0 ? 2 : 0;
}

}  // namespace

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += separator;
    out += words[i];
  }
  return out;
}

bool equal_any_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::size_t taken = colour_length(text);
    if (taken > 0) {
      out += text.substr(0, taken);
    } else if (taken = control_length(text); taken > 0) {
      out += '?';
    } else {
      taken = 1;
      out += text[0];
    }
    text.remove_prefix(taken);
  }
  return out;
}

}  // namespace layerfarm::base
