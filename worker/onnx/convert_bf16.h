// Every float tensor of a model becomes bfloat16. For this folder only.
#pragma once

#include "shared/base/result.h"
#include "worker/onnx/load.h"

namespace layerfarm::worker::onnx {

/// How much was changed.
struct ConversionCounts {
  std::size_t constants = 0;
  std::size_t values = 0;
  std::size_t casts = 0;
};

/// The model is prepared (convert.h): its values have types, its constants are initializers. An
/// operator's edge that may be float but not bfloat16 keeps float behind a Cast. A constant that
/// bfloat16 cannot hold is an error that names it.
[[nodiscard]] base::Result<ConversionCounts> convert_to_bf16(LoadedModel& model);

}  // namespace layerfarm::worker::onnx
