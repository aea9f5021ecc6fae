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

/// What ONNX Runtime's quantizer puts behind names.
constexpr std::array<std::string_view, 1> kNodeEndings = {"_quant"};
constexpr std::array<std::string_view, 2> kResultEndings = {"_quantized", "_QuantizeLinear_Input"};

template <std::size_t N>
std::string float_name(std::string_view name, const std::array<std::string_view, N>& endings) {
  for (const std::string_view ending : endings) {
    if (name.ends_with(ending)) return std::string(name.substr(0, name.size() - ending.size()));
  }
  return std::string(name);
}

/// Layers and the operators of a module, until each has its own or none is left.
class Pairing {
 public:
  explicit Pairing(domain::ModelAnalysis& analysis)
      : analysis_(analysis), taken_(analysis.locations.size()) {}

  /// Pairs of one op type whose name nobody else among them has.
  template <typename OperatorNameOf, typename LayerNameOf>
  void by_name(const OperatorNameOf& of_operator, const LayerNameOf& of_layer) {
    std::unordered_map<std::string, std::vector<std::size_t>> operators;
    std::unordered_map<std::string, std::vector<std::size_t>> layers;
    for (const std::size_t place : free_places()) operators[of_operator(place)].push_back(place);
    for (const std::size_t i : free_layers()) layers[of_layer(analysis_.layers[i])].push_back(i);
    for (const auto& [name, named] : layers) {
      const auto found = operators.find(name);
      if (name.empty() || named.size() != 1 || found == operators.end() ||
          found->second.size() != 1 ||
          analysis_.layers[named.front()].op_type !=
              analysis_.locations[found->second.front()].op_type)
        continue;
      pair(named.front(), found->second.front());
    }
  }

  void by_order() {
    const std::vector<std::size_t> layers = free_layers();
    const std::vector<std::size_t> places = free_places();
    std::vector<std::string> wanted;
    std::vector<std::string> there;
    for (const std::size_t i : layers) wanted.push_back(analysis_.layers[i].op_type);
    for (const std::size_t place : places) there.push_back(analysis_.locations[place].op_type);
    const auto found = align(wanted, there);
    for (std::size_t k = 0; k < found.size(); ++k) {
      if (found[k]) pair(layers[k], places[*found[k]]);
    }
  }

  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  [[nodiscard]] std::vector<std::size_t> free_layers() const {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < analysis_.layers.size(); ++i) {
      if (!analysis_.layers[i].node_index) out.push_back(i);
    }
    return out;
  }
  [[nodiscard]] std::vector<std::size_t> free_places() const {
    std::vector<std::size_t> out;
    for (std::size_t place = 0; place < taken_.size(); ++place) {
      if (!taken_[place]) out.push_back(place);
    }
    return out;
  }
  void pair(std::size_t layer, std::size_t place) {
    analysis_.layers[layer].node_index = static_cast<std::uint32_t>(place);
    taken_[place] = true;
    ++count_;
  }

  domain::ModelAnalysis& analysis_;
  std::vector<bool> taken_;
  std::size_t count_ = 0;
};

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
                         const std::vector<OperatorName>& names, domain::ModelAnalysis& analysis) {
  analysis.locations = compute_operators(module_operators);
  analysis.operators = static_cast<std::uint32_t>(analysis.locations.size());
  for (domain::Layer& layer : analysis.layers) layer.node_index.reset();
  Pairing pairing(analysis);
  if (names.size() == analysis.locations.size()) {
    pairing.by_name([&](std::size_t place) { return float_name(names[place].node, kNodeEndings); },
                    [](const domain::Layer& layer) { return layer.node_name; });
    pairing.by_name(
        [&](std::size_t place) { return float_name(names[place].result, kResultEndings); },
        [](const domain::Layer& layer) {
          return layer.output_names.empty() ? std::string() : layer.output_names.front();
        });
  }
  pairing.by_order();
  return pairing.count();
}

}  // namespace layerfarm::worker::toolchain
