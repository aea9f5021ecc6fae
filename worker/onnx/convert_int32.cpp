#include "worker/onnx/convert_int32.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "worker/onnx/edge_types.h"
#include "worker/onnx/value_scope.h"

namespace layerfarm::worker::onnx {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

constexpr int kInt64 = pb::TensorProto::INT64;
constexpr int kUInt64 = pb::TensorProto::UINT64;

bool is_wide(int dtype) { return dtype == kInt64 || dtype == kUInt64; }
int narrow_of(int dtype) {
  return dtype == kInt64 ? pb::TensorProto::INT32 : pb::TensorProto::UINT32;
}
std::string_view narrow_text(int dtype) {
  return dtype == kInt64 ? "tensor(int32)" : "tensor(uint32)";
}

template <typename Wide, typename Narrow>
Result<Constant> narrowed_as(const std::string& name, const Constant& value, bool clamps,
                             domain::DType dtype) {
  using Limits = std::numeric_limits<Narrow>;
  const std::size_t count = value.bytes.size() / sizeof(Wide);
  base::Bytes out(count * sizeof(Narrow), '\0');
  for (std::size_t i = 0; i < count; ++i) {
    Wide element = 0;
    std::memcpy(&element, value.bytes.data() + i * sizeof(Wide), sizeof(Wide));
    if (clamps && element == std::numeric_limits<Wide>::min()) element = Limits::min();
    if (clamps && element == std::numeric_limits<Wide>::max()) element = Limits::max();
    if (element < static_cast<Wide>(Limits::min()) || element > static_cast<Wide>(Limits::max())) {
      return fail(ErrorCode::InvalidInput,
                  fmt::format("cannot be converted to 32-bit integers: element {} of the constant "
                              "'{}' is {}, which {} cannot hold; change it, or leave the "
                              "conversion out",
                              i, name, element, domain::dtype_name(dtype)));
    }
    const auto narrow = static_cast<Narrow>(element);
    std::memcpy(out.data() + i * sizeof(Narrow), &narrow, sizeof(Narrow));
  }
  return make_constant({dtype, value.type.dims}, std::move(out));
}

Result<Constant> narrowed(const std::string& name, const Constant& value) {
  return value.type.dtype == domain::DType::Int64
             ? narrowed_as<std::int64_t, std::int32_t>(name, value, true, domain::DType::Int32)
             : narrowed_as<std::uint64_t, std::uint32_t>(name, value, false, domain::DType::UInt32);
}

/// Which values and edges must have one type, and which of those types must stay as it is.
class Classes {
 public:
  std::size_t add() {
    parent_.push_back(parent_.size());
    demanded_.push_back(false);
    return parent_.size() - 1;
  }
  void join(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    parent_[b] = a;
    demanded_[a] = demanded_[a] || demanded_[b];
  }
  void demand(std::size_t a) { demanded_[find(a)] = true; }
  [[nodiscard]] bool stays(std::size_t a) { return demanded_[find(a)]; }

 private:
  std::size_t find(std::size_t a) {
    while (parent_[a] != a) a = parent_[a] = parent_[parent_[a]];
    return a;
  }
  std::vector<std::size_t> parent_;
  std::vector<bool> demanded_;
};

/// A graph and what its values are made of.
struct Scope {
  ValueScope values;
  Scope* outer;
  std::unordered_map<std::string, std::size_t> classes = {};  ///< of values that are not constant
  std::unordered_map<std::string, std::string> narrow = {};   ///< constants asked for as 32 bits
  std::unordered_set<std::string> kept = {};                  ///< constants needed as they are
};

/// A constant where it is used: what is written there depends on the class.
struct ConstantUse {
  Scope* owner;
  std::string name;
  std::string* written;
  std::size_t type;
};

/// An attribute that says the type of a result.
struct TypedResult {
  pb::NodeProto* node;
  std::string attribute;
  int dtype;
  std::size_t type;
};

std::string type_attribute(const pb::NodeProto& node) {
  static const std::map<std::string, std::string> known = {
      {"Cast", "to"},           {"ConstantOfShape", "value"}, {"EyeLike", "dtype"},
      {"Multinomial", "dtype"}, {"Bernoulli", "dtype"},
  };
  if (!in_default_domain(node)) return {};
  const auto found = known.find(node.op_type());
  return found == known.end() || find_attribute(node, found->second) == nullptr ? std::string()
                                                                                : found->second;
}

bool is_op(const pb::NodeProto& node, std::string_view type) {
  return in_default_domain(node) && node.op_type() == type;
}

class Int32 {
 public:
  explicit Int32(LoadedModel& model) : model_(model), names_(model.proto.graph()) {}

