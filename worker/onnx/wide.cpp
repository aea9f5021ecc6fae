#include "worker/onnx/wide.h"

#include <algorithm>
#include <array>
#include <cstring>

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
  const bool any =
      std::any_of(graph.input().begin(), graph.input().end(), is_narrow) ||
      std::any_of(graph.output().begin(), graph.output().end(), is_narrow) ||
      std::any_of(layer.constants.begin(), layer.constants.end(), [](const auto& item) {
        return item.second->type.dtype == domain::DType::BFloat16;
      });
  const pb::NodeProto& node = graph.node(0);
  if (!any || layer.module.functions_size() > 0 || !in_default_domain(node)) return std::nullopt;
  for (const pb::AttributeProto& attribute : node.attribute()) {
    if (!graphs_of(attribute).empty()) return std::nullopt;
  }

  WideLayer out{.module = layer.module, .constants = {}};
  for (const auto& [name, value] : layer.constants)
    out.constants.emplace_back(name, widened(*value).value_or(*value));
  pb::GraphProto& wide = *out.module.mutable_graph();
  for (pb::ValueInfoProto& input : *wide.mutable_input()) {
    if (is_narrow(input)) input.mutable_type()->mutable_tensor_type()->set_elem_type(kWide);
  }
  for (pb::AttributeProto& attribute : *wide.mutable_node(0)->mutable_attribute())
    widen_attribute(attribute);
  for (pb::ValueInfoProto& output : *wide.mutable_output()) {
    if (!is_narrow(output)) continue;
    output.mutable_type()->mutable_tensor_type()->set_elem_type(kWide);
    const std::string exact = output.name() + "_exact";
    const std::string rounded = output.name() + "_rounded";
    for (std::string& name : *wide.mutable_node(0)->mutable_output()) {
      if (name == output.name()) name = exact;
    }
    add_cast(wide, exact, rounded, kNarrow);
    add_cast(wide, rounded, output.name(), kWide);
  }
  return out;
}

}  // namespace layerfarm::worker::onnx
