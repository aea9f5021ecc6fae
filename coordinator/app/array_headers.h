// What a file of arrays (.npy, .npz, TensorProto) says about them: names, element types, shapes.
// Files come from users, so any byte is possible; nothing but headers is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "shared/domain/tensor.h"

namespace layerfarm::coordinator::app {

struct ArrayHeader {
  std::string name;
  /// "float64", or as the file has it where ONNX has no such type (">f4"); empty: only a worker can
  /// tell (an array that is damaged or compressed by an unusual method, a type without a fixed
  /// size).
  std::string dtype;
  domain::DType type = domain::DType::Undefined;  ///< that dtype, where ONNX has it
  /// Bytes of a nameless element (`|V2`), as NumPy saves types that it does not know (bfloat16).
  std::size_t nameless_bytes = 0;
  std::vector<std::int64_t> dims;

  [[nodiscard]] bool known() const { return !dtype.empty(); }
  [[nodiscard]] bool has_type(domain::DType wanted) const;
  [[nodiscard]] bool fits(const domain::TensorType& wanted) const;
};

/// The arrays of a file: an archive's members, the name that a tensor's file gives it, else the
/// file's stem. Nothing when names cannot be read (damaged, an archive of more than 4 GiB).
[[nodiscard]] std::optional<std::vector<ArrayHeader>> arrays_in(const std::filesystem::path& path);

}  // namespace layerfarm::coordinator::app
