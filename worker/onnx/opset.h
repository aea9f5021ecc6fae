// Raising a whole message to a newer operator set, whatever holds its constants. For this folder
// only.
#pragma once

#include <cstdint>

#include "shared/base/result.h"
#include "worker/onnx/proto.h"

namespace layerfarm::worker::onnx {

/// Whether the values of an initializer are not in the message: in a data file, or held apart from
/// it.
[[nodiscard]] bool is_outside(const pb::TensorProto& tensor);

/// The same model with such initializers as inputs, which is how ONNX's own passes (which copy all
/// that they work on) get along without their values.
[[nodiscard]] pb::ModelProto without_outside_data(const pb::ModelProto& model);

/// Converts with ONNX's version converter. Initializers whose values are outside stay as they are.
/// An error leaves the model alone and reads well after "<file>: ".
[[nodiscard]] base::Result<void> raise_model(pb::ModelProto& model, std::int64_t opset);

}  // namespace layerfarm::worker::onnx
