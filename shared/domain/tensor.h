// Tensor types and raw tensors as they travel between programs: little endian, row major, one
// element after the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/domain/dtype.h"

namespace layerfarm::domain {

struct TensorType {
  DType dtype = DType::Undefined;
  std::vector<std::int64_t> dims;  ///< all known, each >= 0
  friend bool operator==(const TensorType&, const TensorType&) = default;
  /// Product of dims (1 for a scalar); saturates at the largest int64 instead of overflowing.
  [[nodiscard]] std::int64_t elements() const;
  /// Size of the raw array in bytes.
  [[nodiscard]] std::uint64_t bytes() const;
  /// "1x3x8x8xf32" as the run tools take it; the element type alone for a scalar.
  [[nodiscard]] std::string mlir() const;
};

struct Tensor {
  TensorType type;
  base::Bytes data;  ///< type.bytes() bytes
};

}  // namespace layerfarm::domain
