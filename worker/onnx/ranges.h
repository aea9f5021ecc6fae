// Which values may be fed to an input: the usual range, or what keeps an index inside its table and
// a shape possible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/domain/inputs.h"
#include "worker/onnx/fold.h"
#include "worker/onnx/load.h"
#include "worker/onnx/node_group.h"
#include "worker/onnx/value_types.h"

namespace layerfarm::worker::onnx {

class Ranges {
 public:
  /// All three must outlive this. Without `constants`, only initializers count as constant.
  Ranges(const LoadedModel& model, const ValueTypes& types, const Constants* constants = nullptr)
      : model_(model), types_(types), constants_(constants) {}

  /// For a value of the model when these nodes alone take it.
  [[nodiscard]] domain::InputSpec of_input(const NodeGroup& group, const std::string& name) const;
  /// For a value of the model as all of the model uses it, also behind nodes that only move or
  /// convert it.
  [[nodiscard]] domain::InputSpec of_value(const std::string& name) const;

 private:
  const LoadedModel& model_;
  const ValueTypes& types_;
  const Constants* constants_;
};

/// The order in which inputs are drawn, as places in `names` (their names in the model): by name
/// (spec section 22).
[[nodiscard]] std::vector<std::uint32_t> draw_order_of(const std::vector<std::string>& names);

/// [-40,40), unsigned [0,80), bool {0,1} (spec section 22).
[[nodiscard]] domain::InputSpec usual_input(domain::TensorType type);

}  // namespace layerfarm::worker::onnx
