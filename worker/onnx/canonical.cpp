#include "worker/onnx/canonical.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

namespace layerfarm::worker::onnx {
namespace {

pb::AttributeProto::AttributeType attribute_type(const pb::AttributeProto& attribute) {
  if (attribute.type() != pb::AttributeProto::UNDEFINED) return attribute.type();
  // Old files leave the type out; the field that is filled says it.
  if (attribute.has_f()) return pb::AttributeProto::FLOAT;
  if (attribute.has_i()) return pb::AttributeProto::INT;
  if (attribute.has_s()) return pb::AttributeProto::STRING;
  if (attribute.has_t()) return pb::AttributeProto::TENSOR;
  if (attribute.has_g()) return pb::AttributeProto::GRAPH;
  if (attribute.floats_size() > 0) return pb::AttributeProto::FLOATS;
  if (attribute.ints_size() > 0) return pb::AttributeProto::INTS;
  if (attribute.strings_size() > 0) return pb::AttributeProto::STRINGS;
  if (attribute.tensors_size() > 0) return pb::AttributeProto::TENSORS;
  if (attribute.graphs_size() > 0) return pb::AttributeProto::GRAPHS;
  return pb::AttributeProto::UNDEFINED;
}

/// Keeps numbers, drops names of dims and all that is for people.
void clean_type(const pb::TypeProto& from, pb::TypeProto& to) {
  switch (from.value_case()) {
    case pb::TypeProto::kTensorType:
    case pb::TypeProto::kSparseTensorType: {
      to = from;
      auto* shape =
          to.has_tensor_type()
              ? (to.tensor_type().has_shape() ? to.mutable_tensor_type()->mutable_shape() : nullptr)
              : (to.sparse_tensor_type().has_shape()
                     ? to.mutable_sparse_tensor_type()->mutable_shape()
                     : nullptr);
      if (shape != nullptr) {
        for (auto& dim : *shape->mutable_dim()) {
          if (!dim.has_dim_value()) dim.clear_value();
          dim.clear_denotation();
        }
      }
      break;
    }
    case pb::TypeProto::kSequenceType:
      clean_type(from.sequence_type().elem_type(),
                 *to.mutable_sequence_type()->mutable_elem_type());
      break;
    case pb::TypeProto::kOptionalType:
      clean_type(from.optional_type().elem_type(),
                 *to.mutable_optional_type()->mutable_elem_type());
      break;
    case pb::TypeProto::kMapType:
      to.mutable_map_type()->set_key_type(from.map_type().key_type());
      clean_type(from.map_type().value_type(), *to.mutable_map_type()->mutable_value_type());
      break;
    default:
      to = from;
  }
  to.clear_denotation();
}

/// One form for all ways to store the data.
void clean_tensor(const pb::TensorProto& from, pb::TensorProto& to) {
  if (const auto value = read_constant(from)) {
    write_constant(*value, to);
    return;
  }
  to = from;  // damaged: kept as it is, so that the tools say what they think of it
  to.clear_name();
  to.clear_doc_string();
}

void clean_sparse(const pb::SparseTensorProto& from, pb::SparseTensorProto& to) {
  clean_tensor(from.values(), *to.mutable_values());
  clean_tensor(from.indices(), *to.mutable_indices());
  to.mutable_dims()->CopyFrom(from.dims());
}

template <typename List>
std::vector<const typename List::value_type*> sorted_by_name(const List& list) {
  std::vector<const typename List::value_type*> out;
  for (const auto& item : list) out.push_back(&item);
  std::stable_sort(out.begin(), out.end(),
                   [](const auto* a, const auto* b) { return a->name() < b->name(); });
  return out;
}

/// Gives every name inside a layer its place. One object per layer: places go on counting through
/// bodies and functions.
class Renamer {
 public:
  using Scope = std::unordered_map<std::string, std::string>;

  explicit Renamer(Scope outer) { scopes_.push_back(std::move(outer)); }

  void node(const pb::NodeProto& from, pb::NodeProto& to) {
    to.set_name("n" + std::to_string(nodes_++));
    to.set_op_type(from.op_type());
    if (!domain_of(from.domain()).empty()) to.set_domain(from.domain());
    if (!from.overload().empty()) to.set_overload(from.overload());
    used_domains_.insert(std::string(domain_of(from.domain())));
    // Optional inputs left out at the end are the same as no inputs there.
    int inputs = from.input_size();
    while (inputs > 0 && from.input(inputs - 1).empty()) --inputs;
    for (int i = 0; i < inputs; ++i) to.add_input(look_up(from.input(i)));
    for (const pb::AttributeProto* item : sorted_by_name(from.attribute()))
      attribute(*item, *to.add_attribute());
    int outputs = from.output_size();
    while (outputs > 0 && from.output(outputs - 1).empty()) --outputs;
    for (int i = 0; i < outputs; ++i) to.add_output(define(from.output(i)));
  }

