#include "worker/onnx/convert_bf16.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "shared/domain/half.h"
#include "worker/onnx/edge_types.h"
#include "worker/onnx/value_scope.h"

namespace layerfarm::worker::onnx {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

constexpr int kWide = pb::TensorProto::FLOAT;
constexpr int kNarrow = pb::TensorProto::BFLOAT16;
constexpr std::string_view kNarrowText = "tensor(bfloat16)";
constexpr float kLargest = 0x1.FEp127F;  // of bfloat16

Result<Constant> narrowed(const std::string& name, const Constant& value) {
  const std::size_t count = value.bytes.size() / sizeof(float);
  base::Bytes out(count * 2, '\0');
  for (std::size_t i = 0; i < count; ++i) {
    float element = 0;
    std::memcpy(&element, value.bytes.data() + i * sizeof(float), sizeof(float));
    if (!(std::fabs(element) <= kLargest)) {
      return fail(ErrorCode::InvalidInput,
                  fmt::format("cannot be converted to bfloat16: element {} of the constant '{}' is "
                              "{}, and the largest magnitude that bfloat16 holds is 3.3895e38; "
                              "change it, or leave the conversion out",
                              i, name, element));
    }
    const std::uint16_t bits = domain::float_to_bfloat16(element);
    std::memcpy(out.data() + i * 2, &bits, 2);
  }
  return make_constant({domain::DType::BFloat16, value.type.dims}, std::move(out));
}

/// What the converted form of a scope's values is called.
struct Converted {
  ValueScope values;
  const Converted* outer = nullptr;
  /// Initializers that were asked for as bfloat16, and results of operators that can only make
  /// float: name -> the name of the bfloat16 value.
  std::unordered_map<std::string, std::string> narrow = {};
  std::unordered_map<std::string, std::string> wide = {};  ///< value -> its Cast to float
  std::unordered_set<std::string> kept = {};  ///< initializers that some edge needs as float
};

bool is_body_operator(const pb::NodeProto& node) {
  return in_default_domain(node) &&
         (node.op_type() == "If" || node.op_type() == "Loop" || node.op_type() == "Scan");
}

/// Attributes that say the type of a result, and what their absence says.
struct TypeAttribute {
  std::string_view op;
  std::string_view attribute;
  bool absent_is_float;
};
constexpr std::array<TypeAttribute, 13> kTypeAttributes = {{
    {"Cast", "to", false},
    {"RandomNormal", "dtype", true},
    {"RandomUniform", "dtype", true},
    {"RandomNormalLike", "dtype", false},
    {"RandomUniformLike", "dtype", false},
    {"Bernoulli", "dtype", false},
    {"EyeLike", "dtype", false},
    {"BlackmanWindow", "output_datatype", true},
    {"HannWindow", "output_datatype", true},
    {"HammingWindow", "output_datatype", true},
    {"MelWeightMatrix", "output_datatype", true},
    {"LayerNormalization", "stash_type", true},
    {"DequantizeLinear", "output_dtype", false},
}};

/// Whether an attribute decides what the node's free results are.
bool has_type_attribute(const pb::NodeProto& node) {
  return in_default_domain(node) &&
         (node.op_type() == "ConstantOfShape" ||
          std::any_of(kTypeAttributes.begin(), kTypeAttributes.end(),
                      [&](const TypeAttribute& known) { return known.op == node.op_type(); }));
}

void narrow_attributes(pb::NodeProto& node) {
  if (!in_default_domain(node)) return;
  if (node.op_type() == "ConstantOfShape") {
    const pb::AttributeProto* const value = find_attribute(node, "value");
    if (value != nullptr && value->t().data_type() != kWide) return;
    auto number = value == nullptr
                      ? make_constant({domain::DType::Float32, {1}}, base::Bytes(4, '\0'))
                      : read_constant(value->t()).value_or(Constant{});
    auto narrow = narrowed("value", number);
    if (!narrow || narrow->bytes.empty()) return;  // the check at the end says what is wrong
    if (value == nullptr) node.add_attribute()->set_name("value");
    for (pb::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.name() != "value") continue;
      attribute.set_type(pb::AttributeProto::TENSOR);
      attribute.mutable_t()->Clear();
      write_constant(*narrow, *attribute.mutable_t());
    }
    return;
  }
  for (const TypeAttribute& known : kTypeAttributes) {
    if (known.op != node.op_type()) continue;
    const std::string name(known.attribute);
    const pb::AttributeProto* const said = find_attribute(node, name);
    if (said == nullptr ? known.absent_is_float : said->i() == kWide)
      set_int_attribute(node, name, kNarrow);
  }
}

