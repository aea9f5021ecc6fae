#include "shared/domain/quantized_ops.h"

#include <doctest/doctest.h>

using layerfarm::domain::works_on_quantized;

TEST_CASE("operators on quantized numbers are told from those on indices, shapes and floats") {
  for (const char* op : {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear",
                         "ConvInteger", "MatMulInteger", "QGemm", "QLinearConv", "QLinearWhere"})
    CHECK_MESSAGE(works_on_quantized(op), op);
  for (const char* op : {"Conv", "Gemm", "Gather", "ArgMax", "Cast", "Shape", "QAttention", ""})
    CHECK_MESSAGE(!works_on_quantized(op), op);
}
