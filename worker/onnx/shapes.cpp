#include "worker/onnx/shapes.h"

#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "shared/base/files.h"
#include "shared/domain/layer.h"
#include "worker/onnx/data_files.h"
#include "worker/onnx/ranges.h"

namespace layerfarm::worker::onnx {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

/// Dynamic dims become numbers where `values` names them; unnamed ones where `fallback` says so,
/// else they stay open.
void set_dims(pb::TypeProto& type, const std::map<std::string, std::int64_t>& values,
              std::optional<std::int64_t> fallback) {
  if (!type.has_tensor_type() || !type.tensor_type().has_shape()) return;
  for (auto& dim : *type.mutable_tensor_type()->mutable_shape()->mutable_dim()) {
    if (dim.has_dim_value() && dim.dim_value() >= 0) continue;
    const auto named = dim.has_dim_param() ? values.find(dim.dim_param()) : values.end();
    if (named != values.end()) {
      dim.set_dim_value(named->second);
    } else if (fallback) {
      dim.set_dim_value(*fallback);
    } else {
      dim.clear_value();
    }
  }
}

/// Names of the inputs' dims.
std::set<std::string> input_dim_names(const pb::GraphProto& graph) {
  std::set<std::string> out;
  for (const pb::ValueInfoProto& input : graph.input()) {
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      if (dim.has_dim_param() && !dim.dim_param().empty()) out.insert(dim.dim_param());
    }
  }
  return out;
}

/// Fixes the inputs' dims and returns what every named dim stands for.
std::map<std::string, std::int64_t> fix_inputs(LoadedModel& model, const Dims& dims) {
  std::map<std::string, std::int64_t> values(dims.begin(), dims.end());
  for (pb::ValueInfoProto& input : *model.proto.mutable_graph()->mutable_input()) {
    if (!input.type().has_tensor_type()) continue;
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      if (!dim.has_dim_param() || dim.dim_param().empty()) continue;
      values.emplace(dim.dim_param(), 1);
    }
    set_dims(*input.mutable_type(), values, 1);
  }
  return values;
}

/// What the file itself says of its values, with dims put in as far as the inputs name them.
ValueTypes declared_types(LoadedModel& model, const std::map<std::string, std::int64_t>& values) {
  pb::GraphProto& graph = *model.proto.mutable_graph();
  ValueTypes out;
  for (auto* list : {graph.mutable_value_info(), graph.mutable_output()}) {
    for (pb::ValueInfoProto& info : *list) {
      set_dims(*info.mutable_type(), values, std::nullopt);
      out[info.name()] = read_type(info.type());
    }
  }
  return out;
}

void run_inference(LoadedModel& model) {
  const pb::ShapeInferenceOptions options(/*check_type_val=*/false, /*strict_mode_val=*/0,
                                          /*data_prop_val=*/true);
  pb::shape_inference::DataValueMap values;
  try {
    pb::shape_inference::InferShapes(model.proto, pb::OpSchemaRegistry::Instance(), options,
                                     &values);
  } catch (const std::exception& error) {
    std::string why = error.what();
    model.notes.push_back("ONNX's shape inference gave up: " + why.substr(0, why.find('\n')));
  }
}

ValueTypes collect_types(const LoadedModel& model) {
  const pb::GraphProto& graph = model.proto.graph();
  ValueTypes out;
  for (const auto* list : {&graph.value_info(), &graph.output(), &graph.input()}) {
    for (const pb::ValueInfoProto& info : *list) {
      ValueType type = read_type(info.type());
      ValueType& entry = out[info.name()];
      if (!entry.fixed()) entry = std::move(type);
    }
  }
  for (const auto& [name, value] : model.initializers) {
    out[name] = {.dtype = value.type.dtype, .dims = value.type.dims};
  }
  return out;
}

bool is_open(const ValueTypes& types, const std::string& name) {
  const auto found = types.find(name);
  return found == types.end() || (found->second.other.empty() && !found->second.fixed());
}

std::vector<std::string> open_values(const LoadedModel& model, const ValueTypes& types) {
  std::vector<std::string> out;
  for (const pb::NodeProto& node : model.proto.graph().node()) {
    for (const std::string& name : node.output()) {
      if (!name.empty() && is_open(types, name)) out.push_back(name);
    }
  }
  return out;
}

