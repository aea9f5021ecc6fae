// Which operators work on integers that stand for real numbers.
#pragma once

#include <string_view>

namespace layerfarm::domain {

/// Operators of ai.onnx and of ONNX Runtime that take or give quantized numbers, by op type: their
/// weights, biases and zero points are floats in another form, and rounding may move their results
/// by one. Other operators' integers are indices, shapes, masks.
[[nodiscard]] bool works_on_quantized(std::string_view op_type);

}  // namespace layerfarm::domain
