// What this machine has for some chips: the answer of `layerfarm-worker --describe`, and the
// abilities that Hello lists. Starts no tool; digests of tools' files are remembered, so a second
// call takes milliseconds. Any thread, but not two at once.
#pragma once

#include <string>
#include <vector>

#include "shared/base/result.h"
#include "shared/domain/chip.h"
#include "shared/domain/keys.h"
#include "shared/protocol/messages.h"

namespace layerfarm::worker::toolchain {

[[nodiscard]] protocol::Ability ability_for(const domain::ChipSpec& chip);

/// What reads models here (the analyze job: layerfarm-onnx, and the importer that finds locations).
[[nodiscard]] domain::ToolIdentity reader_identity();
/// What makes reference outputs here (the prepare job: layerfarm-ort on this processor).
[[nodiscard]] domain::ToolIdentity reference_identity();

/// `request`: a JSON array of chip descriptions. The answer is one JSON object (docs/helpers.md).
/// InvalidInput names the chip that is wrong.
[[nodiscard]] base::Result<std::string> describe(const std::string& request);

}  // namespace layerfarm::worker::toolchain
