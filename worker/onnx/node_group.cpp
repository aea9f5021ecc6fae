#include "worker/onnx/node_group.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace layerfarm::worker::onnx {
namespace {

bool only_converts(const pb::NodeProto& node) {
  return in_default_domain(node) &&
         (node.op_type() == "QuantizeLinear" || node.op_type() == "DequantizeLinear");
}

}  // namespace

ValueUses::ValueUses(const LoadedModel& model) {
  for (const pb::NodeProto& node : model.proto.graph().node()) {
    for (std::string& name : used_names(node)) ++counts_[std::move(name)];
  }
  for (const pb::ValueInfoProto& output : model.proto.graph().output()) ++counts_[output.name()];
}

std::size_t ValueUses::of(const std::string& name) const {
  const auto found = counts_.find(name);
  return found == counts_.end() ? 0 : found->second;
}

NodeGroup NodeGroup::of(const pb::NodeProto& node) {
  NodeGroup out{.nodes = {&node}, .results = {}};
  for (const std::string& name : node.output()) {
    if (!name.empty()) out.results.push_back(name);
  }
  return out;
}

NodeGroup NodeGroup::of(std::vector<const pb::NodeProto*> nodes, const ValueUses& uses) {
  if (nodes.size() == 1) return of(*nodes.front());
  NodeGroup out{.nodes = std::move(nodes), .results = {}};
  std::unordered_map<std::string, std::size_t> inside;
  for (const pb::NodeProto* node : out.nodes) {
    for (const std::string& name : used_names(*node)) ++inside[name];
  }
  for (const pb::NodeProto* node : out.nodes) {
    for (const std::string& name : node->output()) {
      if (name.empty()) continue;
      const auto found = inside.find(name);
      const std::size_t here = found == inside.end() ? 0 : found->second;
      if (here == 0 || uses.of(name) > here) out.results.push_back(name);
    }
  }
  return out;
}

const pb::NodeProto& NodeGroup::main() const {
  const auto found = std::find_if(nodes.begin(), nodes.end(),
                                  [](const pb::NodeProto* node) { return !only_converts(*node); });
  return found == nodes.end() ? *nodes.front() : **found;
}

std::vector<std::string> NodeGroup::inputs() const {
  std::unordered_set<std::string> known;
  for (const pb::NodeProto* node : nodes)
    known.insert(node->output().begin(), node->output().end());
  std::vector<std::string> out;
  for (const pb::NodeProto* node : nodes) {
    for (const std::string& name : used_names(*node)) {
      if (known.insert(name).second) out.push_back(name);
    }
  }
  for (const std::string& name : also_given) {
    if (known.insert(name).second) out.push_back(name);
  }
  return out;
}

std::vector<std::string> NodeGroup::inner() const {
  std::vector<std::string> out;
  for (const pb::NodeProto* node : nodes) {
    for (const std::string& name : node->output()) {
      if (!name.empty() && std::find(results.begin(), results.end(), name) == results.end())
        out.push_back(name);
    }
  }
  return out;
}

}  // namespace layerfarm::worker::onnx