class Bf16 {
 public:
  explicit Bf16(LoadedModel& model) : model_(model), names_(model.proto.graph()) {}

  Result<ConversionCounts> run() {
    if (auto done = convert(*model_.proto.mutable_graph(), &model_, nullptr); !done)
      return fail(std::move(done.error()));
    return counts_;
  }

 private:
  Result<void> convert(pb::GraphProto& graph, LoadedModel* model, Converted* outer) {
    Converted scope{.values = ValueScope(graph, model, outer == nullptr ? nullptr : &outer->values),
                    .outer = outer};
    scopes_.push_back(&scope);
    google::protobuf::RepeatedPtrField<pb::NodeProto> nodes;
    graph.mutable_node()->Swap(&nodes);
    for (pb::NodeProto& node : nodes) {
      if (auto done = convert_node(node, scope); !done) return done;
    }
    for (pb::ValueInfoProto& input : *graph.mutable_input()) narrow_type(input);
    convert_outputs(scope);
    for (pb::ValueInfoProto& info : *graph.mutable_value_info()) {
      // What has a bfloat16 form of another name stays float under its own.
      if (!scope.narrow.contains(info.name())) narrow_type(info);
    }
    scopes_.pop_back();
    return convert_constants(scope);
  }

  void narrow_type(pb::ValueInfoProto& info) {
    if (!info.type().has_tensor_type() || info.type().tensor_type().elem_type() != kWide) return;
    info.mutable_type()->mutable_tensor_type()->set_elem_type(kNarrow);
    ++counts_.values;
  }

  Converted& owner(const std::string& name) {
    const ValueScope* const wanted = scopes_.back()->values.owner(name);
    return **std::find_if(scopes_.begin(), scopes_.end(),
                          [&](const Converted* scope) { return &scope->values == wanted; });
  }

  /// The bfloat16 form of a float value in reach.
  std::string narrow_name(const std::string& name) {
    Converted& scope = owner(name);
    if (const auto found = scope.narrow.find(name); found != scope.narrow.end())
      return found->second;
    if (!scope.values.is_initializer(name)) return name;
    // The name of a graph's result is public.
    const bool is_public = scope.values.is_main() && scope.values.is_output(name);
    return scope.narrow[name] = is_public ? name : names_.fresh(name + "_bf16");
  }

  std::string wide_name(const std::string& name, Converted& scope) {
    for (const Converted* at = &scope; at != nullptr; at = at->outer) {
      if (const auto found = at->wide.find(name); found != at->wide.end()) return found->second;
    }
    const std::string from = narrow_name(name);
    const std::string to = names_.fresh(name + "_fp32");
    add_cast(scope, from, to, kWide);
    return scope.wide[name] = to;
  }

  void add_cast(const Converted& scope, const std::string& from, const std::string& to, int dtype) {
    *scope.values.graph().add_node() = make_cast(from, to, dtype);
    ++counts_.casts;
  }