  void function(const pb::FunctionProto& from, pb::FunctionProto& to) {
    std::vector<Scope> outer = std::exchange(scopes_, {Scope()});
    to.set_name(from.name());
    to.set_domain(from.domain());
    if (!from.overload().empty()) to.set_overload(from.overload());
    for (const std::string& input : from.input()) to.add_input(define(input));
    std::vector<std::string> names(from.attribute().begin(), from.attribute().end());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) to.add_attribute(name);
    for (const pb::AttributeProto* item : sorted_by_name(from.attribute_proto()))
      attribute(*item, *to.add_attribute_proto());
    std::map<std::string, std::int64_t> imports;
    for (const pb::OperatorSetIdProto& import : from.opset_import())
      imports.emplace(domain_of(import.domain()), import.version());
    for (const auto& [domain, version] : imports) {
      pb::OperatorSetIdProto& import = *to.add_opset_import();
      import.set_domain(domain);
      import.set_version(version);
    }
    for (const pb::NodeProto& inner : from.node()) node(inner, *to.add_node());
    for (const std::string& output : from.output()) to.add_output(look_up(output));
    scopes_ = std::move(outer);
  }

  [[nodiscard]] const std::set<std::string>& used_domains() const { return used_domains_; }

 private:
  void attribute(const pb::AttributeProto& from, pb::AttributeProto& to) {
    to.set_name(from.name());
    to.set_type(attribute_type(from));
    if (!from.ref_attr_name().empty()) to.set_ref_attr_name(from.ref_attr_name());
    if (from.has_f()) to.set_f(from.f());
    if (from.has_i()) to.set_i(from.i());
    if (from.has_s()) to.set_s(from.s());
    if (from.has_t()) clean_tensor(from.t(), *to.mutable_t());
    if (from.has_g()) graph(from.g(), *to.mutable_g());
    if (from.has_sparse_tensor()) clean_sparse(from.sparse_tensor(), *to.mutable_sparse_tensor());
    if (from.has_tp()) clean_type(from.tp(), *to.mutable_tp());
    to.mutable_floats()->CopyFrom(from.floats());
    to.mutable_ints()->CopyFrom(from.ints());
    to.mutable_strings()->CopyFrom(from.strings());
    for (const auto& tensor : from.tensors()) clean_tensor(tensor, *to.add_tensors());
    for (const auto& body : from.graphs()) graph(body, *to.add_graphs());
    for (const auto& sparse : from.sparse_tensors()) clean_sparse(sparse, *to.add_sparse_tensors());
    for (const auto& type : from.type_protos()) clean_type(type, *to.add_type_protos());
  }

  void graph(const pb::GraphProto& from, pb::GraphProto& to) {
    scopes_.emplace_back();
    to.set_name("body");
    for (const pb::ValueInfoProto& input : from.input())
      value_info(input, define(input.name()), *to.add_input());
    for (const pb::TensorProto& tensor : from.initializer()) {
      pb::TensorProto& written = *to.add_initializer();
      clean_tensor(tensor, written);
      const auto known = scopes_.back().find(tensor.name());
      written.set_name(known != scopes_.back().end() ? known->second : define(tensor.name()));
    }
    for (const pb::SparseTensorProto& sparse : from.sparse_initializer()) {
      pb::SparseTensorProto& written = *to.add_sparse_initializer();
      clean_sparse(sparse, written);
      written.mutable_values()->set_name(define(sparse.values().name()));
    }
    for (const pb::NodeProto& inner : from.node()) node(inner, *to.add_node());
    for (const pb::ValueInfoProto& output : from.output())
      value_info(output, look_up(output.name()), *to.add_output());
    scopes_.pop_back();
  }

  static void value_info(const pb::ValueInfoProto& from, const std::string& name,
                         pb::ValueInfoProto& to) {
    to.set_name(name);
    if (from.has_type()) clean_type(from.type(), *to.mutable_type());
  }

  std::string define(const std::string& name) {
    if (name.empty()) return {};
    // The layer's own results have their names already.
    if (scopes_.size() == 1) {
      if (const auto known = scopes_.back().find(name); known != scopes_.back().end())
        return known->second;
    }
    return scopes_.back()[name] = "b" + std::to_string(values_++);
  }

  std::string look_up(const std::string& name) {
    if (name.empty()) return {};
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->find(name); found != scope->end()) return found->second;
    }
    return define(name);  // made by nobody: the tools will say so
  }

  std::vector<Scope> scopes_;
  std::set<std::string> used_domains_;
  std::size_t nodes_ = 0;
  std::size_t values_ = 0;
};

