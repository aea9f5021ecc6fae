#include "worker/onnx/wide.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <unordered_set>

namespace layerfarm::worker::onnx {
namespace {

constexpr auto kNarrow = pb::TensorProto::BFLOAT16;
constexpr auto kWide = pb::TensorProto::FLOAT;

bool is_narrow(const pb::ValueInfoProto& value) {
  return value.type().has_tensor_type() && value.type().tensor_type().elem_type() == kNarrow;
}

/// Attributes whose number is an element type.
bool names_a_type(const std::string& attribute) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "to", "dtype", "stash_type", "output_dtype", "softmax_precision", "output_datatype"};
  return std::find(kNames.begin(), kNames.end(), attribute) != kNames.end();
}

void widen_attribute(pb::AttributeProto& attribute) {
  if (attribute.type() == pb::AttributeProto::INT && names_a_type(attribute.name()) &&
      attribute.i() == kNarrow)
    attribute.set_i(kWide);
  if (!attribute.has_t() || attribute.t().data_type() != kNarrow) return;
  const auto value = read_constant(attribute.t());
  const auto wide = value ? widened(*value) : std::nullopt;
  if (!wide) return;
  attribute.mutable_t()->Clear();
  write_constant(*wide, *attribute.mutable_t());
}

void add_cast(pb::GraphProto& graph, const std::string& from, const std::string& to, int type) {
  pb::NodeProto& node = *graph.add_node();
  node.set_op_type("Cast");
  node.set_name("n_" + to);
  node.add_input(from);
  node.add_output(to);
  pb::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name("to");
  attribute.set_type(pb::AttributeProto::INT);
  attribute.set_i(type);
}

}  // namespace

std::optional<Constant> widened(const Constant& value) {
  if (value.type.dtype != domain::DType::BFloat16) return std::nullopt;
  base::Bytes out;
  out.reserve(value.bytes.size() * 2);
  for (std::size_t at = 0; at + 2 <= value.bytes.size(); at += 2)
    out.append(2, '\0').append(value.bytes.substr(at, 2));  // the upper half
  const domain::TensorType type{domain::DType::Float32, value.type.dims};
  return value.repeated ? make_repeated(type, std::move(out)) : make_constant(type, std::move(out));
}

std::optional<WideLayer> wide_layer(const CanonicalLayer& layer) {
  const pb::GraphProto& graph = layer.module.graph();
  std::unordered_set<std::string> narrow;
  for (const auto* values : {&graph.input(), &graph.output(), &graph.value_info()}) {
    for (const pb::ValueInfoProto& value : *values) {
      if (is_narrow(value)) narrow.insert(value.name());
    }
  }
  const bool narrow_constant = std::any_of(
      layer.constants.begin(), layer.constants.end(),
      [](const auto& item) { return item.second->type.dtype == domain::DType::BFloat16; });
  if ((narrow.empty() && !narrow_constant) || layer.module.functions_size() > 0)
    return std::nullopt;
  for (const pb::NodeProto& node : graph.node()) {
    if (!in_default_domain(node)) return std::nullopt;
    for (const pb::AttributeProto& attribute : node.attribute()) {
      if (!graphs_of(attribute).empty()) return std::nullopt;
    }
  }

  WideLayer out{.module = layer.module, .constants = {}};
  for (const auto& [name, value] : layer.constants)
    out.constants.emplace_back(name, widened(*value).value_or(*value));
  pb::GraphProto& wide = *out.module.mutable_graph();
  for (auto* values : {wide.mutable_input(), wide.mutable_output(), wide.mutable_value_info()}) {
    for (pb::ValueInfoProto& value : *values) {
      if (is_narrow(value)) value.mutable_type()->mutable_tensor_type()->set_elem_type(kWide);
    }
  }
  wide.clear_node();
  for (const pb::NodeProto& node : graph.node()) {
    pb::NodeProto& written = *wide.add_node();
    written = node;
    for (pb::AttributeProto& attribute : *written.mutable_attribute()) widen_attribute(attribute);
    for (std::string& name : *written.mutable_output()) {
      if (narrow.contains(name)) name += "_exact";
    }
    for (const std::string& name : node.output()) {
      if (!narrow.contains(name)) continue;
      add_cast(wide, name + "_exact", name + "_rounded", kNarrow);
      add_cast(wide, name + "_rounded", name, kWide);
    }
  }
  return out;
}

}  // namespace layerfarm::worker::onnx
