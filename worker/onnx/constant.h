// Constant: the value of a tensor that is known when the model is read, in one form whatever field
// of the file it came from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/digest.h"
#include "shared/base/result.h"
#include "shared/domain/tensor.h"
#include "worker/onnx/proto.h"

namespace layerfarm::worker::onnx {

/// Most bytes of one tensor here: protobuf's own bound.
inline constexpr std::uint64_t kMaxTensorBytes = (std::uint64_t{1} << 31) - 1;

/// Bits of one element in a raw array, for every type that ONNX has (4-bit types are packed); 0 for
/// strings and unknown numbers.
[[nodiscard]] unsigned element_bits(domain::DType type);
/// Name of a type for people, also for those that the domain knows only by number.
[[nodiscard]] std::string type_text(domain::DType type);
/// "[2,3]".
[[nodiscard]] std::string dims_text(const std::vector<std::int64_t>& dims);
/// Product of dims; nothing when a dim is negative or the product does not fit.
[[nodiscard]] std::optional<std::int64_t> element_count(const std::vector<std::int64_t>& dims);
/// Bytes of the raw array; nothing for types without a size, and when it does not fit.
[[nodiscard]] std::optional<std::uint64_t> raw_bytes(domain::DType type,
                                                     const std::vector<std::int64_t>& dims);

/// Little endian, row major. Copies are cheap: the bytes are shared.
struct Constant {
  domain::TensorType type;
  base::BytesView bytes;  ///< the whole array, or one element when `repeated`
  bool repeated =
      false;  ///< every element is the one in `bytes` (what ConstantOfShape makes, however large)
  std::vector<std::string> strings;    ///< String only, instead of bytes
  std::shared_ptr<const void> keeper;  ///< what holds the bytes: a string, or a mapped file

  [[nodiscard]] std::uint64_t size() const { return raw_bytes(type.dtype, type.dims).value_or(0); }
  [[nodiscard]] bool is_string() const { return type.dtype == domain::DType::String; }
  /// The same value with its bytes written out.
  [[nodiscard]] Constant written_out() const;
  /// Integers and bools as int64; nothing for other types.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers() const;
};

[[nodiscard]] Constant make_constant(domain::TensorType type, base::Bytes bytes);
[[nodiscard]] Constant make_repeated(domain::TensorType type, base::Bytes element);

/// The value of a tensor whose data is inside the message. Large raw data is moved out of `tensor`,
/// not copied.
[[nodiscard]] base::Result<Constant> take_constant(pb::TensorProto& tensor);
[[nodiscard]] base::Result<Constant> read_constant(const pb::TensorProto& tensor);
/// A sparse tensor with its zeros written out.
[[nodiscard]] base::Result<Constant> read_sparse(const pb::SparseTensorProto& tensor);
/// The value of a Constant node, whichever attribute holds it.
[[nodiscard]] base::Result<Constant> read_constant_node(const pb::NodeProto& node);

/// Puts type and data (raw, except strings) into `tensor`; its name is left alone.
void write_constant(const Constant& value, pb::TensorProto& tensor);

/// Digest of the raw array (for strings: of their list).
[[nodiscard]] base::Digest content_digest(const Constant& value);

}  // namespace layerfarm::worker::onnx
