#include "worker/onnx/proto.h"

#include <strings.h>

#include <algorithm>
#include <unordered_set>

namespace layerfarm::worker::onnx {
namespace {

/// Each name once, in order of first use.
class NameList {
 public:
  void add(const std::string& name) {
    if (!name.empty() && seen_.insert(name).second) names_.push_back(name);
  }
  [[nodiscard]] std::vector<std::string> take() { return std::move(names_); }

 private:
  std::unordered_set<std::string> seen_;
  std::vector<std::string> names_;
};

std::vector<const pb::AttributeProto*> sorted_attributes(const pb::NodeProto& node) {
  std::vector<const pb::AttributeProto*> out;
  out.reserve(static_cast<std::size_t>(node.attribute_size()));
  for (const pb::AttributeProto& attribute : node.attribute()) out.push_back(&attribute);
  std::stable_sort(out.begin(), out.end(),
                   [](const auto* a, const auto* b) { return a->name() < b->name(); });
  return out;
}

void add_used(const pb::NodeProto& node, NameList& names) {
  for (const std::string& input : node.input()) names.add(input);
  for (const pb::AttributeProto* attribute : sorted_attributes(node)) {
    for (const pb::GraphProto* body : graphs_of(*attribute)) {
      for (const std::string& name : captured_names(*body)) names.add(name);
    }
  }
}

}  // namespace

bool is_constant_node(const pb::NodeProto& node) {
  return ::strcasecmp(node.op_type().c_str(), "Constant") == 0;
}

const pb::AttributeProto* find_attribute(const pb::NodeProto& node, std::string_view name) {
  for (const pb::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

std::int64_t int_attribute(const pb::NodeProto& node, std::string_view name,
                           std::int64_t fallback) {
  const pb::AttributeProto* attribute = find_attribute(node, name);
  return attribute != nullptr && attribute->has_i() ? attribute->i() : fallback;
}

std::vector<std::int64_t> ints_attribute(const pb::NodeProto& node, std::string_view name) {
  const pb::AttributeProto* attribute = find_attribute(node, name);
  if (attribute == nullptr) return {};
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::string string_attribute(const pb::NodeProto& node, std::string_view name,
                             std::string_view fallback) {
  const pb::AttributeProto* attribute = find_attribute(node, name);
  return attribute != nullptr && attribute->has_s() ? attribute->s() : std::string(fallback);
}

std::vector<const pb::GraphProto*> graphs_of(const pb::AttributeProto& attribute) {
  std::vector<const pb::GraphProto*> out;
  if (attribute.has_g()) out.push_back(&attribute.g());
  for (const pb::GraphProto& graph : attribute.graphs()) out.push_back(&graph);
  return out;
}

const pb::FunctionProto* called_function(const pb::NodeProto& node, const pb::ModelProto& model) {
  for (const pb::FunctionProto& function : model.functions()) {
    if (function.name() == node.op_type() &&
        domain_of(function.domain()) == domain_of(node.domain()) &&
        function.overload() == node.overload())
      return &function;
  }
  return nullptr;
}

std::int64_t opset_version(const pb::ModelProto& model, std::string_view domain) {
  for (const pb::OperatorSetIdProto& import : model.opset_import()) {
    if (domain_of(import.domain()) == domain) return import.version();
  }
  return 0;
}

std::vector<std::string> captured_names(const pb::GraphProto& body) {
  std::unordered_set<std::string> own;
  for (const pb::ValueInfoProto& input : body.input()) own.insert(input.name());
  for (const pb::TensorProto& tensor : body.initializer()) own.insert(tensor.name());
  for (const pb::SparseTensorProto& tensor : body.sparse_initializer())
    own.insert(tensor.values().name());
  NameList names;
  for (const pb::NodeProto& node : body.node()) {
    NameList used;
    add_used(node, used);
    for (const std::string& name : used.take()) {
      if (!own.contains(name)) names.add(name);
    }
    for (const std::string& output : node.output()) own.insert(output);
  }
  for (const pb::ValueInfoProto& output : body.output()) {
    if (!own.contains(output.name())) names.add(output.name());
  }
  return names.take();
}

std::vector<std::string> used_names(const pb::NodeProto& node) {
  NameList names;
  add_used(node, names);
  return names.take();
}

}  // namespace layerfarm::worker::onnx
