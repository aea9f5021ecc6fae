// AnalyzeRequest: what the analyze job is asked: which model, how it is changed before it is split,
// and into what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/base/digest.h"

namespace layerfarm::domain {

/// Type conversions of the whole model, bf16 first (spec section 19).
struct Conversion {
  bool bf16 = false;
  bool int32 = false;
  friend bool operator==(const Conversion&, const Conversion&) = default;
};

enum class QuantFormat : std::uint8_t { Qdq = 1, QOperator = 2, Hybrid = 3 };
[[nodiscard]] std::string_view quant_format_name(
    QuantFormat format);  ///< "qdq", "qoperator", "hybrid"
[[nodiscard]] std::optional<QuantFormat> quant_format_from_name(std::string_view name);

/// Static quantization to int8 (spec section 18).
struct Quantization {
  QuantFormat format = QuantFormat::Qdq;
  bool per_channel = false;
  bool full_integer = false;
  int samples = 20;              ///< random calibration samples
  base::Digest calibration;      ///< digest over a folder of the user's samples; zero = random ones
  std::string calibration_path;  ///< that folder, absolute; in no key
  friend bool operator==(const Quantization&, const Quantization&) = default;
};

/// Nodes from the one that makes a value to the one that makes another, all between in graph order
/// (spec section 15).
struct SubgraphRange {
  std::string from;
  std::string to;
  friend bool operator==(const SubgraphRange&, const SubgraphRange&) = default;
};

/// What one layer is: a node, or a node with the DequantizeLinear of its inputs and the
/// QuantizeLinear of its results.
enum class LayerUnit : std::uint8_t { Node = 1, Qdq = 2 };
[[nodiscard]] std::string_view layer_unit_name(LayerUnit unit);  ///< "node", "qdq"
[[nodiscard]] std::optional<LayerUnit> layer_unit_from_name(std::string_view name);

struct AnalyzeRequest {
  std::string model_path;  ///< absolute
  std::vector<std::pair<std::string, std::int64_t>>
      dims;  ///< `--dim name=value`; every other dynamic dim is 1
  Conversion convert;
  std::optional<SubgraphRange> subgraph;
  std::optional<Quantization> quantize;
  LayerUnit unit = LayerUnit::Node;
  /// Not empty: for each non-Constant node (with `quantize`, but Q/DQ) the executor it shall run
  /// on; the layers are then the segments between which a run of the whole model switches.
  std::vector<std::string> assignment;
  friend bool operator==(const AnalyzeRequest&, const AnalyzeRequest&) = default;
};

}  // namespace layerfarm::domain
