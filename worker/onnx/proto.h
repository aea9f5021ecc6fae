// ONNX's own messages under a short name that does not clash with this folder's namespace. For this
// folder only.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <string_view>
#include <vector>

namespace layerfarm::worker::onnx {

namespace pb = ::onnx;

/// ONNX writes its default domain in two ways.
[[nodiscard]] inline std::string_view domain_of(const std::string& domain) {
  return domain == "ai.onnx" ? std::string_view() : std::string_view(domain);
}
[[nodiscard]] inline bool in_default_domain(const pb::NodeProto& node) {
  return domain_of(node.domain()).empty();
}

/// Constants are no layers; the comparison takes any case, as the original tool does.
[[nodiscard]] bool is_constant_node(const pb::NodeProto& node);

[[nodiscard]] const pb::AttributeProto* find_attribute(const pb::NodeProto& node,
                                                       std::string_view name);
[[nodiscard]] std::int64_t int_attribute(const pb::NodeProto& node, std::string_view name,
                                         std::int64_t fallback);
[[nodiscard]] std::vector<std::int64_t> ints_attribute(const pb::NodeProto& node,
                                                       std::string_view name);
[[nodiscard]] std::string string_attribute(const pb::NodeProto& node, std::string_view name,
                                           std::string_view fallback);

/// The graphs that an attribute holds (If, Loop, Scan and unknown operators alike).
[[nodiscard]] std::vector<const pb::GraphProto*> graphs_of(const pb::AttributeProto& attribute);

/// The function of the model that the node calls; null: it is an operator.
[[nodiscard]] const pb::FunctionProto* called_function(const pb::NodeProto& node,
                                                       const pb::ModelProto& model);

/// Version of the operator set that a domain's operators are read by; 0 when the model does not
/// import it.
[[nodiscard]] std::int64_t opset_version(const pb::ModelProto& model, std::string_view domain);

/// Names that a body takes from outside, each once, in the order of first use.
[[nodiscard]] std::vector<std::string> captured_names(const pb::GraphProto& body);
/// Names that a node takes: its inputs, then what its bodies capture (bodies in the order of
/// attribute names), each once.
[[nodiscard]] std::vector<std::string> used_names(const pb::NodeProto& node);

}  // namespace layerfarm::worker::onnx
