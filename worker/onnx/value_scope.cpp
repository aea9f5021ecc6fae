#include "worker/onnx/value_scope.h"

#include <utility>
#include <vector>

namespace layerfarm::worker::onnx {

std::string ValueNames::fresh(const std::string& name) {
  std::string out = name;
  for (int n = 2; !taken_.insert(out).second; ++n) out = name + "_" + std::to_string(n);
  return out;
}

void ValueNames::add(const pb::GraphProto& graph) {
  for (const pb::ValueInfoProto& input : graph.input()) taken_.insert(input.name());
  for (const pb::ValueInfoProto& output : graph.output()) taken_.insert(output.name());
  for (const pb::TensorProto& tensor : graph.initializer()) taken_.insert(tensor.name());
  for (const pb::NodeProto& node : graph.node()) {
    taken_.insert(node.output().begin(), node.output().end());
    for (const pb::AttributeProto& attribute : node.attribute()) {
      for (const pb::GraphProto* body : graphs_of(attribute)) add(*body);
    }
  }
}

ValueScope::ValueScope(pb::GraphProto& graph, LoadedModel* model, const ValueScope* outer)
    : graph_(graph), model_(model), outer_(outer) {
  for (const pb::ValueInfoProto& info : graph.value_info()) take_type(info.name(), info.type());
  for (const pb::ValueInfoProto& output : graph.output()) {
    take_type(output.name(), output.type());
    outputs_.insert(output.name());
  }
  for (const pb::ValueInfoProto& input : graph.input()) {
    take_type(input.name(), input.type());
    own_.insert(input.name());
  }
  for (const pb::TensorProto& tensor : graph.initializer()) {
    types_[tensor.name()] = tensor.data_type();
    own_.insert(tensor.name());
    initializers_.insert(tensor.name());
  }
  for (const pb::NodeProto& node : graph.node())
    own_.insert(node.output().begin(), node.output().end());
  own_.erase("");
}

void ValueScope::take_type(const std::string& name, const pb::TypeProto& type) {
  if (type.has_tensor_type()) {
    if (type.tensor_type().elem_type() != 0) types_[name] = type.tensor_type().elem_type();
  } else if (type.value_case() != pb::TypeProto::VALUE_NOT_SET) {
    types_[name] = kNoTensor;
  }
}

const ValueScope* ValueScope::owner(const std::string& name) const {
  const ValueScope* scope = this;
  while (scope != nullptr && !scope->own_.contains(name)) scope = scope->outer_;
  return scope;
}

int ValueScope::dtype(const std::string& name) const {
  const ValueScope* const scope = owner(name);
  if (scope == nullptr) return 0;
  const auto found = scope->types_.find(name);
  return found == scope->types_.end() || found->second == kNoTensor ? 0 : found->second;
}

bool ValueScope::is_no_tensor(const std::string& name) const {
  const ValueScope* const scope = owner(name);
  if (scope == nullptr) return false;
  const auto found = scope->types_.find(name);
  return found != scope->types_.end() && found->second == kNoTensor;
}

base::Result<Constant> ValueScope::constant(const std::string& name) const {
  if (model_ != nullptr) return model_->initializers.at(name);
  for (const pb::TensorProto& tensor : graph_.initializer()) {
    if (tensor.name() == name) return read_constant(tensor);
  }
  return base::fail(base::ErrorCode::Internal, "has no constant '" + name + "'");
}

void ValueScope::replace_initializers(
    const std::unordered_map<std::string, std::vector<std::pair<std::string, Constant>>>& by)
    const {
  google::protobuf::RepeatedPtrField<pb::TensorProto> old;
  graph_.mutable_initializer()->Swap(&old);
  for (pb::TensorProto& tensor : old) {
    const auto found = by.find(tensor.name());
    if (found == by.end()) {
      graph_.add_initializer()->Swap(&tensor);
      continue;
    }
    if (model_ != nullptr) model_->initializers.erase(tensor.name());
    for (const auto& [name, value] : found->second) {
      pb::TensorProto& written = *graph_.add_initializer();
      if (model_ != nullptr) {
        hold_initializer(*model_, written, name, value);
      } else {
        written.set_name(name);
        write_constant(value, written);
      }
    }
  }
}

void rename_uses(pb::GraphProto& graph, const std::unordered_map<std::string, std::string>& names) {
  if (names.empty()) return;
  for (pb::NodeProto& node : *graph.mutable_node()) {
    for (std::string& input : *node.mutable_input()) {
      if (const auto found = names.find(input); found != names.end()) input = found->second;
    }
    for (pb::AttributeProto& attribute : *node.mutable_attribute()) {
      std::vector<pb::GraphProto*> bodies;
      if (attribute.has_g()) bodies.push_back(attribute.mutable_g());
      for (pb::GraphProto& body : *attribute.mutable_graphs()) bodies.push_back(&body);
      for (pb::GraphProto* body : bodies) {
        std::unordered_map<std::string, std::string> inside = names;
        for (const pb::ValueInfoProto& input : body->input()) inside.erase(input.name());
        for (const pb::TensorProto& tensor : body->initializer()) inside.erase(tensor.name());
        for (const pb::NodeProto& inner : body->node()) {
          for (const std::string& output : inner.output()) inside.erase(output);
        }
        rename_uses(*body, inside);
        for (pb::ValueInfoProto& output : *body->mutable_output()) {
          if (const auto found = inside.find(output.name()); found != inside.end())
            output.set_name(found->second);
        }
      }
    }
  }
}

pb::NodeProto make_cast(const std::string& from, const std::string& to, int dtype) {
  pb::NodeProto node;
  node.set_op_type("Cast");
  node.set_name("Cast_" + to);
  node.add_input(from);
  node.add_output(to);
  set_int_attribute(node, "to", dtype);
  return node;
}

void set_int_attribute(pb::NodeProto& node, const std::string& name, std::int64_t value) {
  pb::AttributeProto* found = nullptr;
  for (pb::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.name() == name) found = &attribute;
  }
  if (found == nullptr) found = node.add_attribute();
  found->Clear();
  found->set_name(name);
  found->set_type(pb::AttributeProto::INT);
  found->set_i(value);
}

}  // namespace layerfarm::worker::onnx
