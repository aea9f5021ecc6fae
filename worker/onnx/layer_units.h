// Which nodes make a layer: each by itself, or with the conversions of a quantized model around it.
#pragma once

#include <vector>

#include "shared/domain/analyze_request.h"
#include "worker/onnx/node_group.h"

namespace layerfarm::worker::onnx {

/// The model's layers in graph order; Constant nodes are none.
///
/// LayerUnit::Qdq: an operator takes in the DequantizeLinear that make its inputs and the
/// QuantizeLinear that are the only readers of a result, as an accelerator runs it. A
/// DequantizeLinear that several operators read is in each of their layers; a conversion that no
/// operator takes in whole is a layer by itself.
[[nodiscard]] std::vector<NodeGroup> layer_groups(const LoadedModel& model, domain::LayerUnit unit);

}  // namespace layerfarm::worker::onnx
