// Shell completion, made from the definitions of commands and flags. Pure.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace layerfarm::coordinator::app {

enum class Shell { Bash, Zsh, Fish };
[[nodiscard]] std::string_view shell_name(Shell shell);

/// A script for the shell; it serves both names of the program.
[[nodiscard]] std::string completion_text(const CLI::App& app, Shell shell);

}  // namespace layerfarm::coordinator::app
