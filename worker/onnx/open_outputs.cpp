#include "worker/onnx/open_outputs.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "worker/onnx/scoped_values.h"

namespace layerfarm::worker::onnx {
namespace {

struct Rule {
  std::string_view op_type;
  std::int64_t last_opset;  ///< up to and with this one
  int first_output;         ///< this result of the operator and all after it
};

constexpr std::int64_t kEveryOpset = std::numeric_limits<std::int64_t>::max();

/// By the operators' texts in ONNX's docs/Changelog.md. Only what a text leaves open for whatever
/// is fed: not single elements (a Cast out of range), nor orders that may differ (an unsorted
/// TopK).
constexpr Rule kRules[] = {
    // Dropout 1, 6: "If is_test is nonzero, this output is not filled." Dropout 7, 10: "The output
    // mask.", though in test mode the output is "a simple copy of the input" and no mask is made.
    // From 12 on the mask takes part in the formula of the output.
    {"Dropout", 11, 1},
    // BatchNormalization 1 to 9: saved_mean and saved_var are "used during training to speed up
    // gradient computation"; in what form, nothing says. From 14 on they are gone.
    {"BatchNormalization", 13, 3},
    // Random numbers: a seed is of one implementation, and without one no two runs agree.
    {"Bernoulli", kEveryOpset, 0},
    {"Multinomial", kEveryOpset, 0},
    {"RandomNormal", kEveryOpset, 0},
    {"RandomNormalLike", kEveryOpset, 0},
    {"RandomUniform", kEveryOpset, 0},
    {"RandomUniformLike", kEveryOpset, 0},
};

/// From opset 12 on an input of Dropout says whether it drops at random.
constexpr std::int64_t kDropoutByInput = 12;
constexpr int kTrainingInput = 2;

struct Known {
  bool open = false;
  std::optional<bool> flag;  ///< of a constant: whether it is true
};

std::optional<bool> flag_of(const Constant& value) {
  if (value.type.dtype != domain::DType::Bool || value.bytes.empty()) return std::nullopt;
  return value.bytes[0] != 0;
}

class Walk {
 public:
  Walk(const pb::ModelProto& model, const Constants& constants)
      : model_(model), constants_(constants), opset_(opset_version(model, "")) {}

  NameSet go(const std::vector<const pb::NodeProto*>& nodes) {
    NameSet out;
    for (const pb::NodeProto* node : nodes) {
      take(*node);
      for (const std::string& name : node->output()) {
        if (is_open(name)) out.insert(name);
      }
    }
    return out;
  }

 private:
  using Opens = std::vector<bool>;  ///< by result

  void take(const pb::NodeProto& node) {
    if (is_constant_node(node)) {
      Known known;
      if (const auto value = read_constant_node(node)) known.flag = flag_of(*value);
      for (const std::string& name : node.output()) values_.set(name, known);
      return;
    }
    const Opens opens = values_.may_walk_on() ? opens_of(node) : none(node);
    for (int i = 0; i < node.output_size(); ++i) {
      if (!node.output(i).empty())
        values_.set(node.output(i), {.open = opens[static_cast<std::size_t>(i)], .flag = {}});
    }
  }

  Opens opens_of(const pb::NodeProto& node) {
    if (const pb::FunctionProto* function = called_function(node, model_))
      return values_.may_enter() ? call(*function, node) : none(node);
    const bool standard = in_default_domain(node);
    if (const auto body = body_of(node); body != nullptr && standard && values_.may_enter()) {
      if (node.op_type() == "Loop") return loop(node, *body, /*counted=*/2);
      if (node.op_type() == "Scan") return loop(node, *body, /*counted=*/0);
    }
    if (standard && node.op_type() == "If" && values_.may_enter()) return choose(node);
    const std::vector<std::string> taken = used_names(node);
    const bool of_shapes = standard && (node.op_type() == "Shape" || node.op_type() == "Size");
    const bool given = !of_shapes && std::any_of(taken.begin(), taken.end(),
                                                 [&](const auto& name) { return is_open(name); });
    Opens out(static_cast<std::size_t>(node.output_size()), given);
    const std::optional<int> first = standard ? first_open(node) : std::nullopt;
    for (int i = first.value_or(node.output_size()); i < node.output_size(); ++i)
      out[static_cast<std::size_t>(i)] = true;
    return out;
  }

  /// The first of its results that the operator itself leaves open.
  [[nodiscard]] std::optional<int> first_open(const pb::NodeProto& node) const {
    // One that is fed is drawn as false (input_rules).
    if (node.op_type() == "Dropout" && opset_ >= kDropoutByInput &&
        node.input_size() > kTrainingInput && flag(node.input(kTrainingInput)))
      return 0;
    for (const Rule& rule : kRules) {
      if (node.op_type() == rule.op_type && opset_ <= rule.last_opset) return rule.first_output;
    }
    return std::nullopt;
  }

  Opens choose(const pb::NodeProto& node) {
    Opens out(static_cast<std::size_t>(node.output_size()),
              node.input_size() > 0 && is_open(node.input(0)));
    for (const pb::AttributeProto& attribute : node.attribute()) {
      for (const pb::GraphProto* body : graphs_of(attribute)) {
        const Opens inside = walk(*body, {});
        for (std::size_t i = 0; i < out.size() && i < inside.size(); ++i)
          out[i] = out[i] || inside[i];
      }
    }
    return out;
  }

