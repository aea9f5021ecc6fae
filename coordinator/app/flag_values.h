// Flags that several commands have, and values as people write them: lists, sizes, seconds, numbers
// with bounds. For the files that define flags.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/app/tool_options.h"

namespace layerfarm::coordinator::app {

/// "a,b" and repeated flags alike.
[[nodiscard]] std::vector<std::string> split_commas(const std::vector<std::string>& values);

/// A finite number in these bounds; CLI11's own range lets NaN pass.
[[nodiscard]] CLI::Validator number_between(double low, double high);

/// A size such as 512MB.
void add_bytes(CLI::App& app, const std::string& flag, std::int64_t& target,
               const std::string& help);

/// Seconds with a fraction, as milliseconds.
void add_seconds(CLI::App& app, const std::string& flag, std::int64_t& target_ms,
                 const std::string& help);

/// `--dim name=value`, several times.
void add_dims(CLI::App& app, std::vector<std::pair<std::string, std::int64_t>>& dims);

/// `--config FILE`, several times; apply_config_files makes use of them.
void add_config(CLI::App& app, std::vector<std::string>& files);

/// What reaches the tools behind a chip.
void add_tool_options(CLI::App& app, ToolOptions& options);

}  // namespace layerfarm::coordinator::app
