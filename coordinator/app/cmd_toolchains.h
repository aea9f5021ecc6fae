// `layerfarm toolchains [list|install]`: what can be installed into this user's cache, and
// installing it.
#pragma once

#include <string>
#include <vector>

namespace layerfarm::coordinator::app {

struct ToolchainsOptions {
  bool json = false;
  bool install = false;
  std::vector<std::string> names;  ///< to install
};

/// The names that `install` takes.
[[nodiscard]] std::vector<std::string> installable_names();

/// Lists to standard output, or becomes the installing script (toolchains.py) and does not return;
/// else returns the exit code.
int cmd_toolchains(const ToolchainsOptions& options);

}  // namespace layerfarm::coordinator::app
