// What is known of the type of a value in a model.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "shared/domain/tensor.h"
#include "worker/onnx/proto.h"

namespace layerfarm::worker::onnx {

struct ValueType {
  domain::DType dtype = domain::DType::Undefined;  ///< Undefined: unknown, or no tensor
  std::optional<std::vector<std::int64_t>> dims;   ///< nothing: rank unknown; -1: that dim unknown
  std::string other;  ///< what it is when it is no tensor: "a sequence of float32 tensors"

  /// Element type and every dim known.
  [[nodiscard]] bool fixed() const;
  /// Only when fixed.
  [[nodiscard]] domain::TensorType tensor() const { return {dtype, *dims}; }
};
using ValueTypes = std::unordered_map<std::string, ValueType>;
using NameSet = std::unordered_set<std::string>;

[[nodiscard]] ValueType read_type(const pb::TypeProto& type);
/// As much as is known, tensors only.
void write_type(const ValueType& value, pb::TypeProto& type);

}  // namespace layerfarm::worker::onnx
