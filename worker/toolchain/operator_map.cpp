#include "worker/toolchain/operator_map.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace layerfarm::worker::toolchain {
namespace {

/// Equal types get equal numbers, so that the quadratic part compares no texts.
std::vector<std::uint32_t> numbered(const std::vector<std::string>& types,
                                    std::unordered_map<std::string, std::uint32_t>& known) {
  std::vector<std::uint32_t> out;
  out.reserve(types.size());
  for (const std::string& type : types)
    out.push_back(known.emplace(type, static_cast<std::uint32_t>(known.size())).first->second);
  return out;
}

}  // namespace

std::string float_op_type(std::string_view op_type) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kOthers = {
      {{"ConvInteger", "Conv"}, {"MatMulInteger", "MatMul"}, {"QGemm", "Gemm"}}};
  for (const auto& [quantized, name] : kOthers) {
    if (op_type == quantized) return std::string(name);
  }
  constexpr std::string_view kPrefix = "QLinear";
  if (op_type.starts_with(kPrefix) && op_type.size() > kPrefix.size())
    op_type.remove_prefix(kPrefix.size());
  return std::string(op_type);
}

std::vector<domain::SourceLocation> compute_operators(
    const std::vector<domain::SourceLocation>& operators) {
  std::vector<domain::SourceLocation> out;
  for (const domain::SourceLocation& place : operators) {
    if (place.op_type == "QuantizeLinear" || place.op_type == "DequantizeLinear") continue;
    out.push_back({place.line, place.column, float_op_type(place.op_type)});
  }
  return out;
}

std::vector<std::optional<std::size_t>> align(const std::vector<std::string>& layers,
                                              const std::vector<std::string>& operators) {
  std::unordered_map<std::string, std::uint32_t> known;
  const std::vector<std::uint32_t> a = numbered(layers, known);
  const std::vector<std::uint32_t> b = numbered(operators, known);
  // One bit per pair says which side the walk back leaves out where the types differ; lengths are
  // needed of two rows only.
  const std::size_t width = b.size();
  std::vector<bool> drop_layer(a.size() * width);
  std::vector<std::uint32_t> above(width + 1, 0);
  std::vector<std::uint32_t> row(width + 1, 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      drop_layer[i * width + j] = above[j + 1] >= row[j];
      row[j + 1] = a[i] == b[j] ? above[j] + 1 : std::max(above[j + 1], row[j]);
    }
    std::swap(above, row);
  }
  std::vector<std::optional<std::size_t>> out(a.size());
  std::size_t i = a.size();
  std::size_t j = width;
  while (i > 0 && j > 0) {
    if (a[i - 1] == b[j - 1]) {
      out[--i] = --j;
    } else if (drop_layer[(i - 1) * width + (j - 1)]) {
      --i;
    } else {
      --j;
    }
  }
  return out;
}

std::size_t place_layers(const std::vector<domain::SourceLocation>& module_operators,
                         domain::ModelAnalysis& analysis) {
  analysis.locations = compute_operators(module_operators);
  analysis.operators = static_cast<std::uint32_t>(analysis.locations.size());
  std::vector<std::string> layers;
  std::vector<std::string> operators;
  for (const domain::Layer& layer : analysis.layers) layers.push_back(layer.op_type);
  for (const domain::SourceLocation& place : analysis.locations) operators.push_back(place.op_type);
  const auto places = align(layers, operators);
  std::size_t placed = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    domain::Layer& layer = analysis.layers[i];
    layer.node_index.reset();
    if (!places[i]) continue;
    layer.node_index = static_cast<std::uint32_t>(*places[i]);
    ++placed;
  }
  return placed;
}

}  // namespace layerfarm::worker::toolchain
