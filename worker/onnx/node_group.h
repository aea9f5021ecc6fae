// NodeGroup: the nodes that make one layer. One node as a rule; several where a unit is asked for
// that an accelerator takes as a whole (a quantized operator with its conversions, a segment of a
// model).
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "worker/onnx/load.h"
#include "worker/onnx/proto.h"

namespace layerfarm::worker::onnx {

/// How often each value of a model's graph is used; what the graph gives counts as a use.
class ValueUses {
 public:
  explicit ValueUses(const LoadedModel& model);
  [[nodiscard]] std::size_t of(const std::string& name) const;

 private:
  std::unordered_map<std::string, std::size_t> counts_;
};

struct NodeGroup {
  std::vector<const pb::NodeProto*> nodes;  ///< in the model's order, at least one
  std::vector<std::string> results;  ///< values that leave the group, in the order they are made
  /// Values that it is given though none of its nodes takes them.
  std::vector<std::string> also_given = {};

  /// A node by itself: all that it gives leaves it.
  static NodeGroup of(const pb::NodeProto& node);
  /// Several nodes of the model's graph: a value leaves them that another node or the graph's
  /// outputs use, or that nobody uses.
  static NodeGroup of(std::vector<const pb::NodeProto*> nodes, const ValueUses& uses);

  /// The first node that is neither QuantizeLinear nor DequantizeLinear, else the first: it names
  /// the layer (spec section 1).
  [[nodiscard]] const pb::NodeProto& main() const;
  /// Values that the group takes from outside, each once, in the order of first use; then what it
  /// is given besides.
  [[nodiscard]] std::vector<std::string> inputs() const;
  /// Values that one of its nodes makes and that do not leave it, in the order they are made.
  [[nodiscard]] std::vector<std::string> inner() const;
};

}  // namespace layerfarm::worker::onnx