/// Functions that a node needs, each once, in the order of first use.
void collect_functions(const pb::NodeProto& node, const pb::ModelProto& model,
                       std::vector<const pb::FunctionProto*>& out) {
  const pb::FunctionProto* function = called_function(node, model);
  if (function != nullptr && std::find(out.begin(), out.end(), function) == out.end()) {
    out.push_back(function);
    for (const pb::NodeProto& inner : function->node()) collect_functions(inner, model, out);
  }
  for (const pb::AttributeProto* attribute : sorted_by_name(node.attribute())) {
    for (const pb::GraphProto* body : graphs_of(*attribute)) {
      for (const pb::NodeProto& inner : body->node()) collect_functions(inner, model, out);
    }
  }
}

void add_value(const std::string& name, const std::string& model_name, const ValueTypes& types,
               pb::ValueInfoProto& to) {
  to.set_name(name);
  const auto type = types.find(model_name);
  if (type != types.end() && type->second.dtype != domain::DType::Undefined)
    write_type(type->second, *to.mutable_type());
}

}  // namespace

CanonicalLayer canonical_layer(const NodeGroup& group, const pb::ModelProto& model,
                               const ValueTypes& types, const Constants& constants) {
  CanonicalLayer out;
  Renamer::Scope names;
  pb::GraphProto& graph = *out.module.mutable_graph();
  graph.set_name("layer");
  for (const std::string& name : group.inputs()) {
    if (const Constant* value = constants.find(name)) {
      names[name] = "c" + std::to_string(out.constants.size());
      out.constants.emplace_back(names[name], value);
    } else {
      names[name] = "i" + std::to_string(out.inputs.size());
      add_value(names[name], name, types, *graph.add_input());
      out.inputs.push_back(name);
    }
  }
  for (const std::string& name : group.results) {
    names[name] = "o" + std::to_string(out.outputs.size());
    add_value(names[name], name, types, *graph.add_output());
    out.outputs.push_back(name);
  }
  std::size_t between = 0;
  for (const std::string& name : group.inner()) {
    names[name] = "v" + std::to_string(between++);
    add_value(names[name], name, types, *graph.add_value_info());
  }
  Renamer renamer(std::move(names));
  std::vector<const pb::FunctionProto*> functions;
  for (const pb::NodeProto* node : group.nodes) {
    renamer.node(*node, *graph.add_node());
    collect_functions(*node, model, functions);
  }
  for (const pb::FunctionProto* function : functions)
    renamer.function(*function, *out.module.add_functions());

  std::set<std::string> domains = renamer.used_domains();
  domains.insert("");  // operators of other domains may be defined by ONNX's own ones
  for (const std::string& domain : domains) {
    const std::int64_t version = opset_version(model, domain);
    if (version == 0) continue;
    pb::OperatorSetIdProto& import = *out.module.add_opset_import();
    import.set_domain(domain);
    import.set_version(version);
  }
  out.module.set_ir_version(ir_version_for(out.module, out));
  return out;
}

std::int64_t ir_version_for(const pb::ModelProto& module, const CanonicalLayer& layer) {
  struct Step {
    std::int64_t opset;
    std::int64_t ir;
  };
  // From ONNX's own table of releases; below 4 every constant would have to be an input too.
  static constexpr std::array<Step, 11> kSteps = {{{0, 4},
                                                   {10, 5},
                                                   {11, 6},
                                                   {12, 7},
                                                   {15, 8},
                                                   {19, 9},
                                                   {21, 10},
                                                   {23, 11},
                                                   {24, 12},
                                                   {25, 13},
                                                   {28, 14}}};
  std::int64_t version = 4;
  const std::int64_t opset = opset_version(module, "");
  for (const Step& step : kSteps) {
    if (opset >= step.opset) version = step.ir;
  }
  if (opset == 0) version = 8;
  if (module.functions_size() > 0) version = std::max<std::int64_t>(version, 8);
  const auto hold = [&](int type) {
    if (type >= pb::TensorProto::FLOAT8E4M3FN) version = std::max<std::int64_t>(version, 9);
    if (type >= pb::TensorProto::UINT4) version = std::max<std::int64_t>(version, 10);
    if (type >= pb::TensorProto::FLOAT4E2M1) version = std::max<std::int64_t>(version, 11);
    if (type > pb::TensorProto::FLOAT4E2M1) version = std::max<std::int64_t>(version, 13);
  };
  for (const auto& [name, value] : layer.constants) hold(static_cast<int>(value->type.dtype));
  for (const pb::ValueInfoProto& input : module.graph().input())
    hold(input.type().tensor_type().elem_type());
  for (const pb::ValueInfoProto& output : module.graph().output())
    hold(output.type().tensor_type().elem_type());
  return std::min<std::int64_t>(version, pb::IR_VERSION);
}

base::Bytes serialize(const pb::ModelProto& model) {
  base::Bytes out;
  {
    google::protobuf::io::StringOutputStream stream(&out);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    model.SerializeToCodedStream(&coded);
  }
  return out;
}

}  // namespace layerfarm::worker::onnx
