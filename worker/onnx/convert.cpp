#include "worker/onnx/convert.h"

#include <fmt/format.h>
#include <onnx/checker.h>
#include <onnx/inliner/inliner.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <exception>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "worker/onnx/canonical.h"
#include "worker/onnx/convert_bf16.h"
#include "worker/onnx/convert_int32.h"
#include "worker/onnx/opset.h"
#include "worker/onnx/outside_data.h"
#include "worker/onnx/value_scope.h"

namespace layerfarm::worker::onnx {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

/// From here on nearly every operator takes bfloat16.
constexpr std::int64_t kOpset = 22;

std::string first_line(const std::exception& error) {
  const std::string why = error.what();
  return why.substr(0, why.find('\n'));
}

Result<void> inline_functions(LoadedModel& model) {
  if (model.proto.functions().empty()) return {};
  try {
    pb::inliner::InlineLocalFunctions(model.proto);
  } catch (const std::exception& error) {
    return fail(ErrorCode::InvalidInput,
                "cannot be converted: its functions cannot be put in place: " + first_line(error));
  }
  return {};
}

/// Sparse initializers are written out, and initializers are no inputs any more: the form that
/// every later IR version has.
void tidy_initializers(LoadedModel& model) {
  pb::GraphProto& graph = *model.proto.mutable_graph();
  for (const pb::SparseTensorProto& sparse : graph.sparse_initializer()) {
    const std::string name = sparse.values().name();
    hold_initializer(model, *graph.add_initializer(), name, Constant(model.initializers.at(name)));
  }
  graph.clear_sparse_initializer();
  google::protobuf::RepeatedPtrField<pb::ValueInfoProto> inputs;
  for (pb::ValueInfoProto& input : *graph.mutable_input()) {
    if (!model.initializers.contains(input.name())) inputs.Add()->Swap(&input);
  }
  graph.mutable_input()->Swap(&inputs);
}

Result<void> raise(LoadedModel& model) {
  const std::int64_t version = opset_version(model.proto, "");
  if (version >= kOpset || version == 0) return {};
  if (auto raised = raise_model(model.proto, kOpset); !raised) return raised;
  // The converter makes constants of its own, and drops others.
  std::unordered_set<std::string> there;
  for (pb::TensorProto& tensor : *model.proto.mutable_graph()->mutable_initializer()) {
    const std::string name = tensor.name();
    there.insert(name);
    if (is_outside(tensor)) continue;
    auto value = read_constant(tensor);
    if (!value) return fail(std::move(value.error()));
    hold_initializer(model, tensor, name, std::move(*value));
  }
  std::erase_if(model.initializers,
                [&](const auto& entry) { return !there.contains(entry.first); });
  return {};
}

/// Constant nodes become initializers, in bodies too.
Result<void> fold_constants(pb::GraphProto& graph, LoadedModel* main, ValueNames& names) {
  std::unordered_set<std::string> outputs;
  for (const pb::ValueInfoProto& output : graph.output()) outputs.insert(output.name());
  std::unordered_map<std::string, std::string> renamed;
  google::protobuf::RepeatedPtrField<pb::NodeProto> nodes;
  for (pb::NodeProto& node : *graph.mutable_node()) {
    for (pb::AttributeProto& attribute : *node.mutable_attribute()) {
      std::vector<pb::GraphProto*> bodies;
      if (attribute.has_g()) bodies.push_back(attribute.mutable_g());
      for (pb::GraphProto& body : *attribute.mutable_graphs()) bodies.push_back(&body);
      for (pb::GraphProto* body : bodies) {
        if (auto done = fold_constants(*body, nullptr, names); !done) return done;
      }
    }
    if (!in_default_domain(node) || node.op_type() != "Constant" || node.output_size() != 1) {
      nodes.Add()->Swap(&node);
      continue;
    }
    auto value = read_constant_node(node);
    if (!value) return fail(std::move(value.error()));
    // The name of a graph's result is public.
    std::string name = node.output(0);
    if (!outputs.contains(name)) {
      name = names.fresh(name + "_folded");
      renamed.emplace(node.output(0), name);
    }
    pb::TensorProto& tensor = *graph.add_initializer();
    if (main != nullptr) {
      hold_initializer(*main, tensor, name, std::move(*value));
    } else {
      tensor.set_name(name);
      write_constant(*value, tensor);
    }
  }
  graph.mutable_node()->Swap(&nodes);
  rename_uses(graph, renamed);
  google::protobuf::RepeatedPtrField<pb::ValueInfoProto> infos;
  for (pb::ValueInfoProto& info : *graph.mutable_value_info()) {
    if (!renamed.contains(info.name())) infos.Add()->Swap(&info);
  }
  graph.mutable_value_info()->Swap(&infos);
  return {};
}

/// Types of all values, as far as ONNX can tell, in value infos.
void find_types(LoadedModel& model) {
  try {
    pb::shape_inference::InferShapes(model.proto);
    return;
  } catch (const std::exception&) {
    // Shapes that the file declares contradict what follows from the inputs: without them, then.
    model.proto.mutable_graph()->clear_value_info();
  }
  try {
    pb::shape_inference::InferShapes(model.proto);
  } catch (const std::exception&) {
    // What is missing now is missing in the check at the end too, which says why.
    return;
  }
}

Result<void> prepare(LoadedModel& model) {
  if (auto done = inline_functions(model); !done) return done;
  tidy_initializers(model);
  if (auto done = raise(model); !done) return done;
  ValueNames names(model.proto.graph());
  if (auto done = fold_constants(*model.proto.mutable_graph(), &model, names); !done) return done;
  find_types(model);
  return {};
}

Result<void> check(LoadedModel& model, const std::string& what) {
  const CanonicalLayer none;
  model.proto.set_ir_version(
      std::max<std::int64_t>(model.proto.ir_version(), ir_version_for(model.proto, none)));
  try {
    pb::checker::check_model(without_outside_data(model.proto), /*full_check=*/true);
  } catch (const std::exception& error) {
    return fail(ErrorCode::InvalidInput, "cannot be converted to " + what +
                                             ": ONNX refuses the result: " + first_line(error));
  }
  return {};
}

void add_note(LoadedModel& model, const std::string& prefix, const std::string& what,
              const ConversionCounts& counts) {
  model.notes.push_back(
      fmt::format("[{}] {} constants and {} values became {}, {} casts were added", prefix,
                  counts.constants, counts.values, what, counts.casts));
}

/// The batch is one, where nothing says another number.
void fix_first_dims(LoadedModel& model, const Dims& dims) {
  pb::GraphProto& graph = *model.proto.mutable_graph();
  for (auto* list : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()}) {
    for (pb::ValueInfoProto& info : *list) {
      if (!info.type().has_tensor_type() || info.type().tensor_type().shape().dim().empty())
        continue;
      auto& first = *info.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0);
      const bool is_asked = std::any_of(dims.begin(), dims.end(), [&](const auto& dim) {
        return first.has_dim_param() && dim.first == first.dim_param();
      });
      if (!is_asked && (!first.has_dim_value() || first.dim_value() < 0)) first.set_dim_value(1);
    }
  }
}

}  // namespace

Result<void> convert_types(LoadedModel& model, const domain::Conversion& asked, const Dims& dims) {
  if (!asked.bf16 && !asked.int32) return {};
  if (auto done = prepare(model); !done) return done;
  if (asked.bf16) {
    const auto counts = convert_to_bf16(model);
    if (!counts) return fail(counts.error());
    if (auto done = check(model, "bfloat16"); !done) return done;
    add_note(model, "BF16", "bfloat16", *counts);
    fix_first_dims(model, dims);
  }
  if (asked.int32) {
    if (asked.bf16) find_types(model);
    const auto counts = convert_to_int32(model);
    if (!counts) return fail(counts.error());
    if (auto done = check(model, "32-bit integers"); !done) return done;
    add_note(model, "INT32", "32-bit integers", *counts);
  }
  return {};
}

}  // namespace layerfarm::worker::onnx
