// CommandTree: commands and flags as completion and manual page need them, read off the parser's
// own definitions, so that no flag can be missing there. Pure.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace layerfarm::coordinator::app {

/// What the value of a flag or an argument is, as far as a shell can offer something.
enum class Offers {
  Nothing,
  Files,
  Folders,
  Choices,
  Reports,       ///< `REPORT`: reports, not what lies beside them
  ReportOrMaps,  ///< `JSON`: reports and compiler files
};

struct FlagView {
  std::vector<std::string> names;  ///< with their dashes, long ones first; a positional: its name
  std::string value;               ///< how help calls the value; empty = the flag takes none
  bool value_optional = false;
  bool repeatable = false;
  Offers offers = Offers::Nothing;
  std::vector<std::string> choices;
  std::string help;
};

struct CommandView {
  std::string name;
  std::string help;
  std::vector<FlagView> flags;
  std::vector<FlagView> positionals;
  std::vector<CommandView> commands;
};

[[nodiscard]] CommandView command_tree(const CLI::App& app);

}  // namespace layerfarm::coordinator::app
