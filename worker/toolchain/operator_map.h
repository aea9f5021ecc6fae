// Which operator of a quantized model's module is which layer of the float model (spec section 20).
// Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/domain/layer.h"

namespace layerfarm::worker::toolchain {

/// The float operator that a quantized one stands for: `QLinearConv` -> `Conv`, `QGemm` -> `Gemm`;
/// any other name as it is.
[[nodiscard]] std::string float_op_type(std::string_view op_type);

/// What computes, under float names: no conversions to and from integers.
[[nodiscard]] std::vector<domain::SourceLocation> compute_operators(
    const std::vector<domain::SourceLocation>& operators);

/// For each of `layers` its place in `operators`, by a longest common subsequence of the op types;
/// none for a layer that has no operator there (fused into its neighbour). Places grow, so no two
/// layers share one. Where several subsequences are longest, later layers and operators are paired
/// first, and of both sides the layer is left out first.
[[nodiscard]] std::vector<std::optional<std::size_t>> align(
    const std::vector<std::string>& layers, const std::vector<std::string>& operators);

/// What an operator of a quantized model is called; both may be empty.
struct OperatorName {
  std::string node;
  std::string result;  ///< its first
};

/// Gives the layers their places among the operators of the quantized model's module, and the
/// analysis these operators. Returns how many layers have one.
///
/// `names`: those of the computing operators, in order; others than the module has say nothing. The
/// quantizer keeps node names and mostly those of results, but sorts the nodes anew, and then an
/// alignment by op types takes one branch for another. So layers are found by name, and by `align`
/// what is left.
std::size_t place_layers(const std::vector<domain::SourceLocation>& module_operators,
                         const std::vector<OperatorName>& names, domain::ModelAnalysis& analysis);

}  // namespace layerfarm::worker::toolchain