  /// Loop and Scan: what one round makes open is open for the next one. `counted`: inputs before
  /// those that the body is given (how often, and whether at all).
  Opens loop(const pb::NodeProto& node, const pb::GraphProto& body, int counted) {
    Opens out = none(node);
    const int first = node.op_type() == "Loop" ? 1 : 0;  // of the body's results: whether to go on
    Opens given(static_cast<std::size_t>(body.input_size()), false);
    for (int i = counted; i < node.input_size() && i < body.input_size(); ++i)
      given[static_cast<std::size_t>(i)] = is_open(node.input(i));
    for (bool changed = true; changed;) {
      changed = false;
      const Opens inside = walk(body, given);
      for (std::size_t i = 0; i < out.size() && i + static_cast<std::size_t>(first) < inside.size();
           ++i) {
        out[i] = inside[i + static_cast<std::size_t>(first)];
        // The state comes back where it went in.
        const std::size_t place = i + static_cast<std::size_t>(counted);
        if (place >= given.size() || !is_state(node, static_cast<int>(i)) || !out[i] ||
            given[place])
          continue;
        given[place] = true;
        changed = true;
      }
      bool rounds = first == 1 && !inside.empty() && inside[0];
      for (int i = 0; i < counted && i < node.input_size(); ++i)
        rounds = rounds || is_open(node.input(i));
      if (rounds) return Opens(out.size(), true);  // how many rounds there are is drawn
    }
    // With no round at all, the state is what went in.
    for (int i = counted; i < node.input_size(); ++i) {
      const auto result = static_cast<std::size_t>(i - counted);
      if (result < out.size() && is_state(node, i - counted) && is_open(node.input(i)))
        out[result] = true;
    }
    return out;
  }

  /// Whether a result is what the last round left of a state, not what the rounds gathered.
  static bool is_state(const pb::NodeProto& node, int result) {
    if (node.op_type() == "Loop") return result < node.input_size() - 2;
    return result < node.input_size() - static_cast<int>(int_attribute(node, "num_scan_inputs", 0));
  }

  Opens call(const pb::FunctionProto& function, const pb::NodeProto& node) {
    ScopedValues<Known>::Scope formals;
    for (int i = 0; i < function.input_size(); ++i) {
      Known& known = formals[function.input(i)];
      if (i < node.input_size())
        known = {.open = is_open(node.input(i)), .flag = flag(node.input(i))};
    }
    values_.enter_function(std::move(formals));
    const std::int64_t outer = opset_;
    for (const pb::OperatorSetIdProto& import : function.opset_import()) {
      if (domain_of(import.domain()).empty()) opset_ = import.version();
    }
    for (const pb::NodeProto& inner : function.node()) take(inner);
    Opens out = none(node);
    for (int i = 0; i < function.output_size() && i < node.output_size(); ++i)
      out[static_cast<std::size_t>(i)] = is_open(function.output(i));
    opset_ = outer;
    values_.leave();
    return out;
  }

  /// Which of a body's results are open. `given`: which of its inputs are.
  Opens walk(const pb::GraphProto& body, const Opens& given) {
    values_.enter_body();
    for (int i = 0; i < body.input_size(); ++i) {
      const auto place = static_cast<std::size_t>(i);
      values_.set(body.input(i).name(), {.open = place < given.size() && given[place], .flag = {}});
    }
    for (const pb::TensorProto& tensor : body.initializer()) {
      Known known;
      if (tensor.data_type() == pb::TensorProto::BOOL) {
        if (const auto value = read_constant(tensor)) known.flag = flag_of(*value);
      }
      values_.set(tensor.name(), known);
    }
    for (const pb::NodeProto& inner : body.node()) take(inner);
    Opens out;
    for (const pb::ValueInfoProto& output : body.output()) out.push_back(is_open(output.name()));
    values_.leave();
    return out;
  }

  static const pb::GraphProto* body_of(const pb::NodeProto& node) {
    const pb::AttributeProto* attribute = find_attribute(node, "body");
    return attribute != nullptr && attribute->has_g() ? &attribute->g() : nullptr;
  }
  static Opens none(const pb::NodeProto& node) {
    return Opens(static_cast<std::size_t>(node.output_size()), false);
  }

  [[nodiscard]] bool is_open(const std::string& name) const {
    const Known* known = values_.find(name);
    return known != nullptr && known->open;
  }
  [[nodiscard]] bool flag(const std::string& name) const {
    if (const Known* known = values_.find(name)) return known->flag.value_or(false);
    const Constant* value = constants_.find(name);
    return value != nullptr && flag_of(*value).value_or(false);
  }

  const pb::ModelProto& model_;
  const Constants& constants_;
  std::int64_t opset_;
  ScopedValues<Known> values_;
};

}  // namespace

NameSet open_values(const std::vector<const pb::NodeProto*>& nodes, const pb::ModelProto& model,
                    const Constants& constants) {
  return Walk(model, constants).go(nodes);
}

}  // namespace layerfarm::worker::onnx
