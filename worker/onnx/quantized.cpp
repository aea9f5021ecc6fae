#include "worker/onnx/quantized.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "worker/onnx/analyze.h"
#include "worker/onnx/ranges.h"

namespace layerfarm::worker::onnx {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using domain::Layer;

std::optional<std::size_t> place_of(const std::string& name,
                                    const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

/// For each of `names` its place in `order`; none when one is not there.
std::optional<std::vector<std::size_t>> places_of(const std::vector<std::string>& names,
                                                  const std::vector<std::string>& order) {
  std::vector<std::size_t> out;
  for (const std::string& name : names) {
    const auto place = place_of(name, order);
    if (!place) return std::nullopt;
    out.push_back(*place);
  }
  return out;
}

/// Records of MAC counts name the node as the module does; people know the model's name.
std::string with_node_name(const std::string& breakdown, const std::string& node_name) {
  auto records = nlohmann::ordered_json::parse(breakdown, nullptr, /*allow_exceptions=*/false);
  if (!records.is_array()) return breakdown;
  for (auto& record : records) {
    if (!record.is_object() || !record.contains("node_name")) continue;
    if (node_name.empty()) {
      record.erase("node_name");
    } else {
      record["node_name"] = node_name;
    }
  }
  return records.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Why the quantized form does not fit the layer; empty when it does, and then it has taken its
/// place.
std::string take(const Layer& made, const QuantizedModule& module, Layer& layer) {
  if (!made.problem.empty()) return made.problem;
  const auto inputs = places_of(made.input_names, module.inputs);
  const auto outputs = places_of(made.output_names, module.outputs);
  if (!inputs || !outputs || module.inputs.size() != layer.inputs.size() ||
      module.outputs.size() != layer.outputs.size() || outputs->size() != layer.outputs.size())
    return "its inputs and outputs are not those of the layer";
  const Layer plain = layer;
  layer.signature = made.signature;
  layer.loose_signature = made.loose_signature;
  layer.module = made.module;
  layer.wide_module = made.wide_module;
  layer.mac_count = made.mac_count;
  layer.mac_breakdown = with_node_name(made.mac_breakdown, plain.node_name);
  layer.inputs.clear();
  layer.input_names.clear();
  for (std::size_t i = 0; i < inputs->size(); ++i) {
    const domain::InputSpec& before = plain.inputs[(*inputs)[i]];
    // What is not converted keeps its range: an index must still stay inside its table.
    layer.inputs.push_back(before.type == made.inputs[i].type ? before : made.inputs[i]);
    layer.input_names.push_back(plain.input_names[(*inputs)[i]]);
  }
  layer.draw_order = draw_order_of(layer.input_names);
  layer.outputs = made.outputs;
  layer.output_names.clear();
  layer.open_outputs.clear();
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    const auto before = static_cast<std::uint32_t>((*outputs)[i]);
    layer.output_names.push_back(plain.output_names[before]);
    if (std::find(plain.open_outputs.begin(), plain.open_outputs.end(), before) !=
        plain.open_outputs.end())
      layer.open_outputs.push_back(static_cast<std::uint32_t>(i));
  }
  layer.quantized = true;
  layer.quantize_note.clear();
  return {};
}

}  // namespace

Result<std::vector<QuantizedModule>> parse_quantized_modules(std::string_view json) {
  std::vector<QuantizedModule> out;
  try {
    for (const auto& entry : nlohmann::json::parse(json)) {
      out.push_back({.file = entry.at("file").get<std::string>(),
                     .layers = entry.at("layers").get<std::vector<std::uint32_t>>(),
                     .inputs = entry.at("inputs").get<std::vector<std::string>>(),
                     .outputs = entry.at("outputs").get<std::vector<std::string>>()});
    }
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorCode::InvalidInput, std::string("no list of modules: ") + error.what());
  }
  return out;
}

void replace_modules(const std::vector<QuantizedModule>& modules, const base::BlobFolder& blobs,
                     domain::ModelAnalysis& analysis) {
  // No layer is in two modules, so the tasks touch different ones.
  tbb::parallel_for(std::size_t{0}, modules.size(), [&](std::size_t i) {
    const QuantizedModule& module = modules[i];
    const Result<Layer> made = whole_as_layer(module.file, blobs);
    for (const std::uint32_t place : module.layers) {
      if (place >= analysis.layers.size()) continue;
      Layer& layer = analysis.layers[place];
      const std::string problem = made ? take(*made, module, layer) : made.error().text();
      if (problem.empty()) continue;
      layer.quantized = false;
      layer.quantize_note = "its quantized form cannot be used: " + problem;
    }
  });
}

}  // namespace layerfarm::worker::onnx
