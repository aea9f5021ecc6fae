#include "worker/onnx/fed_shapes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "worker/onnx/scoped_values.h"

namespace layerfarm::worker::onnx {
namespace {

/// What of a value the model with its inputs' dims decides.
struct Decided {
  bool shape = false;
  bool content = false;
};

constexpr Decided kNothing{};
constexpr Decided kAll{.shape = true, .content = true};

/// Inputs whose content the shape of a result follows, by ONNX's operators. All others give shapes
/// that follow from their inputs' shapes alone.
const std::vector<int>& shaping_inputs(const std::string& op_type) {
  static const std::unordered_map<std::string, std::vector<int>> table = {
      {"AffineGrid", {1}},
      {"BlackmanWindow", {0}},
      {"CenterCropPad", {1}},
      {"Col2Im", {1, 2}},
      {"ConstantOfShape", {0}},
      {"DFT", {1, 2}},
      {"Expand", {1}},
      {"HammingWindow", {0}},
      {"HannWindow", {0}},
      {"ImageDecoder", {0}},
      {"MaxUnpool", {2}},
      {"MelWeightMatrix", {0, 1}},
      {"OneHot", {1}},
      {"Pad", {1, 3}},
      {"Range", {0, 1, 2}},
      {"Reshape", {1}},
      {"Resize", {1, 2, 3}},
      {"STFT", {1, 3}},
      {"SequenceAt", {1}},
      {"SequenceErase", {1}},
      {"SequenceInsert", {2}},
      {"Slice", {1, 2, 3, 4}},
      {"Split", {1}},
      {"SplitToSequence", {1}},
      {"Squeeze", {1}},
      {"StringNormalizer", {0}},
      {"StringSplit", {0}},
      {"Tile", {1, 2}},
      {"TopK", {1}},
      {"Unsqueeze", {1}},
      {"Upsample", {1}},
  };
  static const std::vector<int> none;
  static const std::vector<int> axes = {1};
  if (op_type.starts_with("Reduce")) return axes;
  const auto found = table.find(op_type);
  return found == table.end() ? none : found->second;
}

/// Operators outside ONNX whose results' shapes follow from their inputs' shapes. Of ONNX Runtime's
/// own, which its optimizer and quantizer write into models, these go by values; what others do is
/// not known.
bool shapes_give_shapes(const pb::NodeProto& node) {
  static const std::unordered_set<std::string_view> by_values = {"ATen",
                                                                 "BeamSearch",
                                                                 "ConvTransposeWithDynamicPads",
                                                                 "CropAndResize",
                                                                 "DynamicTimeWarping",
                                                                 "ExpandDims",
                                                                 "GreedySearch",
                                                                 "Pad",
                                                                 "Range",
                                                                 "RemovePadding",
                                                                 "RestorePadding",
                                                                 "Sampling",
                                                                 "Tokenizer",
                                                                 "Unique",
                                                                 "WhisperBeamSearch"};
  const std::string& domain = node.domain();
  if (domain == "ai.onnx.ml") return true;
  return (domain.starts_with("com.microsoft") || domain.starts_with("com.ms.")) &&
         !by_values.contains(node.op_type());
}

bool is_random(const std::string& op_type) {
  return op_type.starts_with("Random") || op_type == "Bernoulli" || op_type == "Multinomial";
}

class Walk {
 public:
  Walk(const LoadedModel& model, const Shapes& shapes) : model_(model), shapes_(shapes) {}

  NameSet go() {
    const pb::GraphProto& graph = model_.proto.graph();
    for (const pb::ValueInfoProto& input : graph.input())
      values_.set(input.name(), {.shape = true, .content = false});
    for (const auto& [name, value] : model_.initializers) values_.set(name, kAll);
    NameSet out;
    for (const pb::NodeProto& node : graph.node()) {
      take(node);
      for (const std::string& name : node.output()) {
        if (!name.empty() && !find(name).shape) out.insert(name);
      }
    }
    return out;
  }

 private:
  /// Puts the results of a node into the innermost scope.
  void take(const pb::NodeProto& node) {
    std::vector<Decided> results(static_cast<std::size_t>(node.output_size()));
    if (values_.may_walk_on()) results = results_of(node);
    for (int i = 0; i < node.output_size(); ++i) {
      const std::string& name = node.output(i);
      if (name.empty()) continue;
      Decided& result = results[static_cast<std::size_t>(i)];
      result.shape = result.shape || inferred(name) || declared(node, name);
      values_.set(name, result);
    }
  }