/// Names of other tensors come from sequences and the like, which no declaration fixes.
std::size_t take_declared(LoadedModel& model, const ValueTypes& declared, const ValueTypes& types,
                          const std::vector<std::string>& open) {
  pb::GraphProto& graph = *model.proto.mutable_graph();
  std::map<std::string, pb::ValueInfoProto*> infos;
  for (auto* list : {graph.mutable_value_info(), graph.mutable_output()}) {
    for (pb::ValueInfoProto& info : *list) infos.emplace(info.name(), &info);
  }
  std::size_t taken = 0;
  std::vector<std::pair<std::string, ValueType>> fresh;
  for (const std::string& name : open) {
    const auto said = declared.find(name);
    if (said == declared.end() || said->second.dtype == domain::DType::Undefined) continue;
    const auto known = types.find(name);
    // Inference knows the element type better; a shape that contradicts what it knows of the dims
    // is stale.
    ValueType merged = said->second;
    if (known != types.end()) {
      if (known->second.dtype != domain::DType::Undefined && known->second.dtype != merged.dtype)
        continue;
      if (known->second.dims && merged.dims) {
        if (known->second.dims->size() != merged.dims->size()) continue;
        bool agree = true;
        for (std::size_t i = 0; i < merged.dims->size(); ++i) {
          const std::int64_t inferred = (*known->second.dims)[i];
          if (inferred >= 0 && (*merged.dims)[i] >= 0 && inferred != (*merged.dims)[i])
            agree = false;
          if (inferred >= 0) (*merged.dims)[i] = inferred;
        }
        if (!agree) continue;
      }
      if (known->second.dims && !merged.dims) continue;
    }
    ++taken;
    if (const auto info = infos.find(name); info != infos.end()) {
      write_type(merged, *info->second->mutable_type());
    } else {
      fresh.emplace_back(name, std::move(merged));
    }
  }
  for (auto& [name, type] : fresh) {
    pb::ValueInfoProto& info = *graph.add_value_info();
    info.set_name(name);
    write_type(type, *info.mutable_type());
  }
  return taken;
}

/// Lets what the run showed of values from the file take the place of what the file says, wherever
/// an operator has a value that only the run shows. The number of those values.
std::size_t follow_the_run(const pb::GraphProto& graph, Shapes& shapes) {
  const auto is_empty = [](const std::vector<std::int64_t>& dims) {
    return std::find(dims.begin(), dims.end(), 0) != dims.end();
  };
  std::size_t followed = 0;
  // Mostly one round and one to see that nothing is left: nodes are in the order of their values.
  for (bool changed = !shapes.other_in_run.empty(); changed;) {
    changed = false;
    for (const pb::NodeProto& node : graph.node()) {
      std::vector<std::string> names = used_names(node);
      names.insert(names.end(), node.output().begin(), node.output().end());
      if (std::none_of(names.begin(), names.end(),
                       [&](const std::string& name) { return shapes.seen_in_run.contains(name); }))
        continue;
      for (const std::string& name : names) {
        const auto other = shapes.other_in_run.find(name);
        if (other == shapes.other_in_run.end() || is_empty(other->second)) continue;
        shapes.types[name].dims = std::move(other->second);
        shapes.other_in_run.erase(other);
        shapes.from_file.erase(name);
        shapes.seen_in_run.insert(name);
        changed = true;
        ++followed;
      }
    }
  }
  return followed;
}

}  // namespace

Shapes infer_shapes(LoadedModel& model, const Dims& dims) {
  const std::set<std::string> names = input_dim_names(model.proto.graph());
  for (const auto& [name, value] : dims) {
    if (!names.contains(name))
      model.notes.push_back("no input has a dim named '" + name + "', so --dim " + name +
                            " changes nothing");
  }
  const auto values = fix_inputs(model, dims);
  const ValueTypes declared = declared_types(model, values);
  pb::GraphProto& graph = *model.proto.mutable_graph();
  graph.clear_value_info();
  for (pb::ValueInfoProto& output : *graph.mutable_output()) output.clear_type();

  Shapes out;
  out.dim_names.assign(names.begin(), names.end());
  run_inference(model);
  out.types = collect_types(model);
  out.unknown = open_values(model, out.types);
  if (!out.unknown.empty() && take_declared(model, declared, out.types, out.unknown) > 0) {
    out.from_file.insert(out.unknown.begin(), out.unknown.end());
    run_inference(model);
    out.types = collect_types(model);
    out.unknown = open_values(model, out.types);
    for (const std::string& name : out.unknown) out.from_file.erase(name);
  }
  return out;
}

