// What a run program of IREE's kind reads and writes as files of raw arrays: how inputs are named
// to it, names of outputs, and the types that these can have. Job thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {

/// "1x3x8x8xf32=@<file>" for each input of the layer.
[[nodiscard]] std::vector<std::string> raw_inputs(const RunJob& job, const base::BlobFolder& blobs);
/// Name of an output's file in the folder of the run.
[[nodiscard]] std::string raw_output_name(std::size_t index);

/// `run`, which is Done, with the outputs that lie in `folder`; Refused when one is missing or its
/// size fits no type that can be meant.
[[nodiscard]] RunResult with_raw_outputs(RunResult run, const RunJob& job,
                                         const std::filesystem::path& folder);

}  // namespace layerfarm::worker::toolchain
