// Results whose content ONNX leaves open: engines that follow the standard may differ in them, so
// they decide no verdict.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/onnx/fold.h"
#include "worker/onnx/proto.h"

namespace layerfarm::worker::onnx {

/// Places in `outputs` (names of a node's results, as a layer has them) whose content is open when
/// the node stands under this version of the default operator set. `constants`: values that are
/// known; an operator may be random by one of its inputs.
[[nodiscard]] std::vector<std::uint32_t> open_outputs(const pb::NodeProto& node, std::int64_t opset,
                                                      const std::vector<std::string>& outputs,
                                                      const Constants& constants);

}  // namespace layerfarm::worker::onnx