void add_seen_shapes(const std::string& answer, const pb::GraphProto& graph, Shapes& shapes,
                     std::vector<std::string>& notes) {
  const auto json = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("ok") || json["ok"] != true || !json.contains("values") ||
      !json["values"].is_array()) {
    const std::string why = json.is_object() && json.contains("text") && json["text"].is_string()
                                ? json["text"].get<std::string>()
                                : "no reason given";
    notes.push_back(
        "the shapes that ONNX's inference leaves open could not be found by running the model: " +
        why.substr(0, why.find('\n')));
    return;
  }
  std::size_t found = 0;
  for (const auto& seen : json["values"]) {
    if (!seen.is_object() || !seen.contains("name") || !seen["name"].is_string() ||
        !seen.contains("dtype") || !seen["dtype"].is_number_integer() || !seen.contains("dims") ||
        !seen["dims"].is_array()) {
      continue;
    }
    const auto name = seen["name"].get<std::string>();
    const bool open = is_open(shapes.types, name);
    if (!open && !shapes.from_file.contains(name)) continue;
    ValueType type{.dtype = static_cast<domain::DType>(seen["dtype"].get<std::int64_t>()),
                   .dims = std::vector<std::int64_t>()};
    for (const auto& dim : seen["dims"])
      type.dims->push_back(dim.is_number_integer() ? dim.get<std::int64_t>() : -1);
    if (!type.fixed()) continue;
    if (!open) {
      if (*type.dims != shapes.types[name].dims) shapes.other_in_run.emplace(name, *type.dims);
      continue;
    }
    ValueType& value = shapes.types[name];
    if (value.dtype != domain::DType::Undefined) type.dtype = value.dtype;
    value = std::move(type);
    shapes.seen_in_run.insert(name);
    ++found;
  }
  for (const pb::NodeProto& node : graph.node()) {
    if (node.op_type() != "Cast" || !in_default_domain(node) || node.input_size() != 1) continue;
    const std::string& name = node.output(0);
    if (!is_open(shapes.types, name) || !shapes.seen_in_run.contains(node.input(0))) continue;
    shapes.types[name].dims = shapes.types.at(node.input(0)).dims;
    if (!is_open(shapes.types, name)) shapes.seen_in_run.insert(name);
  }
  std::erase_if(shapes.unknown,
                [&](const std::string& name) { return !is_open(shapes.types, name); });
  std::string note =
      "the shapes of " + std::to_string(found) + " values were found by running the model";
  if (const std::size_t followed = follow_the_run(graph, shapes); followed > 0)
    note += "; those of " + std::to_string(followed) +
            " that meet them are as in that run, not as the file declares them";
  notes.push_back(std::move(note));
}

Result<std::string> shapes_request(const LoadedModel& model, const Shapes& shapes,
                                   const std::filesystem::path& folder,
                                   const base::BlobFolder& blobs) {
  pb::ModelProto asked = model.proto;
  pb::GraphProto& graph = *asked.mutable_graph();
  graph.clear_value_info();
  for (pb::NodeProto& node : *graph.mutable_node())
    node.clear_name();  // may clash, and say nothing here
  graph.clear_output();
  for (const std::string& name : shapes.unknown) graph.add_output()->set_name(name);
  const std::set<std::string> from_file(shapes.from_file.begin(), shapes.from_file.end());
  for (const std::string& name : from_file) graph.add_output()->set_name(name);
  graph.clear_sparse_initializer();
  graph.clear_initializer();
  std::vector<std::pair<std::string, const Constant*>> constants;
  for (const auto& [name, value] : model.initializers) constants.emplace_back(name, &value);
  std::sort(constants.begin(), constants.end());
  for (const auto& [name, value] : constants) {
    pb::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(name);
    auto data = write_tensor(*value, tensor, blobs);
    if (!data) return fail(std::move(data.error()));
    if (!*data || std::filesystem::exists(folder / (*data)->name)) continue;
    if (auto linked = blobs.link_to((*data)->blob, folder / (*data)->name); !linked)
      return fail(std::move(linked.error()));
  }

  nlohmann::ordered_json request = {{"op", "shapes"}, {"model", (folder / "model.onnx").string()}};
  request["inputs"] = nlohmann::ordered_json::array();
  const Ranges ranges(model, shapes.types);
  for (const pb::ValueInfoProto& input : graph.input()) {
    if (model.initializers.contains(input.name())) continue;
    const auto type = shapes.types.find(input.name());
    if (type == shapes.types.end() || !type->second.fixed()) {
      return fail(
          ErrorCode::Unavailable,
          "the model cannot be run to see its shapes: nothing says the shape of its input '" +
              input.name() + "'");
    }
    const domain::InputSpec spec = ranges.of_value(input.name());
    nlohmann::ordered_json entry = {
        {"name", input.name()},
        {"dtype", static_cast<int>(spec.type.dtype)},
        {"dims", spec.type.dims},
        {"lo",
         spec.values.empty() ? spec.lo : *std::min_element(spec.values.begin(), spec.values.end())},
        {"hi", spec.values.empty()
                   ? spec.hi
                   : *std::max_element(spec.values.begin(), spec.values.end()) + 1}};
    if (!spec.values.empty()) entry["values"] = spec.values;
    request["inputs"].push_back(std::move(entry));
  }
  request["values"] =
      nlohmann::ordered_json::array();  // all that is asked for is an output of the written model
  std::string bytes;
  if (!asked.SerializeToString(&bytes))
    return fail(ErrorCode::InvalidInput,
                "is too large to be written for a run that shows its shapes");
  if (auto written = base::write_file_atomically(folder / "model.onnx", bytes, base::Sync::No);
      !written)
    return fail(std::move(written.error()));
  return request.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace layerfarm::worker::onnx
