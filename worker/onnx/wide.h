// Float32 form of a layer, for reference engines that lack bfloat16: computed wide, each result
// rounded to its type.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/onnx/canonical.h"

namespace layerfarm::worker::onnx {

struct WideLayer {
  pb::ModelProto module;  ///< inputs and results float32 where the layer has bfloat16; same count,
                          ///< order and shapes
  std::vector<std::pair<std::string, Constant>> constants;
};

/// Nothing for layers without bfloat16, and for those whose inner values cannot be rounded one by
/// one (bodies, functions, operators of other domains).
[[nodiscard]] std::optional<WideLayer> wide_layer(const CanonicalLayer& layer);

/// The same values as float32; nothing for other types than bfloat16.
[[nodiscard]] std::optional<Constant> widened(const Constant& value);

}  // namespace layerfarm::worker::onnx
