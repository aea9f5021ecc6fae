// Element types, numbered as in ONNX's TensorProto.DataType (onnx.proto), so that no table is
// needed between the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace layerfarm::domain {

enum class DType : std::int32_t {
  Undefined = 0,
  Float32 = 1,
  UInt8 = 2,
  Int8 = 3,
  UInt16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Float64 = 11,
  UInt32 = 12,
  UInt64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  BFloat16 = 16,
  // 17 and up (float8, int4, ...) are carried as their number; nothing here computes with them.
};

/// "float32", "bfloat16", "int8" ...; `type_<n>` for what has no name (spec section 21).
[[nodiscard]] std::string dtype_name(DType type);
/// MLIR element type as iree-run-module and torq-run-module take it: "f32", "bf16", "i8", "ui8",
/// "i1"...; empty when there is none.
[[nodiscard]] std::string dtype_mlir(DType type);
/// Bytes of one element in a raw array; 0 for types that have no fixed size here.
[[nodiscard]] std::size_t dtype_size(DType type);
[[nodiscard]] bool is_floating(DType type);
[[nodiscard]] bool is_integer(DType type);

}  // namespace layerfarm::domain
