// Config files (`--config FILE`, spec section 10): JSON that gives values to flags. They go through
// the flags' own definitions, so a file says nothing that the command line could not, and what is
// wrong in one is refused in the same words. One file may serve several commands: each takes the
// keys of its own flags.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "shared/base/result.h"

namespace layerfarm::coordinator::app {

/// Merges the files in their order and gives their values to those flags of the command that the
/// command line left open; one that was given there wins, even with its default. Called after
/// parsing. A key that only one of `others`, the commands that read such files, has a flag for is
/// passed over. Errors name the file and the key.
[[nodiscard]] base::Result<void> apply_config_files(CLI::App& command,
                                                    const std::vector<std::string>& files,
                                                    const std::vector<const CLI::App*>& others);

/// A flag's name in the section `gen_config`: `--timing-runs` -> `timing_runs`.
[[nodiscard]] std::string config_key_of(const std::string& flag);

}  // namespace layerfarm::coordinator::app
