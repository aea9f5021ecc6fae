// What single operators ask of their inputs. Private to ranges.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "worker/onnx/constant.h"
#include "worker/onnx/value_types.h"

namespace layerfarm::worker::onnx {

/// Values must lie in [lo, hi), or be exactly `values`.
struct Demand {
  double lo = 0;
  double hi = 0;
  std::vector<double> values = {};
};

/// Where an operator stands: what is known of the values around it.
struct Surroundings {
  std::function<const ValueType*(const std::string&)> type;
  std::function<const Constant*(const std::string&)> constant;
};

/// What `node` asks of its input at `place`; nothing when any value will do.
[[nodiscard]] std::optional<Demand> demand_of(const pb::NodeProto& node, int place,
                                              const Surroundings& around);
/// The output that repeats the elements of the input at `place`, so that demands on it are demands
/// on the input; empty when there is none.
[[nodiscard]] std::string passes_on(const pb::NodeProto& node, int place);

}  // namespace layerfarm::worker::onnx
