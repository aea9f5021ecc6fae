// The manual page, made from the definitions of commands and flags. Pure.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace layerfarm::coordinator::app {

/// roff, section 1.
[[nodiscard]] std::string man_page(const CLI::App& app, const std::string& version);

}  // namespace layerfarm::coordinator::app
