// A call of layerfarm-onnx, which reads and writes models for the stages that need it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "worker/toolchain/tool_step.h"

namespace layerfarm::worker::toolchain {

/// Whole models and constants of our own making may be as large as protobuf allows, whatever bound
/// tools have.
inline constexpr std::int64_t kLargestModelFile = std::int64_t{2} << 30;

/// `arguments` after the program; runs in `folder`, on the worker's cores, within a compilation's
/// limits. `where` names the step.
[[nodiscard]] ToolCall reader_call(std::string where, std::vector<std::string> arguments,
                                   const std::filesystem::path& folder, const StepContext& context);

}  // namespace layerfarm::worker::toolchain
