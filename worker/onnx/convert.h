// Type conversions of a whole model, before it is taken apart (docs/conversions.md).
#pragma once

#include "shared/base/result.h"
#include "shared/domain/analyze_request.h"
#include "worker/onnx/load.h"
#include "worker/onnx/shapes.h"

namespace layerfarm::worker::onnx {

/// bf16 first, then int32. Raises the operator set to 22 where it is older, puts functions of the
/// model's own in place and makes Constant nodes initializers; what comes out has passed ONNX's
/// strict inference and full check. First dims that are open and that `dims` does not name are 1
/// after a conversion to bf16. Errors read well after "<file>: ".
[[nodiscard]] base::Result<void> convert_types(LoadedModel& model, const domain::Conversion& asked,
                                               const Dims& dims);

}  // namespace layerfarm::worker::onnx
