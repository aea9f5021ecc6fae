// whole: a model by its assignment in one job. Inputs and reference of the model, each segment
// compiled for its executor, run in order with tensors passed on by the model's names, compared at
// the outputs and, when asked, at each boundary. A toolchain that takes a map gets the model as it
// is. Job thread.
#pragma once

#include "shared/domain/whole_request.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {

/// LostBlob when the analysis that the request names is gone. Diagnostics of a segment begin with
/// its name; `where` is the step: "reference", "compile", "run" ...
[[nodiscard]] domain::Outcome whole_stage(Toolchain& toolchain, const domain::ChipSpec& chip,
                                          const domain::WholeRequest& request,
                                          const domain::InputSet& inputs,
                                          const domain::Tolerance& tolerance, StepContext& context);

}  // namespace layerfarm::worker::toolchain