  Result<ConversionCounts> run() {
    look_at(*model_.proto.mutable_graph(), &model_, nullptr);
    for (const ConstantUse& use : constants_) {
      if (classes_.stays(use.type)) {
        use.owner->kept.insert(use.name);
        continue;
      }
      auto [entry, fresh] = use.owner->narrow.try_emplace(use.name);
      if (fresh) entry->second = names_.fresh(use.name + "_int32");
      *use.written = entry->second;
    }
    for (const TypedResult& result : results_) {
      if (!classes_.stays(result.type)) {
        if (auto done = narrow_attribute(result); !done) return fail(std::move(done.error()));
      }
    }
    for (const auto& scope : scopes_) {
      narrow_values(*scope);
      if (auto done = convert_constants(*scope); !done) return fail(std::move(done.error()));
    }
    return counts_;
  }

 private:
  // ---- what belongs together ----

  Scope& look_at(pb::GraphProto& graph, LoadedModel* model, Scope* outer) {
    auto made = std::make_unique<Scope>(
        Scope{.values = ValueScope(graph, model, outer == nullptr ? nullptr : &outer->values),
              .outer = outer});
    Scope& scope = *made;
    scopes_.push_back(std::move(made));
    for (pb::NodeProto& node : *graph.mutable_node()) look_at_node(node, scope);
    for (pb::ValueInfoProto& output : *graph.mutable_output()) {
      Scope* const owner = owner_of(output.name(), scope);
      // Only a constant of the graph's own keeps its public name.
      if (owner != nullptr && owner->values.is_initializer(output.name()) && scope.values.is_main())
        owner->kept.insert(output.name());
    }
    return scope;
  }

  static Scope* owner_of(const std::string& name, Scope& scope) {
    const ValueScope* const wanted = scope.values.owner(name);
    Scope* at = &scope;
    while (at != nullptr && &at->values != wanted) at = at->outer;
    return at;
  }

  /// Makes the value at an edge, or the constant there, share the class.
  void put(std::string* written, std::size_t type, Scope& scope) {
    Scope* const owner = owner_of(*written, scope);
    if (owner == nullptr) return;
    if (owner->values.is_initializer(*written)) {
      constants_.push_back({owner, *written, written, type});
      return;
    }
    const auto [entry, fresh] = owner->classes.try_emplace(*written, 0);
    if (fresh) entry->second = classes_.add();
    classes_.join(type, entry->second);
  }

