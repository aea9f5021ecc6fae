#include "worker/onnx/edge_types.h"

#include <algorithm>
#include <vector>

namespace layerfarm::worker::onnx {
namespace {

using Formal = pb::OpSchema::FormalParameter;

Edge edge_of(const pb::OpSchema* schema, const std::vector<Formal>& formals, int index) {
  if (schema == nullptr || formals.empty()) return {};
  const auto at = static_cast<std::size_t>(index);
  const Formal& formal = formals[std::min(at, formals.size() - 1)];
  const bool variadic = formal.GetOption() == pb::OpSchema::Variadic;
  if (at >= formals.size() && !variadic) return {};
  Edge out{.variable = {}, .formal = &formal};
  const std::string& text = formal.GetTypeStr();
  const bool is_variable = schema->typeConstraintMap().contains(text);
  if (is_variable && (!variadic || formal.GetIsHomogeneous())) out.variable = text;
  return out;
}

}  // namespace

bool Edge::allows(std::string_view type) const {
  return formal != nullptr && std::any_of(formal->GetTypes().begin(), formal->GetTypes().end(),
                                          [&](const std::string* known) { return *known == type; });
}

EdgeTypes::EdgeTypes(const pb::NodeProto& node, std::int64_t version)
    : schema_(version == 0 ? nullptr
                           : pb::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(version),
                                                          std::string(domain_of(node.domain())))) {}

Edge EdgeTypes::input(int index) const {
  return schema_ == nullptr ? Edge{} : edge_of(schema_, schema_->inputs(), index);
}

Edge EdgeTypes::output(int index) const {
  return schema_ == nullptr ? Edge{} : edge_of(schema_, schema_->outputs(), index);
}

}  // namespace layerfarm::worker::onnx
