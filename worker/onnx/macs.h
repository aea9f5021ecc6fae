// Multiply-accumulate counts of a layer (spec section 21).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/onnx/fold.h"
#include "worker/onnx/value_types.h"

namespace layerfarm::worker::onnx {

struct Macs {
  std::int64_t count = 0;
  std::string breakdown = "[]";  ///< JSON list of records; empty when there is nothing to count
};

/// Zero for operators that multiply nothing and where a shape is unknown.
[[nodiscard]] Macs count_macs(const pb::NodeProto& node, const ValueTypes& types);

}  // namespace layerfarm::worker::onnx
