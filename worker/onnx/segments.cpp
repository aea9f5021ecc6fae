#include "worker/onnx/segments.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "worker/onnx/layer_units.h"
#include "worker/onnx/segment_order.h"

namespace layerfarm::worker::onnx {
namespace {

using Nodes = std::vector<const pb::NodeProto*>;

Nodes operators_of(const pb::GraphProto& graph) {
  Nodes out;
  for (const pb::NodeProto& node : graph.node()) {
    if (!is_constant_node(node)) out.push_back(&node);
  }
  return out;
}

/// What the quantizer put between operators, of whatever domain.
bool converts(const pb::NodeProto& node) {
  return node.op_type() == "QuantizeLinear" || node.op_type() == "DequantizeLinear";
}

/// Operators that nobody chose an executor for go with the maker of what they take, those that have
/// none with the reader of what they give.
void go_with_neighbours(const Nodes& operators, std::vector<std::string>& executors) {
  std::unordered_map<std::string, std::size_t> maker;
  std::unordered_map<std::string, std::vector<std::size_t>> readers;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    for (const std::string& name : operators[i]->output()) maker.emplace(name, i);
    for (const std::string& name : used_names(*operators[i])) readers[name].push_back(i);
  }
  for (std::size_t i = 0; i < operators.size(); ++i) {
    for (const std::string& name : used_names(*operators[i])) {
      const auto found = maker.find(name);
      if (executors[i].empty() && found != maker.end()) executors[i] = executors[found->second];
    }
  }
  for (std::size_t i = operators.size(); i-- > 0;) {
    for (const std::string& name : operators[i]->output()) {
      for (const std::size_t reader : readers[name]) {
        if (executors[i].empty()) executors[i] = executors[reader];
      }
    }
  }
  // Parts of the model that hang together with nothing that has one.
  const auto any = std::find_if(executors.begin(), executors.end(),
                                [](const std::string& name) { return !name.empty(); });
  if (any == executors.end()) return;
  const std::string some = *any;  // a copy: what is replaced is looked at meanwhile
  std::replace(executors.begin(), executors.end(), std::string(), some);
}

/// An executor for each operator. Where a layer is several operators, its main one has the name and
/// the others follow it. `asked`: by operator.
std::vector<std::string> spread(const LoadedModel& model, const Nodes& operators,
                                std::vector<std::string> asked, domain::LayerUnit unit) {
  if (unit == domain::LayerUnit::Node) return asked;
  std::vector<std::string> out = asked;
  std::unordered_map<const pb::NodeProto*, std::size_t> place;
  for (const pb::NodeProto* node : operators) place.emplace(node, place.size());
  for (const NodeGroup& group : layer_groups(model, unit)) {
    const std::string& executor = asked[place.at(&group.main())];
    for (const pb::NodeProto* node : group.nodes) {
      std::string& own = out[place.at(node)];
      if (own.empty()) own = executor;
    }
  }
  return out;
}

/// Of a quantized model the assignment knows what computes alone.
std::vector<std::string> spread_quantized(const LoadedModel& model, const Nodes& operators,
                                          const std::vector<std::string>& assignment) {
  std::vector<std::string> asked;
  auto next = assignment.begin();
  for (const pb::NodeProto* node : operators)
    asked.push_back(converts(*node) ? std::string() : *next++);
  std::vector<std::string> out = spread(model, operators, std::move(asked), domain::LayerUnit::Qdq);
  go_with_neighbours(operators, out);
  return out;
}

class Splitter {
 public:
  Splitter(const LoadedModel& model, const Constants& constants, const NameSet& fed)
      : graph_(model.proto.graph()),
        constants_(constants),
        fed_(fed),
        operators_(operators_of(graph_)) {
    for (std::size_t i = 0; i < operators_.size(); ++i) {
      for (const std::string& name : operators_[i]->output()) {
        if (!name.empty()) maker_[name] = i;
      }
    }
    for (const pb::ValueInfoProto& output : graph_.output()) {
      // A model may list one value twice; it is made and compared once.
      if (maker_.contains(output.name()) &&
          std::find(results_.begin(), results_.end(), output.name()) == results_.end())
        results_.push_back(output.name());
    }
    needs_.resize(operators_.size());
    for (std::size_t i = 0; i < operators_.size(); ++i) {
      std::unordered_set<std::size_t> makers;
      for (const std::string& name : used_names(*operators_[i])) {
        const auto made = maker_.find(name);
        // A constant is part of every segment that takes it.
        if (made != maker_.end() && constants_.find(name) == nullptr) makers.insert(made->second);
      }
      needs_[i].assign(makers.begin(), makers.end());
      std::sort(needs_[i].begin(), needs_[i].end());
    }
  }