  std::vector<Decided> results_of(const pb::NodeProto& node) {
    const auto count = static_cast<std::size_t>(node.output_size());
    if (is_constant_node(node)) return std::vector<Decided>(count, kAll);
    if (const pb::FunctionProto* function = called_function(node, model_.proto))
      return call(*function, node);
    const Decided taken = all_of(used_names(node));
    if (!in_default_domain(node)) {
      return std::vector<Decided>(
          count, {.shape = shapes_give_shapes(node) && taken.shape, .content = false});
    }
    const std::string& op = node.op_type();
    if (op == "Shape" || op == "Size")
      return std::vector<Decided>(count, {.shape = true, .content = taken.shape});
    if (op == "If") return choose(node);
    const bool bodies = std::any_of(
        node.attribute().begin(), node.attribute().end(),
        [](const pb::AttributeProto& attribute) { return !graphs_of(attribute).empty(); });
    if (bodies) return std::vector<Decided>(count, kNothing);
    const bool content = taken.content && !is_random(op);
    bool shape = taken.shape && !counts_values(node);
    for (const int place : shaping_inputs(op)) {
      if (place < node.input_size() && !node.input(place).empty())
        shape = shape && find(node.input(place)).content;
    }
    return std::vector<Decided>(count, {.shape = shape || content, .content = content});
  }

  /// An If whose condition the model decides is as its branches are.
  std::vector<Decided> choose(const pb::NodeProto& node) {
    const auto count = static_cast<std::size_t>(node.output_size());
    if (node.input_size() != 1 || !find(node.input(0)).content || !values_.may_enter())
      return std::vector<Decided>(count, kNothing);
    std::vector<Decided> out(count, kAll);
    for (const pb::AttributeProto& attribute : node.attribute()) {
      for (const pb::GraphProto* body : graphs_of(attribute)) {
        values_.enter_body();
        for (const pb::TensorProto& tensor : body->initializer()) values_.set(tensor.name(), kAll);
        for (const pb::NodeProto& inner : body->node()) take(inner);
        for (std::size_t i = 0; i < count; ++i) {
          const auto place = static_cast<int>(i);
          const Decided result =
              place < body->output_size() ? find(body->output(place).name()) : kNothing;
          out[i] = {.shape = out[i].shape && result.shape,
                    .content = out[i].content && result.content};
        }
        values_.leave();
      }
    }
    return out;
  }

  /// A function sees what it is called with and nothing else.
  std::vector<Decided> call(const pb::FunctionProto& function, const pb::NodeProto& node) {
    std::vector<Decided> out(static_cast<std::size_t>(node.output_size()));
    if (!values_.may_enter()) return out;
    ScopedValues<Decided>::Scope inside;
    for (int i = 0; i < function.input_size(); ++i) {
      const bool given = i < node.input_size() && !node.input(i).empty();
      inside[function.input(i)] = given ? find(node.input(i)) : kAll;
    }
    values_.enter_function(std::move(inside));
    for (const pb::NodeProto& inner : function.node()) take(inner);
    for (int i = 0; i < std::min(function.output_size(), node.output_size()); ++i)
      out[static_cast<std::size_t>(i)] = find(function.output(i));
    values_.leave();
    return out;
  }

  [[nodiscard]] Decided find(const std::string& name) const {
    const Decided* known = values_.find(name);
    return known == nullptr ? kNothing : *known;
  }

  [[nodiscard]] Decided all_of(const std::vector<std::string>& names) const {
    Decided out = kAll;
    for (const std::string& name : names) {
      if (name.empty()) continue;
      const Decided one = find(name);
      out = {.shape = out.shape && one.shape, .content = out.content && one.content};
    }
    return out;
  }

  /// Found by ONNX's inference alone. Nothing is known of values inside bodies and functions.
  [[nodiscard]] bool inferred(const std::string& name) const {
    const auto type = shapes_.types.find(name);
    return values_.in_main_graph() && type != shapes_.types.end() && type->second.fixed() &&
           !shapes_.seen_in_run.contains(name) && !shapes_.from_file.contains(name);
  }

  [[nodiscard]] bool declared(const pb::NodeProto& node, const std::string& name) const {
    return values_.in_main_graph() && shapes_.from_file.contains(name) &&
           !shapes_.other_in_run.contains(name) && !counts_values(node) &&
           all_of(used_names(node)).shape;
  }

  const LoadedModel& model_;
  const Shapes& shapes_;
  ScopedValues<Decided> values_;
};

}  // namespace

bool counts_values(const pb::NodeProto& node) {
  static const std::array<std::string_view, 4> ops = {"Compress", "NonMaxSuppression", "NonZero",
                                                      "Unique"};
  return in_default_domain(node) && std::find(ops.begin(), ops.end(), node.op_type()) != ops.end();
}

NameSet fed_shapes(const LoadedModel& model, const Shapes& shapes) {
  return Walk(model, shapes).go();
}

}  // namespace layerfarm::worker::onnx
