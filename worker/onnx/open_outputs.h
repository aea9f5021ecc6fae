// Results whose content ONNX leaves open: engines that follow the standard may differ in them, so
// they decide no verdict.
#pragma once

#include <vector>

#include "worker/onnx/fold.h"
#include "worker/onnx/proto.h"
#include "worker/onnx/value_types.h"

namespace layerfarm::worker::onnx {

/// Values that these nodes, in their order, make with open content: of operators that draw random
/// numbers or whose result no text describes, at any depth of bodies and functions, and what is
/// computed from such values. What the nodes take from outside is fed, so it is not open.
/// `constants`: values of the main graph that are known; an operator may be random by one of its
/// inputs.
[[nodiscard]] NameSet open_values(const std::vector<const pb::NodeProto*>& nodes,
                                  const pb::ModelProto& model, const Constants& constants);

}  // namespace layerfarm::worker::onnx
