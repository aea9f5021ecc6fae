// The resident children of PosixProcessRunner. Job thread.
#pragma once

#include <memory>

#include "worker/process/launcher.h"
#include "worker/process/process_runner.h"

namespace layerfarm::worker::process {

/// Largest request or reply; what is larger travels as a file.
inline constexpr std::size_t kLargestFrame = std::size_t{256} << 20;

[[nodiscard]] base::Result<std::unique_ptr<Resident>> start_posix_resident(Launcher& launcher,
                                                                           const Command& command);

}  // namespace layerfarm::worker::process
