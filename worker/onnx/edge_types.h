// Which types the inputs and outputs of a node may have, by ONNX's schemas. For this folder only.
#pragma once

#include <onnx/defs/schema.h>

#include <string>
#include <string_view>

#include "worker/onnx/proto.h"

namespace layerfarm::worker::onnx {

/// One input or output.
struct Edge {
  /// Edges of one node with the same name have the same type ("T"); empty: the type is this edge's
  /// own affair.
  std::string variable;
  /// Null: nothing is known of it.
  const pb::OpSchema::FormalParameter* formal = nullptr;
  /// `type` as schemas write it: "tensor(float)".
  [[nodiscard]] bool allows(std::string_view type) const;
};

class EdgeTypes {
 public:
  /// `version`: of the operator set that the node's domain is imported with.
  EdgeTypes(const pb::NodeProto& node, std::int64_t version);
  /// False: an operator that ONNX has no schema of.
  [[nodiscard]] bool known() const { return schema_ != nullptr; }
  [[nodiscard]] Edge input(int index) const;
  [[nodiscard]] Edge output(int index) const;

 private:
  const pb::OpSchema* schema_;
};

}  // namespace layerfarm::worker::onnx
