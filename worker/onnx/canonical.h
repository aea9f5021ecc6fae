// Canonical form: the nodes of a layer as a model of its own in which names say nothing but places.
// Layers that are equal up to names give equal bytes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "shared/base/digest.h"
#include "worker/onnx/constant.h"
#include "worker/onnx/fold.h"
#include "worker/onnx/load.h"
#include "worker/onnx/node_group.h"
#include "worker/onnx/value_types.h"

namespace layerfarm::worker::onnx {

struct CanonicalLayer {
  /// All but the constants' values. Inputs i0, i1 .. in the order of first use, results o0, o1 ..,
  /// values between its nodes v0 .., nodes n0 .., values inside bodies and functions b0 ..
  pb::ModelProto module;
  std::vector<std::string> inputs;  ///< names in the model of what is driven, in the module's order
  std::vector<std::string> outputs;  ///< names in the model, in the module's order
  /// Name in the module (c0, c1 ..) and value.
  std::vector<std::pair<std::string, const Constant*>> constants;
};

/// `types` gives inputs and outputs their types (what is unknown stays out).
[[nodiscard]] CanonicalLayer canonical_layer(const NodeGroup& group, const pb::ModelProto& model,
                                             const ValueTypes& types, const Constants& constants);

/// Oldest IR version that may hold the operator set, functions and element types of a module.
[[nodiscard]] std::int64_t ir_version_for(const pb::ModelProto& module,
                                          const CanonicalLayer& layer);

/// Same bytes for the same message, every time.
[[nodiscard]] base::Bytes serialize(const pb::ModelProto& model);

}  // namespace layerfarm::worker::onnx
