// Words of the command line that are no flag, no command and no key, and what was likely meant by
// them: told from the parser's own definitions. Pure.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace layerfarm::coordinator::app {

/// "; did you mean x or y?", or nothing where none is near.
[[nodiscard]] std::string meant_text(std::string_view word, const std::vector<std::string>& known);

/// After a parse that failed: a line for each word that the command has no such flag, with the
/// flags that may be meant, or the commands that have it. Empty when there is nothing to say.
[[nodiscard]] std::string unknown_flag_lines(const CLI::App& app);

}  // namespace layerfarm::coordinator::app
