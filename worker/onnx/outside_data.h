// Initializers whose values are not in the message, and models without them. For this folder only.
#pragma once

#include "worker/onnx/proto.h"

namespace layerfarm::worker::onnx {

/// Whether the values of an initializer are not in the message: in a data file, or held apart from
/// it.
[[nodiscard]] bool is_outside(const pb::TensorProto& tensor);

/// The same model with such initializers as inputs, which is how ONNX's own passes (which copy all
/// that they work on) get along without their values.
[[nodiscard]] pb::ModelProto without_outside_data(const pb::ModelProto& model);

}  // namespace layerfarm::worker::onnx