  [[nodiscard]] const Nodes& operators() const { return operators_; }

  /// `follow`, by operator: dequantizing for others then belongs to every segment that takes its
  /// result, as a constant does, so that integers cross and no segment is given floats for its
  /// operators' weights.
  SegmentedModel split(const std::vector<std::string>& executors,
                       const std::vector<bool>& follow) const {
    SegmentedModel out;
    std::vector<std::size_t> placed;
    Numbers number;  // among the placed ones
    for (const std::size_t i : live_operators()) {
      if (follow[i] && dequantizes_for_others(i)) continue;
      number.emplace(i, placed.size());
      placed.push_back(i);
    }
    std::vector<std::string> names;
    std::vector<std::size_t> executor_of;
    std::vector<std::vector<std::size_t>> needs;
    for (const std::size_t i : placed) {
      const auto known = std::find(names.begin(), names.end(), executors[i]);
      executor_of.push_back(static_cast<std::size_t>(known - names.begin()));
      if (known == names.end()) names.push_back(executors[i]);
      std::vector<std::size_t>& own = needs.emplace_back();
      add_needs(i, number, own);
      std::sort(own.begin(), own.end());
      own.erase(std::unique(own.begin(), own.end()), own.end());
    }
    const Units units = units_of(placed, number, needs, executor_of);
    out.notes = moves(units, placed, executor_of, names);
    for (const Part& part : order_parts(units.needs, units.executor_of)) {
      NodeGroup& group = out.groups.emplace_back();
      std::unordered_set<std::size_t> taken;
      for (const std::size_t item : items_of(units, part))
        add_with_followers(placed[item], number, taken, group.nodes);
      out.segments.push_back({names[part.executor], static_cast<std::uint32_t>(group.nodes.size()),
                              node_names(group)});
    }
    set_results(out.groups);
    for (std::size_t i = 0; i < out.groups.size(); ++i)
      out.ids.push_back("segment " + std::to_string(i + 1) + " (" + span_of(out.groups[i]) + ")");
    add_whole(out);
    return out;
  }

 private:
  using Numbers = std::unordered_map<std::size_t, std::size_t>;

  /// What stays together: mostly one operator each. Items are operators by their place among the
  /// placed ones.
  struct Units {
    std::vector<std::vector<std::size_t>> items;
    std::vector<std::vector<std::size_t>> needs;  ///< other units
    std::vector<std::size_t> executor_of;
    std::vector<std::size_t> first_maker;  ///< of a value that keeps it together; else its one item
  };

  Units units_of(const std::vector<std::size_t>& placed, const Numbers& number,
                 const std::vector<std::vector<std::size_t>>& needs,
                 const std::vector<std::size_t>& executor_of) const {
    std::vector<std::pair<std::size_t, std::size_t>> together;  // maker, reader
    for (std::size_t item = 0; item < placed.size(); ++item)
      add_bound(placed[item], item, number, together);
    std::unordered_set<std::size_t> makers;
    for (const auto& [maker, reader] : together) makers.insert(maker);
    Units out;
    out.items = unite(needs, together);
    std::vector<std::size_t> unit_of(placed.size());
    for (std::size_t unit = 0; unit < out.items.size(); ++unit) {
      for (const std::size_t item : out.items[unit]) unit_of[item] = unit;
    }
    for (std::size_t unit = 0; unit < out.items.size(); ++unit) {
      const std::vector<std::size_t>& items = out.items[unit];
      std::vector<std::size_t>& own = out.needs.emplace_back();
      for (const std::size_t item : items) {
        for (const std::size_t need : needs[item]) {
          if (unit_of[need] != unit) own.push_back(unit_of[need]);
        }
      }
      std::sort(own.begin(), own.end());
      own.erase(std::unique(own.begin(), own.end()), own.end());
      const auto maker = std::find_if(items.begin(), items.end(),
                                      [&](std::size_t item) { return makers.contains(item); });
      out.first_maker.push_back(maker == items.end() ? items.front() : *maker);
      out.executor_of.push_back(executor_of[out.first_maker.back()]);
    }
    return out;
  }

