#include "shared/domain/dtype.h"

namespace layerfarm::domain {
namespace {

struct Row {
  DType type;
  std::string_view name;
  std::string_view mlir;
  std::size_t bytes;
  enum Kind { Float, Integer, Other } kind;
};

constexpr Row kRows[] = {
    {DType::Float32, "float32", "f32", 4, Row::Float},
    {DType::UInt8, "uint8", "ui8", 1, Row::Integer},
    {DType::Int8, "int8", "si8", 1, Row::Integer},
    {DType::UInt16, "uint16", "ui16", 2, Row::Integer},
    {DType::Int16, "int16", "si16", 2, Row::Integer},
    {DType::Int32, "int32", "si32", 4, Row::Integer},
    {DType::Int64, "int64", "si64", 8, Row::Integer},
    {DType::String, "string", "", 0, Row::Other},
    {DType::Bool, "bool", "i1", 1, Row::Other},
    {DType::Float16, "float16", "f16", 2, Row::Float},
    {DType::Float64, "float64", "f64", 8, Row::Float},
    {DType::UInt32, "uint32", "ui32", 4, Row::Integer},
    {DType::UInt64, "uint64", "ui64", 8, Row::Integer},
    {DType::Complex64, "complex64", "", 8, Row::Other},
    {DType::Complex128, "complex128", "", 16, Row::Other},
    {DType::BFloat16, "bfloat16", "bf16", 2, Row::Float},
};

const Row* find(DType type) {
  for (const Row& row : kRows) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

}  // namespace

std::string dtype_name(DType type) {
  const Row* row = find(type);
  return row != nullptr ? std::string(row->name) : "type_" + std::to_string(static_cast<int>(type));
}
std::string dtype_mlir(DType type) {
  const Row* row = find(type);
  return row != nullptr ? std::string(row->mlir) : std::string();
}
std::size_t dtype_size(DType type) {
  const Row* row = find(type);
  return row != nullptr ? row->bytes : 0;
}
bool is_floating(DType type) {
  const Row* row = find(type);
  return row != nullptr && row->kind == Row::Float;
}
bool is_integer(DType type) {
  const Row* row = find(type);
  return row != nullptr && row->kind == Row::Integer;
}

}  // namespace layerfarm::domain
