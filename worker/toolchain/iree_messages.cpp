#include "worker/toolchain/iree_messages.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>
#include <string_view>

namespace layerfarm::worker::toolchain {
namespace {

/// Reads `<place>: <kind>: <text>` where place is `file:line:column` or `<unknown>:0`.
bool parse_head(const std::string& line, CompilerMessage& out) {
  for (const std::string_view kind : {"error", "warning", "note", "remark"}) {
    const std::string mark = ": " + std::string(kind) + ": ";
    const auto at = line.find(mark);
    if (at == std::string::npos) continue;
    // The place ends with digits; file names have no blanks (they are ours).
    const std::string place = line.substr(0, at);
    if (place.empty() || place.find(' ') != std::string::npos ||
        std::isdigit(static_cast<unsigned char>(place.back())) == 0)
      continue;
    std::vector<std::string> parts(1);
    for (const char c : place) {
      if (c == ':') {
        parts.emplace_back();
      } else {
        parts.back() += c;
      }
    }
    const auto number = [](const std::string& text) {
      return !text.empty() && text.size() < 10 &&
                     text.find_first_not_of("0123456789") == std::string::npos
                 ? static_cast<std::uint32_t>(std::stoul(text))
                 : 0;
    };
    out.line = parts.size() >= 3 ? number(parts[parts.size() - 2]) : 0;
    out.error = kind == "error";
    out.text = line.substr(at + mark.size());
    return true;
  }
  return false;
}

bool name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// Whether `text` speaks of that function or of something named after it (`layer_3_dispatch_0`).
bool mentions(const std::string& text, const std::string& function) {
  for (auto at = text.find(function); at != std::string::npos; at = text.find(function, at + 1)) {
    const auto end = at + function.size();
    const bool starts = at == 0 || (!name_character(text[at - 1]) && text[at - 1] != '_');
    if (starts && (end == text.size() || !name_character(text[end]))) return true;
  }
  return false;
}

/// The function's name is its number in the batch, which nobody shall see.
std::string without_name(std::string text, const std::string& function) {
  for (auto at = text.find(function); at != std::string::npos; at = text.find(function, at + 5)) {
    const auto end = at + function.size();
    if (end == text.size() || !name_character(text[end]))
      text.replace(at, function.size(), "layer");
  }
  return text;
}

void add_line(std::string& text, const std::string& line) {
  if (!text.empty()) text += '\n';
  text += line;
}

}  // namespace

std::vector<CompilerMessage> split_messages(const std::string& printed) {
  std::vector<CompilerMessage> out;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    CompilerMessage message;
    if (parse_head(line, message)) {
      message.whole = line;
      out.push_back(std::move(message));
    } else if (!out.empty()) {
      out.back().whole += "\n" + line;
    }
  }
  return out;
}

bool Blame::any() const {
  return std::any_of(text.begin(), text.end(), [](const auto& one) { return one.has_value(); });
}

Blame blame(const std::vector<CompilerMessage>& messages, const std::vector<BatchLayer>& layers) {
  Blame out;
  out.text.resize(layers.size());
  std::vector<std::set<std::string>> said(layers.size());
  for (std::size_t m = 0; m < messages.size(); ++m) {
    const CompilerMessage& message = messages[m];
    if (!message.error) continue;
    std::vector<std::size_t> about;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const auto holds = [&message](const LineRange& range) {
        return message.line >= range.first && message.line <= range.last;
      };
      if (message.line > 0 && std::any_of(layers[i].lines.begin(), layers[i].lines.end(), holds))
        about.push_back(i);
    }
    if (about.size() != 1) {
      // The place does not tell; the message or its notes may name something made from the
      // function.
      out.complete = false;
      std::string whole = message.whole;
      for (std::size_t n = m + 1; n < messages.size() && !messages[n].error; ++n)
        whole += "\n" + messages[n].whole;
      about.clear();
      for (std::size_t i = 0; i < layers.size(); ++i) {
        if (mentions(whole, layers[i].function)) about.push_back(i);
      }
      if (about.size() != 1) continue;
    }
    auto& text = out.text[about.front()];
    if (!text) text.emplace();
    const std::string line = without_name(message.text, layers[about.front()].function);
    if (said[about.front()].insert(line).second) add_line(*text, line);
  }
  return out;
}

std::string refusal_text(const std::vector<CompilerMessage>& messages,
                         const std::string& function) {
  std::string out;
  std::set<std::string> said;
  for (const CompilerMessage& message : messages) {
    const std::string line = without_name(message.text, function);
    if (message.error && said.insert(line).second) add_line(out, line);
  }
  return out;
}

std::string crash_text(const std::string& printed) {
  std::string out;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    const bool trace = line.rfind(" #", 0) == 0 || line.rfind("PLEASE submit", 0) == 0 ||
                       line.rfind("Please report issues", 0) == 0 ||
                       line.rfind("Stack dump", 0) == 0;
    if (trace) break;
    add_line(out, line);
  }
  return out;
}

}  // namespace layerfarm::worker::toolchain
