// `layerfarm chips`: every chip, its toolchain, and what this machine has or lacks for it.
#pragma once

#include <string>

namespace layerfarm::coordinator::app {

struct ChipsOptions {
  std::string chips_dir;
  bool json = false;
};

/// Prints to standard output; returns the exit code.
int cmd_chips(const ChipsOptions& options);

}  // namespace layerfarm::coordinator::app
