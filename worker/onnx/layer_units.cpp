#include "worker/onnx/layer_units.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace layerfarm::worker::onnx {
namespace {

using Nodes = std::vector<const pb::NodeProto*>;

bool is(const pb::NodeProto& node, const char* type) {
  return in_default_domain(node) && node.op_type() == type;
}
bool dequantizes(const pb::NodeProto& node) { return is(node, "DequantizeLinear"); }
bool quantizes(const pb::NodeProto& node) { return is(node, "QuantizeLinear"); }

/// Who makes and who reads each value.
struct Wiring {
  std::unordered_map<std::string, const pb::NodeProto*> maker;
  std::unordered_map<std::string, Nodes> readers;
  std::unordered_set<std::string> given;  ///< results of the graph

  explicit Wiring(const pb::GraphProto& graph) {
    for (const pb::NodeProto& node : graph.node()) {
      for (const std::string& name : node.output()) {
        if (!name.empty()) maker[name] = &node;
      }
      for (const std::string& name : used_names(node)) readers[name].push_back(&node);
    }
    for (const pb::ValueInfoProto& output : graph.output()) given.insert(output.name());
  }

  [[nodiscard]] const Nodes& readers_of(const std::string& name) const {
    static const Nodes kNone;
    const auto found = readers.find(name);
    return found == readers.end() ? kNone : found->second;
  }
};

/// The operator with the conversions that it takes in, in no order.
Nodes with_conversions(const pb::NodeProto& node, const Wiring& wiring) {
  Nodes out = {&node};
  for (const std::string& name : used_names(node)) {
    const auto found = wiring.maker.find(name);
    if (found != wiring.maker.end() && dequantizes(*found->second) &&
        std::find(out.begin(), out.end(), found->second) == out.end())
      out.push_back(found->second);
  }
  for (const std::string& name : node.output()) {
    const Nodes& readers = wiring.readers_of(name);
    const bool only_quantized =
        !name.empty() && !readers.empty() && !wiring.given.contains(name) &&
        std::all_of(readers.begin(), readers.end(), [&](const pb::NodeProto* reader) {
          return quantizes(*reader) && reader->input(0) == name;
        });
    if (only_quantized) out.insert(out.end(), readers.begin(), readers.end());
  }
  return out;
}

std::vector<NodeGroup> single_nodes(const pb::GraphProto& graph) {
  std::vector<NodeGroup> out;
  for (const pb::NodeProto& node : graph.node()) {
    if (!is_constant_node(node)) out.push_back(NodeGroup::of(node));
  }
  return out;
}

}  // namespace

std::vector<NodeGroup> layer_groups(const LoadedModel& model, domain::LayerUnit unit) {
  const pb::GraphProto& graph = model.proto.graph();
  if (unit == domain::LayerUnit::Node) return single_nodes(graph);
  const Wiring wiring(graph);
  const ValueUses uses(model);
  std::unordered_map<const pb::NodeProto*, std::size_t> place;
  for (const pb::NodeProto& node : graph.node()) place.emplace(&node, place.size());

  std::unordered_map<const pb::NodeProto*, NodeGroup> group_of_operator;
  std::unordered_map<const pb::NodeProto*, std::unordered_set<const pb::NodeProto*>> takers;
  for (const pb::NodeProto& node : graph.node()) {
    if (is_constant_node(node) || quantizes(node) || dequantizes(node)) continue;
    Nodes members = with_conversions(node, wiring);
    std::sort(members.begin(), members.end(),
              [&](const auto* a, const auto* b) { return place.at(a) < place.at(b); });
    for (const pb::NodeProto* member : members) takers[member].insert(&node);
    NodeGroup group = NodeGroup::of(std::move(members), uses);
    // Who else reads a dequantized value takes the conversion in as well, or it is a layer by
    // itself.
    std::erase_if(group.results,
                  [&](const std::string& name) { return dequantizes(*wiring.maker.at(name)); });
    group_of_operator.emplace(&node, std::move(group));
  }
  const auto taken_in_whole = [&](const pb::NodeProto& node) {
    const auto found = takers.find(&node);
    if (found == takers.end()) return false;
    if (quantizes(node)) return true;
    const std::string& result = node.output(0);
    const Nodes& readers = wiring.readers_of(result);
    return !wiring.given.contains(result) &&
           std::all_of(readers.begin(), readers.end(),
                       [&](const pb::NodeProto* reader) { return found->second.contains(reader); });
  };

  std::vector<NodeGroup> out;
  for (const pb::NodeProto& node : graph.node()) {
    if (is_constant_node(node)) continue;
    if (const auto found = group_of_operator.find(&node); found != group_of_operator.end()) {
      out.push_back(std::move(found->second));
    } else if (!taken_in_whole(node)) {
      out.push_back(NodeGroup::of(node));
    }
  }
  return out;
}

}  // namespace layerfarm::worker::onnx
