#include "shared/domain/analyze_request.h"

#include <array>

namespace layerfarm::domain {
namespace {

template <typename Value, std::size_t n>
using Names = std::array<std::pair<Value, std::string_view>, n>;

constexpr Names<QuantFormat, 3> kFormats = {{{QuantFormat::Qdq, "qdq"},
                                             {QuantFormat::QOperator, "qoperator"},
                                             {QuantFormat::Hybrid, "hybrid"}}};
constexpr Names<LayerUnit, 2> kUnits = {{{LayerUnit::Node, "node"}, {LayerUnit::Qdq, "qdq"}}};

template <typename List, typename Value>
std::string_view name_in(const List& list, Value value) {
  for (const auto& [known, name] : list) {
    if (known == value) return name;
  }
  return "unknown";
}

template <typename Value, std::size_t n>
std::optional<Value> value_in(const Names<Value, n>& list, std::string_view text) {
  for (const auto& [value, name] : list) {
    if (name == text) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view quant_format_name(QuantFormat format) { return name_in(kFormats, format); }
std::optional<QuantFormat> quant_format_from_name(std::string_view name) {
  return value_in(kFormats, name);
}
std::string_view layer_unit_name(LayerUnit unit) { return name_in(kUnits, unit); }
std::optional<LayerUnit> layer_unit_from_name(std::string_view name) {
  return value_in(kUnits, name);
}

}  // namespace layerfarm::domain