  /// Makers of values that must not leave the reader's segment, also through those that follow it.
  void add_bound(std::size_t i, std::size_t reader, const Numbers& number,
                 std::vector<std::pair<std::size_t, std::size_t>>& out) const {
    for (const std::string& name : used_names(*operators_[i])) {
      const auto made = maker_.find(name);
      if (made == maker_.end() || !fed_.contains(name) || constants_.find(name) != nullptr)
        continue;
      if (const auto found = number.find(made->second); found != number.end()) {
        out.emplace_back(found->second, reader);
      } else {
        add_bound(made->second, reader, number, out);
      }
    }
  }

  /// Operators that run elsewhere than they were assigned to, to stay together.
  std::vector<std::string> moves(const Units& units, const std::vector<std::size_t>& placed,
                                 const std::vector<std::size_t>& executor_of,
                                 const std::vector<std::string>& names) const {
    constexpr std::size_t kNamed = 3;
    std::vector<std::string> out;
    for (std::size_t unit = 0; unit < units.items.size(); ++unit) {
      std::vector<std::string> moved;
      for (const std::size_t item : units.items[unit]) {
        if (executor_of[item] == units.executor_of[unit]) continue;
        moved.push_back(name_of(*operators_[placed[item]]) + " of " + names[executor_of[item]]);
      }
      if (moved.empty()) continue;
      const std::size_t count = moved.size();
      std::string which;
      for (std::size_t i = 0; i < std::min(count, kNamed); ++i)
        which += (i == 0 ? "" : ", ") + moved[i];
      if (count > kNamed) which += " and " + std::to_string(count - kNamed) + " more";
      out.push_back("[ExecutorAssignments] " + std::to_string(count) + " operator(s) run on " +
                    names[units.executor_of[unit]] + " together with " +
                    name_of(*operators_[placed[units.first_maker[unit]]]) + " (" + which +
                    "): tensors between them have a shape that depends on the values fed, and "
                    "what passes from one segment to another needs a fixed one");
    }
    return out;
  }

  static std::vector<std::size_t> items_of(const Units& units, const Part& part) {
    std::vector<std::size_t> out;
    for (const std::size_t unit : part.items)
      out.insert(out.end(), units.items[unit].begin(), units.items[unit].end());
    std::sort(out.begin(), out.end());
    return out;
  }

  [[nodiscard]] bool dequantizes_for_others(std::size_t i) const {
    const pb::NodeProto& node = *operators_[i];
    return node.op_type() == "DequantizeLinear" && node.output_size() == 1 &&
           std::find(results_.begin(), results_.end(), node.output(0)) == results_.end();
  }

  /// The placed ones that it waits for, through those that follow it.
  void add_needs(std::size_t i, const Numbers& number, std::vector<std::size_t>& out) const {
    for (const std::size_t need : needs_[i]) {
      if (const auto found = number.find(need); found != number.end()) {
        out.push_back(found->second);
      } else {
        add_needs(need, number, out);
      }
    }
  }

  /// After those that follow it and are not there yet.
  void add_with_followers(std::size_t i, const Numbers& number,
                          std::unordered_set<std::size_t>& taken, Nodes& out) const {
    for (const std::size_t need : needs_[i]) {
      if (!number.contains(need) && taken.insert(need).second)
        add_with_followers(need, number, taken, out);
    }
    out.push_back(operators_[i]);
  }

  /// Those that something of the model's results rests on; rising.
  [[nodiscard]] std::vector<std::size_t> live_operators() const {
    std::vector<bool> live(operators_.size(), false);
    for (const std::string& name : results_) live[maker_.at(name)] = true;
    for (std::size_t i = operators_.size(); i-- > 0;) {
      if (!live[i]) continue;
      for (const std::size_t need : needs_[i]) live[need] = true;
    }
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (live[i]) out.push_back(i);
    }
    return out;
  }

