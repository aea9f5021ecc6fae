#include "shared/domain/tensor.h"

#include <limits>

namespace layerfarm::domain {

std::int64_t TensorType::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t d : dims) {
    if (__builtin_mul_overflow(n, d, &n)) return std::numeric_limits<std::int64_t>::max();
  }
  return n;
}

std::uint64_t TensorType::bytes() const {
  std::uint64_t n = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(elements()), dtype_size(dtype), &n)) {
    return std::numeric_limits<std::uint64_t>::max();
  }
  return n;
}

std::string TensorType::mlir() const {
  std::string out;
  for (const std::int64_t d : dims) out += std::to_string(d) + "x";
  return out + dtype_mlir(dtype);
}

}  // namespace layerfarm::domain