  void look_at_node(pb::NodeProto& node, Scope& scope) {
    const EdgeTypes edges(node, opset_version(model_.proto, domain_of(node.domain())));
    std::vector<std::size_t> inputs(static_cast<std::size_t>(node.input_size()), 0);
    std::vector<std::size_t> outputs(static_cast<std::size_t>(node.output_size()), 0);
    const bool has_bodies = is_op(node, "If") || is_op(node, "Loop") || is_op(node, "Scan");
    const auto no_tensor = [&](const std::string& name) {
      return !name.empty() && scope.values.is_no_tensor(name);
    };
    const bool stays =
        !has_bodies &&
        (!edges.known() || std::any_of(node.input().begin(), node.input().end(), no_tensor) ||
         std::any_of(node.output().begin(), node.output().end(), no_tensor));
    std::map<std::string, std::size_t> variables;
    std::unordered_set<std::string> from_inputs;
    const auto edge_class = [&](const Edge& edge, int dtype) {
      std::size_t type = 0;
      if (edge.variable.empty()) {
        type = classes_.add();
      } else {
        const auto [entry, fresh] = variables.try_emplace(edge.variable, 0);
        if (fresh) entry->second = classes_.add();
        type = entry->second;
      }
      if (stays || !edge.allows(narrow_text(dtype))) classes_.demand(type);
      return type;
    };
    for (int i = 0; i < node.input_size(); ++i) {
      const int dtype = scope.values.dtype(node.input(i));
      if (!is_wide(dtype)) continue;
      const Edge edge = edges.input(i);
      from_inputs.insert(edge.variable);
      const std::size_t type = inputs[static_cast<std::size_t>(i)] = edge_class(edge, dtype);
      // Runtimes read bounds of slices as 64 bits, whatever the schema allows.
      if (is_op(node, "Slice") && i > 0) classes_.demand(type);
      put(node.mutable_input(i), type, scope);
    }
    const std::string attribute = type_attribute(node);
    for (int i = 0; i < node.output_size(); ++i) {
      const int dtype = scope.values.dtype(node.output(i));
      if (!is_wide(dtype)) continue;
      const Edge edge = edges.output(i);
      const std::size_t type = outputs[static_cast<std::size_t>(i)] = edge_class(edge, dtype);
      put(node.mutable_output(i), type, scope);
      if (!attribute.empty()) {
        results_.push_back({&node, attribute, dtype, type});
      } else if (!has_bodies && !from_inputs.contains(edge.variable)) {
        // The operator decides: where its type is that of an input, as that one is; else as it is.
        if (is_wide(scope.values.dtype(node.input_size() > 0 ? node.input(0) : "")) &&
            (is_op(node, "EyeLike") || is_op(node, "Bernoulli")))
          classes_.join(type, inputs[0]);
        else
          classes_.demand(type);
      }
    }
    for (pb::AttributeProto& held : *node.mutable_attribute()) {
      if (held.has_g()) {
        Scope& body = look_at(*held.mutable_g(), nullptr, &scope);
        link(node, body, inputs, outputs);
      }
      for (pb::GraphProto& graph : *held.mutable_graphs())
        demand_all(look_at(graph, nullptr, &scope));
    }
  }

  /// What goes into a body and comes out of it is what goes into its node and comes out.
  void link(pb::NodeProto& node, Scope& body, const std::vector<std::size_t>& inputs,
            const std::vector<std::size_t>& outputs) {
    pb::GraphProto& graph = body.values.graph();
    const auto join = [&](pb::ValueInfoProto& inner, const std::string& outside,
                          const std::vector<std::size_t>& types, int at) {
      if (at >= static_cast<int>(types.size()) || outside.empty()) return;
      if (!is_wide(body.values.dtype(inner.name()))) return;
      put(inner.mutable_name(), types[static_cast<std::size_t>(at)], body);
    };
    if (is_op(node, "If")) {
      for (int i = 0; i < graph.output_size() && i < node.output_size(); ++i)
        join(*graph.mutable_output(i), node.output(i), outputs, i);
    } else if (is_op(node, "Loop")) {
      const int carried = graph.input_size() - 2;
      if (graph.input_size() > 0 && is_wide(body.values.dtype(graph.input(0).name()))) {
        const std::size_t counter = classes_.add();
        classes_.demand(counter);
        put(graph.mutable_input(0)->mutable_name(), counter, body);
      }
      for (int i = 0; i < carried && i + 2 < node.input_size(); ++i)
        join(*graph.mutable_input(i + 2), node.input(i + 2), inputs, i + 2);
      for (int i = 1; i < graph.output_size() && i - 1 < node.output_size(); ++i)
        join(*graph.mutable_output(i), node.output(i - 1), outputs, i - 1);
      // Carried values keep their type from round to round, whether or not anybody takes the last.
      for (int i = 0; i < carried && i + 1 < graph.output_size(); ++i)
        same(*graph.mutable_input(i + 2), *graph.mutable_output(i + 1), body);
    } else if (is_op(node, "Scan")) {
      for (int i = 0; i < graph.input_size() && i < node.input_size(); ++i)
        join(*graph.mutable_input(i), node.input(i), inputs, i);
      for (int i = 0; i < graph.output_size() && i < node.output_size(); ++i)
        join(*graph.mutable_output(i), node.output(i), outputs, i);
      const auto scanned = static_cast<int>(int_attribute(node, "num_scan_inputs", 0));
      for (int i = 0; i < graph.input_size() - scanned && i < graph.output_size(); ++i)
        same(*graph.mutable_input(i), *graph.mutable_output(i), body);
    } else {
      demand_all(body);
    }
  }

