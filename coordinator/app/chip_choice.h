// The chips that a command is for, checked before any work: a chip file for each, and what this
// machine has for it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/app/console.h"
#include "coordinator/app/tool_options.h"
#include "coordinator/app/worker_probe.h"
#include "coordinator/plan/plan_request.h"
#include "shared/base/result.h"

namespace layerfarm::coordinator::app {

struct ChosenChips {
  std::vector<std::shared_ptr<const plan::PlanChip>> chips;
  MachineDescription machine;
  bool own_hw_type = true;  ///< --torq-hw-type names what the chip files name anyway
};

/// Whether one compile of this chip's toolchain takes a whole model.
[[nodiscard]] bool takes_map(const ChosenChips& chosen, const domain::ChipSpec& chip);

/// `names` as users write them (a comma list, groups, `all`), with the user's options for the
/// tools. Unavailable when this machine cannot use one that was named: what is missing, how to get
/// it, and which chips it can use.
[[nodiscard]] base::Result<ChosenChips> find_chips(const std::string& names,
                                                   const std::string& chips_dir,
                                                   const ToolOptions& options);

/// Dumps of the compiler that will not come are said before hours are spent.
void say_missing_dumps(const ToolOptions& options, const ChosenChips& chosen, Console& console);

/// The program that works for this one.
[[nodiscard]] std::filesystem::path worker_program();

}  // namespace layerfarm::coordinator::app
