// A whole model quantized for the command `quantize`: no layers, no coordinator.
#pragma once

#include <string>

#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {

/// `request`: the sidecar's operation `quantize` for one model (docs/helpers.md). The model is
/// written where its `out` says, whole or not at all. Answers with the sidecar's answer for that
/// model, or {"ok": false, "text": why}: one line of JSON.
[[nodiscard]] std::string quantize_model(const std::string& request, StepContext& context);

}  // namespace layerfarm::worker::toolchain
