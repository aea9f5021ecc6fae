// Shapes that depend on the values that a model is fed: no run with made up inputs can say them for
// another one.
#pragma once

#include "worker/onnx/load.h"
#include "worker/onnx/shapes.h"
#include "worker/onnx/value_types.h"

namespace layerfarm::worker::onnx {

/// Whether the operator's own results are as long as the values that it takes have it, whatever
/// their shapes.
[[nodiscard]] bool counts_values(const pb::NodeProto& node);

/// Values of the main graph whose shape the model with its inputs' dims does not decide. What
/// ONNX's inference finds alone is decided; so is what a run showed, as long as it follows from
/// shapes and constants. The file's word counts for operators that inference knows too little of,
/// but not for what counts values: exporters write down what they saw.
[[nodiscard]] NameSet fed_shapes(const LoadedModel& model, const Shapes& shapes);

}  // namespace layerfarm::worker::onnx