  /// What another segment takes, or the model gives.
  void set_results(std::vector<NodeGroup>& groups) const {
    std::unordered_set<std::string> wanted(results_.begin(), results_.end());
    for (const NodeGroup& group : groups) {
      for (std::string& name : group.inputs()) {
        if (constants_.find(name) == nullptr) wanted.insert(std::move(name));
      }
    }
    for (NodeGroup& group : groups) {
      for (const pb::NodeProto* node : group.nodes) {
        for (const std::string& name : node->output()) {
          if (wanted.contains(name)) group.results.push_back(name);
        }
      }
    }
  }

  void add_whole(SegmentedModel& out) const {
    const std::size_t segments = out.segments.size();
    out.groups.push_back({.nodes = operators_, .results = results_});
    out.ids.emplace_back("the whole model");
    if (segments < 2) return;
    NodeGroup probed = out.groups.back();
    for (std::size_t i = 0; i < segments; ++i) {
      for (const std::string& name : out.groups[i].results) {
        if (std::find(results_.begin(), results_.end(), name) == results_.end())
          probed.results.push_back(name);
      }
    }
    out.groups.push_back(std::move(probed));
    out.ids.emplace_back("the whole model with its boundaries");
  }

  static std::string name_of(const pb::NodeProto& node) {
    return node.op_type() + "_" + (node.output_size() == 0 ? node.name() : node.output(0));
  }

  /// As canonical_layer numbers them: a node, then those of its bodies, which go by its name.
  static std::vector<std::string> node_names(const NodeGroup& group) {
    std::vector<std::string> out;
    for (const pb::NodeProto* node : group.nodes)
      out.insert(out.end(), 1 + nodes_in_bodies(*node), name_of(*node));
    return out;
  }
  static std::size_t nodes_in_bodies(const pb::NodeProto& node) {
    std::size_t out = 0;
    const auto add = [&](const pb::GraphProto& body) {
      for (const pb::NodeProto& inner : body.node()) out += 1 + nodes_in_bodies(inner);
    };
    for (const pb::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) add(attribute.g());
      for (const pb::GraphProto& body : attribute.graphs()) add(body);
    }
    return out;
  }

  static std::string span_of(const NodeGroup& group) {
    const std::string first = name_of(*group.nodes.front());
    return group.nodes.size() == 1 ? first : first + " .. " + name_of(*group.nodes.back());
  }

  const pb::GraphProto& graph_;
  const Constants& constants_;
  const NameSet& fed_;
  Nodes operators_;
  std::unordered_map<std::string, std::size_t> maker_;
  std::vector<std::vector<std::size_t>> needs_;
  std::vector<std::string> results_;  ///< of the model, those that an operator makes
};

}  // namespace

base::Result<SegmentedModel> split_model(const LoadedModel& model,
                                         const domain::AnalyzeRequest& request,
                                         const Constants& constants, const NameSet& fed) {
  const Splitter splitter(model, constants, fed);
  const Nodes& nodes = splitter.operators();
  const bool quantized = request.quantize.has_value();
  const auto operators = static_cast<std::size_t>(
      std::count_if(nodes.begin(), nodes.end(),
                    [&](const pb::NodeProto* node) { return !quantized || !converts(*node); }));
  if (request.assignment.size() != operators) {
    return base::fail(base::ErrorCode::InvalidInput,
                      "the assignment is of " + std::to_string(request.assignment.size()) +
                          " operators, the " + (quantized ? "quantized " : "") + "model has " +
                          std::to_string(operators));
  }
  // What has an executor by itself stays with that.
  std::vector<bool> follow(nodes.size(), quantized);
  for (std::size_t i = 0; i < nodes.size() && request.unit == domain::LayerUnit::Qdq && !quantized;
       ++i)
    follow[i] = request.assignment[i].empty();
  SegmentedModel out =
      splitter.split(quantized ? spread_quantized(model, nodes, request.assignment)
                               : spread(model, nodes, request.assignment, request.unit),
                     follow);
  if (out.segments.empty())
    return base::fail(base::ErrorCode::InvalidInput, "no operator makes any of its outputs");
  return out;
}

}  // namespace layerfarm::worker::onnx
