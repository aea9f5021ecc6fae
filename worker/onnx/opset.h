// Raising a whole message to a newer operator set, whatever holds its constants. For this folder
// only.
#pragma once

#include <cstdint>

#include "shared/base/result.h"
#include "worker/onnx/proto.h"

namespace layerfarm::worker::onnx {

/// Converts with ONNX's version converter. Initializers whose values are outside stay as they are.
/// An error leaves the model alone and reads well after "<file>: ".
[[nodiscard]] base::Result<void> raise_model(pb::ModelProto& model, std::int64_t opset);

}  // namespace layerfarm::worker::onnx
