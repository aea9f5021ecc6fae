#include "worker/onnx/subgraph.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "worker/onnx/canonical.h"
#include "worker/onnx/node_group.h"

namespace layerfarm::worker::onnx {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

std::vector<const pb::NodeProto*> operators(const pb::GraphProto& graph) {
  std::vector<const pb::NodeProto*> out;
  for (const pb::NodeProto& node : graph.node()) {
    if (!is_constant_node(node)) out.push_back(&node);
  }
  return out;
}

std::string first_output(const pb::NodeProto& node) {
  return node.output_size() > 0 ? node.output(0) : std::string();
}

/// Whole ids come before bare outputs: an output may well be called like another node's id.
std::optional<std::uint32_t> place_of(const std::vector<const pb::NodeProto*>& nodes,
                                      const std::string& name) {
  for (const bool with_type : {true, false}) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::string output = first_output(*nodes[i]);
      if (name == (with_type ? nodes[i]->op_type() + "_" + output : output) && !output.empty())
        return static_cast<std::uint32_t>(i);
    }
  }
  return std::nullopt;
}

std::string first_names(const std::vector<const pb::NodeProto*>& nodes) {
  constexpr std::size_t kMost = 5;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < nodes.size() && names.size() < kMost; ++i) {
    names.push_back(nodes[i]->op_type() + "_" + first_output(*nodes[i]));
    if (names.size() < kMost) names.push_back(first_output(*nodes[i]));
  }
  std::string out = "[";
  for (const std::string& name : names) out += (out.size() > 1 ? ", '" : "'") + name + "'";
  return out + "]...";
}

void add_value(const std::string& name, const ValueTypes& types, pb::ValueInfoProto& to) {
  to.set_name(name);
  const auto type = types.find(name);
  if (type != types.end() && type->second.dtype != domain::DType::Undefined)
    write_type(type->second, *to.mutable_type());
}

}  // namespace

Result<domain::NodeRange> find_range(const pb::GraphProto& graph,
                                     const domain::SubgraphRange& asked) {
  const auto nodes = operators(graph);
  const auto find = [&](const std::string& flag, const std::string& name) -> Result<std::uint32_t> {
    if (const auto place = place_of(nodes, name)) return *place;
    return fail(ErrorCode::NotFound, "Could not resolve --subgraph-" + flag + "='" + name +
                                         "'. Available: " + first_names(nodes));
  };
  const auto first = find("from", asked.from);
  if (!first) return fail(first.error());
  const auto last = find("to", asked.to);
  if (!last) return fail(last.error());
  return domain::NodeRange{*first, *last};
}

LoadedModel take_subgraph(const LoadedModel& model, const domain::NodeRange& range,
                          const ValueTypes& types, const Constants& constants) {
  const pb::GraphProto& whole = model.proto.graph();
  const auto nodes = operators(whole);
  const pb::NodeProto* const first = nodes.at(range.first);
  const pb::NodeProto* const last = nodes.at(range.last);
  std::vector<const pb::NodeProto*> taken;
  bool inside = false;
  for (const pb::NodeProto& node : whole.node()) {
    inside = inside || &node == first;
    if (inside) taken.push_back(&node);
    if (&node == last) break;
  }

  LoadedModel out;
  out.files = model.files;
  out.digest = model.digest;
  out.notes = model.notes;
  *out.proto.mutable_opset_import() = model.proto.opset_import();
  *out.proto.mutable_functions() = model.proto.functions();
  pb::GraphProto& graph = *out.proto.mutable_graph();
  graph.set_name("subgraph_" + std::to_string(range.first) + "_to_" + std::to_string(range.last));
  const NodeGroup group = NodeGroup::of(taken, ValueUses(model));
  for (const pb::NodeProto* node : taken) *graph.add_node() = *node;
  std::vector<std::string> outside = group.inputs();
  std::sort(outside.begin(), outside.end());
  for (const std::string& name : outside) {
    if (const Constant* value = constants.find(name)) {
      hold_initializer(out, *graph.add_initializer(), name, *value);
    } else {
      add_value(name, types, *graph.add_input());
    }
  }
  // Constants are nobody's results, even where a later node uses them too.
  std::unordered_set<std::string> constant;
  for (const pb::NodeProto* node : taken) {
    if (is_constant_node(*node)) constant.insert(node->output().begin(), node->output().end());
  }
  for (const std::string& name : group.results) {
    if (!constant.contains(name)) add_value(name, types, *graph.add_output());
  }
  for (const std::string& name : group.inner()) add_value(name, types, *graph.add_value_info());
  const CanonicalLayer none;
  out.proto.set_ir_version(
      std::max<std::int64_t>(model.proto.ir_version(), ir_version_for(out.proto, none)));
  return out;
}

}  // namespace layerfarm::worker::onnx
