// Tensors of 64-bit integers become 32-bit ones, wherever ONNX allows it. For this folder only.
#pragma once

#include "shared/base/result.h"
#include "worker/onnx/convert_bf16.h"
#include "worker/onnx/load.h"

namespace layerfarm::worker::onnx {

/// The model is prepared (convert.h). Values that some operator must have as 64 bits stay what they
/// are, with all that share their type; nothing is cast. A constant that does not fit is an error
/// that names it, except the smallest and the largest int64: they stand for "without bound" and
/// become those of int32.
[[nodiscard]] base::Result<ConversionCounts> convert_to_int32(LoadedModel& model);

}  // namespace layerfarm::worker::onnx
