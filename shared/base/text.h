// Small things that several texts for people need.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace layerfarm::base {

/// "a, b, c".
[[nodiscard]] std::string join(const std::vector<std::string>& words,
                               std::string_view separator = ", ");
/// Whether two ASCII words differ in capitals at most.
[[nodiscard]] bool equal_any_case(std::string_view a, std::string_view b);
/// `text` for a terminal or a log: control codes become `?`, since names come from files that
/// anybody may have made. Line ends, tabs and colours (ESC [ digits m) stay.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace layerfarm::base
