#include "shared/domain/quantized_ops.h"

#include <algorithm>
#include <array>

namespace layerfarm::domain {

bool works_on_quantized(std::string_view op_type) {
  constexpr std::array<std::string_view, 6> kOthers = {"QuantizeLinear",        "DequantizeLinear",
                                                       "DynamicQuantizeLinear", "ConvInteger",
                                                       "MatMulInteger",         "QGemm"};
  return op_type.starts_with("QLinear") ||
         std::find(kOthers.begin(), kOthers.end(), op_type) != kOthers.end();
}

}  // namespace layerfarm::domain
