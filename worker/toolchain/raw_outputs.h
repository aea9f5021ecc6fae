// Outputs that a run program writes as files of raw arrays: their names, and the types that they
// can have. Job thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {

/// Name of an output's file in the folder of the run.
[[nodiscard]] std::string raw_output_name(std::size_t index);

/// `run`, which is Done, with the outputs that lie in `folder`; Refused when one is missing or its
/// size fits no type that can be meant.
[[nodiscard]] RunResult with_raw_outputs(RunResult run, const RunJob& job,
                                         const std::filesystem::path& folder);

}  // namespace layerfarm::worker::toolchain
