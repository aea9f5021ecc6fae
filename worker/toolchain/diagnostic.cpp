#include "worker/toolchain/diagnostic.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

namespace layerfarm::worker::toolchain {
namespace {

/// More of a text than this is not looked at.
constexpr std::size_t kMostRead = 256 << 10;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Length of a terminal's escape sequence at the start; 0 when there is none.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2 || text[0] != '\x1b') return 0;
  if (text[1] == '[') {  // colours and cursor moves end with a byte from @ to ~
    for (std::size_t i = 2; i < text.size(); ++i) {
      if (text[i] >= '@' && text[i] <= '~') return i + 1;
      if (text[i] < ' ') return i;
    }
    return text.size();
  }
  if (text[1] == ']') {  // titles and links end with BEL or ESC backslash
    for (std::size_t i = 2; i < text.size(); ++i) {
      if (text[i] == '\a') return i + 1;
      if (text[i] == '\x1b') return std::min(i + 2, text.size());
      if (text[i] == '\n') return i;
    }
    return text.size();
  }
  return 2;
}

/// Length of one well-formed UTF-8 character at the start; 0 when it is none.
std::size_t character_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                             : (first & 0xF0U) == 0xE0U       ? 3
                             : first >= 0xF0 && first <= 0xF4 ? 4
                                                              : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool beyond = (first == 0xED && second > 0x9F) ||
                      (first == 0xF4 && second > 0x8F);  // surrogates, above U+10FFFF
  return overlong || beyond ? 0 : length;
}

/// Colours and control characters go, what is no UTF-8 becomes '?'.
std::string plain(std::string_view said) {
  std::string out;
  for (std::size_t i = 0; i < said.size();) {
    if (const std::size_t escape = escape_length(said.substr(i)); escape > 0) {
      i += escape;
      continue;
    }
    const auto c = static_cast<unsigned char>(said[i]);
    if (c == '\r') {
      // A line that a tool wrote over itself ends here; "\r\n" is one line end.
      if (i + 1 == said.size() || said[i + 1] != '\n') out += '\n';
      ++i;
    } else if (c == '\t') {
      out += ' ';
      ++i;
    } else if ((c < ' ' && c != '\n') || c == 0x7F) {
      ++i;
    } else if (const std::size_t length = character_length(said.substr(i)); length > 0) {
      out += said.substr(i, length);
      i += length;
    } else {
      out += '?';
      ++i;
    }
  }
  return out;
}

/// Matches `pattern` at the start of text: 'd' is a digit, 'a' a letter, anything else itself. The
/// number of characters, 0 when it does not match.
std::size_t match(std::string_view text, std::string_view pattern) {
  if (text.size() < pattern.size()) return 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool fits = pattern[i] == 'd'   ? is_digit(text[i])
                      : pattern[i] == 'a' ? std::isalpha(static_cast<unsigned char>(text[i])) != 0
                                          : text[i] == pattern[i];
    if (!fits) return 0;
  }
  return pattern.size();
}

std::size_t digits_after(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

/// Length of a time of day at the start, with its fraction and zone.
std::size_t time_length(std::string_view text) {
  std::size_t at = match(text, "dd:dd:dd");
  if (at == 0) return 0;
  if (at + 1 < text.size() && (text[at] == '.' || text[at] == ',') && is_digit(text[at + 1]))
    at = digits_after(text, at + 1);
  if (at < text.size() && text[at] == 'Z') return at + 1;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
    const std::string_view zone = text.substr(at + 1);
    if (const std::size_t n = std::max(match(zone, "dd:dd"), match(zone, "dddd")); n > 0)
      return at + 1 + n;
  }
  return at;
}

/// Length of a date, a time of day or both at the start; 0 when there is none.
std::size_t moment_length(std::string_view text) {
  std::size_t date = std::max(match(text, "dddd-dd-dd"), match(text, "dddd/dd/dd"));
  if (date == 0)
    date = match(text, "aaa aaa dd") > 0 &&
                   match(text.substr(std::min<std::size_t>(11, text.size())), "dd:dd:dd") > 0
               ? 10
               : 0;
  if (date == 0) return time_length(text);
  if (date < text.size() && is_word(text[date]) && text[date] != 'T') return 0;
  if (date + 1 < text.size() && (text[date] == ' ' || text[date] == 'T')) {
    if (const std::size_t time = time_length(text.substr(date + 1)); time > 0) {
      date += 1 + time;
      if (const std::size_t year = match(text.substr(date), " dddd"); year > 0) date += year;
    }
  }
  return date;
}