  void same(pb::ValueInfoProto& a, pb::ValueInfoProto& b, Scope& body) {
    if (!is_wide(body.values.dtype(a.name())) || !is_wide(body.values.dtype(b.name()))) return;
    const std::size_t type = classes_.add();
    put(a.mutable_name(), type, body);
    put(b.mutable_name(), type, body);
  }

  /// The results and inputs of a body that nothing is known of stay what they are.
  void demand_all(Scope& body) {
    const std::size_t type = classes_.add();
    classes_.demand(type);
    for (pb::ValueInfoProto& input : *body.values.graph().mutable_input()) {
      if (is_wide(body.values.dtype(input.name()))) put(input.mutable_name(), type, body);
    }
    for (pb::ValueInfoProto& output : *body.values.graph().mutable_output()) {
      if (is_wide(body.values.dtype(output.name()))) put(output.mutable_name(), type, body);
    }
  }

  // ---- what is changed ----

  static Result<void> narrow_attribute(const TypedResult& result) {
    if (result.attribute != "value") {
      set_int_attribute(*result.node, result.attribute, narrow_of(result.dtype));
      return {};
    }
    for (pb::AttributeProto& attribute : *result.node->mutable_attribute()) {
      if (attribute.name() != "value") continue;
      auto value = read_constant(attribute.t());
      if (!value) return fail(std::move(value.error()));
      auto narrow = narrowed(result.node->output(0), *value);
      if (!narrow) return fail(std::move(narrow.error()));
      attribute.mutable_t()->Clear();
      write_constant(*narrow, *attribute.mutable_t());
    }
    return {};
  }

  /// A value that no edge touches is converted too.
  void narrow_values(Scope& scope) {
    pb::GraphProto& graph = scope.values.graph();
    for (auto* list : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()}) {
      for (pb::ValueInfoProto& info : *list) {
        if (!info.type().has_tensor_type()) continue;
        auto& type = *info.mutable_type()->mutable_tensor_type();
        if (!is_wide(type.elem_type()) || listed_stays(info.name(), scope)) continue;
        type.set_elem_type(narrow_of(type.elem_type()));
        ++counts_.values;
      }
    }
  }

  /// Whether a value that a graph lists keeps its 64 bits: one of its own, one from outside, or a
  /// constant, which has its new name by now where it is changed.
  bool listed_stays(const std::string& name, Scope& scope) {
    Scope* const owner = owner_of(name, scope);
    if (owner == nullptr) return false;
    if (owner->values.is_initializer(name)) return true;
    const auto found = owner->classes.find(name);
    return found != owner->classes.end() && classes_.stays(found->second);
  }

  Result<void> convert_constants(const Scope& scope) {
    std::unordered_map<std::string, std::vector<std::pair<std::string, Constant>>> by;
    for (const pb::TensorProto& tensor : scope.values.graph().initializer()) {
      const std::string& name = tensor.name();
      const auto asked = scope.narrow.find(name);
      if (!is_wide(tensor.data_type()) || asked == scope.narrow.end()) continue;
      auto value = scope.values.constant(name);
      if (!value) return fail(std::move(value.error()));
      auto& list = by[name];
      if (scope.kept.contains(name)) list.emplace_back(name, *value);
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
  Classes classes_;
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<ConstantUse> constants_;
  std::vector<TypedResult> results_;
  ConversionCounts counts_;
};

}  // namespace

Result<ConversionCounts> convert_to_int32(LoadedModel& model) { return Int32(model).run(); }

}  // namespace layerfarm::worker::onnx
