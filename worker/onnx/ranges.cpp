#include "worker/onnx/ranges.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "worker/onnx/input_rules.h"

namespace layerfarm::worker::onnx {
namespace {

using domain::DType;
using domain::InputSpec;

/// Walks from a value to whoever reads it, into bodies and model-local functions, and gathers what
/// they ask.
class DemandWalk {
 public:
  explicit DemandWalk(const pb::ModelProto& model) : model_(model) {}

  void node(const pb::NodeProto& node, const std::string& name, const Surroundings& around) {
    for (int i = 0; i < node.input_size(); ++i) {
      if (node.input(i) != name) continue;
      if (auto demand = demand_of(node, i, around)) add(*demand);
      enter(node, i, around);
    }
    for (const pb::AttributeProto& attribute : node.attribute()) {
      for (const pb::GraphProto* body : graphs_of(attribute)) this->body(*body, name, around);
    }
    for (int i = 0; i < node.input_size(); ++i) {
      if (node.input(i) == name) next_.push_back(passes_on(node, i));
    }
  }

  /// All of these nodes, and what they pass the value on to.
  template <typename Nodes>
  void nodes(const Nodes& nodes, const std::string& name, const Surroundings& around) {
    std::unordered_set<std::string> seen;
    std::vector<std::string> open = {name};
    while (!open.empty() && seen.size() < kMostValues) {
      const std::string current = std::move(open.back());
      open.pop_back();
      if (current.empty() || !seen.insert(current).second) continue;
      std::vector<std::string> outer = std::exchange(next_, {});
      for (const auto& reader : nodes) node(node_in(reader), current, around);
      open.insert(open.end(), next_.begin(), next_.end());
      next_ = std::move(outer);
    }
  }

  [[nodiscard]] const std::optional<Demand>& result() const { return result_; }

 private:
  static const pb::NodeProto& node_in(const pb::NodeProto& node) { return node; }
  static const pb::NodeProto& node_in(const pb::NodeProto* node) { return *node; }

  static constexpr std::size_t kMostValues =
      64;  // a value that is moved on more often is no plain index
  static constexpr int kDeepest = 20;

  void add(const Demand& demand) {
    if (!result_) {
      result_ = demand;
      return;
    }
    if (result_->values.empty()) result_->values = demand.values;
    // Two readers that nothing satisfies: the narrower one is as good as any.
    const double lo = std::max(result_->lo, demand.lo);
    const double hi = std::min(result_->hi, demand.hi);
    if (lo < hi) {
      result_->lo = lo;
      result_->hi = hi;
    }
  }

  /// A body sees the outer values; its own it hides them with.
  void body(const pb::GraphProto& graph, const std::string& name, const Surroundings& around) {
    for (const pb::ValueInfoProto& own : graph.input()) {
      if (own.name() == name) return;
    }
    if (++depth_ <= kDeepest) nodes(graph.node(), name, around);
    --depth_;
  }

  /// The value under the name that it has inside a Loop, a Scan or a function.
  void enter(const pb::NodeProto& node, int place, const Surroundings& around) {
    if (++depth_ <= kDeepest) {
      const pb::FunctionProto* function = called_function(node, model_);
      if (function != nullptr && place < function->input_size())
        call(*function, node, place, around);
      const pb::AttributeProto* attribute = find_attribute(node, "body");
      if (attribute != nullptr && attribute->has_g() &&
          (node.op_type() == "Loop" || node.op_type() == "Scan")) {
        const pb::GraphProto& graph = attribute->g();
        if (place < graph.input_size() && (node.op_type() == "Scan" || place >= 2))
          nodes(graph.node(), graph.input(place).name(), around);
      }
    }
    --depth_;
  }

  void call(const pb::FunctionProto& function, const pb::NodeProto& node, int place,
            const Surroundings& around) {
    const auto actual = [&](const std::string& formal) -> std::string {
      for (int i = 0; i < std::min(function.input_size(), node.input_size()); ++i) {
        if (function.input(i) == formal) return node.input(i);
      }
      return {};
    };
    const Surroundings inside{
        [&](const std::string& name) { return around.type(actual(name)); },
        [&](const std::string& name) { return around.constant(actual(name)); }};
    nodes(function.node(), function.input(place), inside);
  }

  const pb::ModelProto& model_;
  std::optional<Demand> result_;
  std::vector<std::string> next_;
  int depth_ = 0;
};

InputSpec apply(InputSpec spec, const std::optional<Demand>& demand) {
  if (!demand) return spec;
  if (!demand->values.empty() &&
      static_cast<std::int64_t>(demand->values.size()) == spec.type.elements()) {
    spec.values = demand->values;
  } else if (demand->values.empty()) {
    spec.lo = demand->lo;
    spec.hi = demand->hi;
  }
  return spec;
}

}  // namespace

std::vector<std::uint32_t> draw_order_of(const std::vector<std::string>& names) {
  std::vector<std::uint32_t> out(names.size());
  std::iota(out.begin(), out.end(), 0U);
  std::sort(out.begin(), out.end(),
            [&](std::uint32_t a, std::uint32_t b) { return names[a] < names[b]; });
  return out;
}

InputSpec usual_input(domain::TensorType type) {
  InputSpec out{.type = std::move(type)};
  switch (out.type.dtype) {
    case DType::UInt8:
    case DType::UInt16:
    case DType::UInt32:
    case DType::UInt64:
      out.lo = 0;
      out.hi = 80;
      break;
    case DType::Bool:
      out.lo = 0;
      out.hi = 2;
      break;
    default:
      break;
  }
  return out;
}

namespace {

Surroundings surroundings(const LoadedModel& model, const ValueTypes& types,
                          const Constants* constants) {
  return {[&types](const std::string& name) {
            const auto found = types.find(name);
            return found == types.end() ? nullptr : &found->second;
          },
          [&model, constants](const std::string& name) -> const Constant* {
            if (constants != nullptr) return constants->find(name);
            const auto found = model.initializers.find(name);
            return found == model.initializers.end() ? nullptr : &found->second;
          }};
}

InputSpec spec_of(const ValueTypes& types, const std::string& name) {
  const auto type = types.find(name);
  return usual_input(type != types.end() && type->second.fixed() ? type->second.tensor()
                                                                 : domain::TensorType{});
}

}  // namespace

InputSpec Ranges::of_input(const NodeGroup& group, const std::string& name) const {
  DemandWalk walk(model_.proto);
  walk.nodes(group.nodes, name, surroundings(model_, types_, constants_));
  return apply(spec_of(types_, name), walk.result());
}

InputSpec Ranges::of_value(const std::string& name) const {
  DemandWalk walk(model_.proto);
  walk.nodes(model_.proto.graph().node(), name, surroundings(model_, types_, constants_));
  return apply(spec_of(types_, name), walk.result());
}

}  // namespace layerfarm::worker::onnx