  Result<void> convert_node(pb::NodeProto& node, Converted& scope) {
    const EdgeTypes edges(node, opset_version(model_.proto, domain_of(node.domain())));
    for (pb::AttributeProto& attribute : *node.mutable_attribute()) {
      if (graphs_of(attribute).empty()) continue;
      if (!is_body_operator(node)) {
        return fail(ErrorCode::InvalidInput,
                    "cannot be converted to bfloat16: the node '" + node.name() + "' (" +
                        node.op_type() + ") holds a graph, and nothing says what its types are");
      }
      if (attribute.has_g()) {
        if (auto done = convert(*attribute.mutable_g(), nullptr, &scope); !done) return done;
      }
    }
    const ValueScope& values = scope.values;
    const auto is_float = [&](const std::string& name) {
      return !name.empty() && values.dtype(name) == kWide;
    };
    const auto no_tensor = [&](const std::string& name) {
      return !name.empty() && values.is_no_tensor(name);
    };
    // Sequences and optionals stay what they are, and so does what goes into them and comes out.
    const bool stays = !is_body_operator(node) &&
                       (std::any_of(node.input().begin(), node.input().end(), no_tensor) ||
                        std::any_of(node.output().begin(), node.output().end(), no_tensor));
    std::unordered_set<std::string> narrow_variables;
    for (int i = 0; i < node.input_size(); ++i) {
      const std::string name = node.input(i);
      if (!is_float(name)) continue;
      const Edge edge = edges.input(i);
      // Scales in bfloat16 would give other sizes.
      const bool exact = in_default_domain(node) && node.op_type() == "Resize" && i > 0;
      if (exact && values.owner(name)->is_initializer(name)) {
        owner(name).kept.insert(name);
      } else if (!exact && !stays && edge.allows(kNarrowText)) {
        node.set_input(i, narrow_name(name));
        if (!edge.variable.empty()) narrow_variables.insert(edge.variable);
      } else {
        node.set_input(i, wide_name(name, scope));
      }
    }
    std::vector<std::pair<std::string, std::string>> casts;
    for (int i = 0; i < node.output_size(); ++i) {
      const std::string name = node.output(i);
      if (!is_float(name)) continue;
      const Edge edge = edges.output(i);
      const bool follows = narrow_variables.contains(edge.variable) || has_type_attribute(node) ||
                           is_body_operator(node);
      if (!stays && edge.allows(kNarrowText) && follows) continue;
      if (values.is_output(name)) {
        node.set_output(i, names_.fresh(name + "_fp32"));
        casts.emplace_back(node.output(i), name);
      } else {
        const std::string narrow = names_.fresh(name + "_bf16");
        scope.narrow[name] = narrow;
        casts.emplace_back(name, narrow);
      }
    }
    if (!stays) narrow_attributes(node);
    values.graph().add_node()->Swap(&node);
    for (const auto& [from, to] : casts) add_cast(scope, from, to, kNarrow);
    return {};
  }

  void convert_outputs(Converted& scope) {
    for (pb::ValueInfoProto& output : *scope.values.graph().mutable_output()) {
      if (scope.values.dtype(output.name()) != kWide) continue;
      narrow_type(output);
      // A body may hand on what it takes from outside; there names of results are nobody's affair.
      output.set_name(narrow_name(output.name()));
    }
  }

  Result<void> convert_constants(const Converted& scope) {
    std::unordered_map<std::string, std::vector<std::pair<std::string, Constant>>> by;
    for (const pb::TensorProto& tensor : scope.values.graph().initializer()) {
      const std::string& name = tensor.name();
      if (tensor.data_type() != kWide) continue;
      auto value = scope.values.constant(name);
      if (!value) return fail(std::move(value.error()));
      auto& list = by[name];
      if (scope.kept.contains(name)) list.emplace_back(name, *value);
      const auto asked = scope.narrow.find(name);
      if (asked == scope.narrow.end()) continue;  // nobody uses it
      auto narrow = narrowed(name, *value);
      if (!narrow) return fail(std::move(narrow.error()));
      list.emplace_back(asked->second, std::move(*narrow));
      ++counts_.constants;
    }
    scope.values.replace_initializers(by);
    return {};
  }

  LoadedModel& model_;
  ValueNames names_;
  std::vector<Converted*> scopes_;
  ConversionCounts counts_;
};

}  // namespace

Result<ConversionCounts> convert_to_bf16(LoadedModel& model) { return Bf16(model).run(); }

}  // namespace layerfarm::worker::onnx
