// Layers that have no place in the quantized model, and why. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/domain/layer.h"

namespace layerfarm::coordinator::app {

/// Fused: its neighbour does its work. Moved: the quantizer put operators into another order, and
/// the alignment cannot tell which one is this layer's.
enum class Unplaced : std::uint8_t { No, Fused, Moved };

/// For each layer. A module that has as many operators of a type as the model has layers has fused
/// none of them.
[[nodiscard]] std::vector<Unplaced> unplaced_layers(const domain::ModelAnalysis& model);

}  // namespace layerfarm::coordinator::app
