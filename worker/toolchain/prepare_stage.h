// prepare: inputs and reference outputs of a layer, once for all chips. Random inputs or the
// user's; the reference by ONNX Runtime, where it lacks the type by its float32 form, else by IREE.
// Job thread.
#pragma once

#include "shared/domain/keys.h"
#include "shared/domain/layer.h"
#include "shared/domain/outcome.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {

/// Everything is stored as blobs. When no engine can run the layer, the outcome carries what the
/// first one said, with `where` = "reference".
[[nodiscard]] domain::Outcome prepare_stage(const domain::Layer& layer,
                                            const domain::InputSet& inputs, StepContext& context);

}  // namespace layerfarm::worker::toolchain
