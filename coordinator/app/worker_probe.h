// WorkerProbe: asks the worker program what this machine has for some chips (design.md, section 3:
// only a worker knows that).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/result.h"
#include "shared/base/time.h"
#include "shared/domain/chip.h"
#include "shared/protocol/messages.h"

namespace layerfarm::coordinator::app {

struct MachineDescription {
  std::string software;
  std::string cpu_model;
  domain::ToolIdentity reader;               ///< what reads models (the analyze job)
  domain::ToolIdentity reference;            ///< what makes reference outputs (the prepare job)
  std::vector<protocol::Ability> abilities;  ///< one per chip asked, in order
};

/// Runs `<program> <flag>` with `input` on its standard input and gives what it prints. Unavailable
/// when it cannot be started, fails (its own line is on standard error then), or takes longer than
/// `patience`.
[[nodiscard]] base::Result<std::string> ask_worker(const std::filesystem::path& program,
                                                   const std::string& flag, std::string_view input,
                                                   base::Duration patience);

/// Runs `<program> --describe` with the chips on its standard input. Unavailable when it cannot be
/// started, fails, or takes too long.
[[nodiscard]] base::Result<MachineDescription> describe_machine(
    const std::filesystem::path& program, const std::vector<domain::ChipSpec>& chips);

}  // namespace layerfarm::coordinator::app
