// Values that are known before the model runs: initializers, Constant nodes, and what the shape
// arithmetic between them gives.
#pragma once

#include <string>
#include <unordered_map>

#include "shared/base/result.h"
#include "worker/onnx/constant.h"
#include "worker/onnx/load.h"
#include "worker/onnx/value_types.h"

namespace layerfarm::worker::onnx {

class Constants {
 public:
  /// Evaluates Shape (of a value with a known shape that is not among `fed`), Slice, Concat,
  /// Gather, Unsqueeze, Squeeze, Cast, ConstantOfShape, Reshape, Transpose, Mul, Equal and Where,
  /// and Add, Sub, Div, Max, Min, Range and Expand of integers, over what is constant already, in
  /// the order of the nodes. Whatever cannot be evaluated is simply not constant.
  static base::Result<Constants> find_all(const LoadedModel& model, const ValueTypes& types,
                                          const NameSet& fed);
  [[nodiscard]] const Constant* find(const std::string& name) const;

 private:
  std::unordered_map<std::string, Constant> values_;
};

/// One node over constant inputs (null: input left out); nothing when it cannot be evaluated.
[[nodiscard]] std::optional<Constant> evaluate(const pb::NodeProto& node,
                                               const std::vector<const Constant*>& inputs);

}  // namespace layerfarm::worker::onnx