/// Length of "0x" and at least six hex digits, or of a run of them that a stack trace prints; 0
/// when there is none.
std::size_t address_length(std::string_view text) {
  if (text.size() < 8 || text[0] != '0' || (text[1] != 'x' && text[1] != 'X')) return 0;
  std::size_t at = 2;
  while (at < text.size() && is_hex(text[at])) ++at;
  return at >= 8 ? at : 0;
}

/// Length of the folders of an absolute path at the start; 0 when there is none.
std::size_t folders_length(std::string_view text) {
  if (text.size() < 2 || text[0] != '/' || text[1] == '/' || text[1] == ' ') return 0;
  std::size_t end = 0;
  while (end < text.size() &&
         std::string_view(" \n'\"`()[]<>=:,;|").find(text[end]) == std::string_view::npos)
    ++end;
  // A path that ends with its folder keeps that folder's name.
  std::size_t last = end;
  while (last > 1 && text[last - 1] == '/') --last;
  const std::size_t slash = text.rfind('/', last - 1);
  return slash + 1;
}

bool path_may_start_after(char before) {
  return std::string_view(" \n'\"`([<=:@,;|").find(before) != std::string_view::npos;
}

std::string without_places_and_times(const std::string& text) {
  std::string out;
  const std::string_view all = text;
  for (std::size_t i = 0; i < all.size();) {
    const char before = i > 0 ? all[i - 1] : '\n';
    const std::string_view rest = all.substr(i);
    std::size_t skipped = 0;
    if (rest[0] == '/' && path_may_start_after(before)) {
      skipped = folders_length(rest);
    } else if (!is_word(before)) {
      if (const std::size_t address = address_length(rest); address > 0) {
        out += "0x...";
        skipped = address;
      } else if (before != '.' && before != ':') {
        skipped = moment_length(rest);
        // The blank that followed it goes too.
        if (skipped > 0 && skipped < rest.size() && rest[skipped] == ' ') ++skipped;
      }
    }
    if (skipped == 0) {
      out += rest[0];
      skipped = 1;
    }
    i += skipped;
  }
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::string line = text.substr(start, end - start);
    line.erase(line.find_last_not_of(' ') + 1);
    if (out.empty() || out.back() != line) out.push_back(std::move(line));
    start = end + 1;
  }
  return out;
}

/// Place of the exception's line that the last Python traceback ends with.
std::optional<std::size_t> exception_in(const std::vector<std::string>& lines) {
  const auto head =
      std::find(lines.rbegin(), lines.rend(), "Traceback (most recent call last):").base();
  // Where there is none, `head` is the first line.
  if (head == lines.begin()) return std::nullopt;
  const auto found = std::find_if(head, lines.end(), [](const std::string& line) {
    return !line.empty() && line.front() != ' ';
  });
  if (found == lines.end()) return std::nullopt;
  return static_cast<std::size_t>(found - lines.begin());
}

/// At most kMostDiagnosticBytes, whole lines where possible, never half a character.
std::string cut(std::string text) {
  if (text.size() <= kMostDiagnosticBytes) return text;
  const std::size_t most = kMostDiagnosticBytes - 4;  // room for "\n..."
  const std::size_t line = text.rfind('\n', most);
  std::size_t end = line != std::string::npos && line > most / 2 ? line : most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "\n...";
}

}  // namespace

std::string normalised(std::string_view said) {
  std::string out;
  const std::vector<std::string> lines =
      lines_of(without_places_and_times(plain(said.substr(0, kMostRead))));
  const auto exception = exception_in(lines);
  if (exception && lines.front() != lines[*exception]) out = lines[*exception] + "\n";
  for (const std::string& line : lines) {
    if (line.empty() && out.empty()) continue;
    out += line + "\n";
  }
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
  return cut(std::move(out));
}

}  // namespace layerfarm::worker::toolchain
