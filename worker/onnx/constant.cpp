#include "worker/onnx/constant.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace layerfarm::worker::onnx {
namespace {

using base::Bytes;
using base::ErrorCode;
using base::fail;
using base::Result;
using domain::DType;
using domain::TensorType;

/// A list of numbers that is made of one number and longer than this is no shape and no index list.
constexpr std::uint64_t kMaxWrittenIntegers = std::uint64_t{64} << 20;

DType dtype_of(const pb::TensorProto& tensor) { return static_cast<DType>(tensor.data_type()); }

std::string name_of(const std::string& name) {
  return name.empty() ? std::string("a constant") : "the constant '" + name + "'";
}

/// Values of a typed field as the low bytes of each.
template <typename Field>
Bytes pack_field(const Field& field, std::size_t bytes_each) {
  Bytes out;
  out.reserve(static_cast<std::size_t>(field.size()) * bytes_each);
  for (const auto value : field) out.append(reinterpret_cast<const char*>(&value), bytes_each);
  return out;
}

/// Data from the field that ONNX assigns to the type.
Bytes typed_data(const pb::TensorProto& tensor) {
  const unsigned bits = element_bits(dtype_of(tensor));
  switch (dtype_of(tensor)) {
    case DType::Float32:
    case DType::Complex64:
      return pack_field(tensor.float_data(), 4);
    case DType::Float64:
    case DType::Complex128:
      return pack_field(tensor.double_data(), 8);
    case DType::Int64:
      return pack_field(tensor.int64_data(), 8);
    case DType::UInt32:
      return pack_field(tensor.uint64_data(), 4);
    case DType::UInt64:
      return pack_field(tensor.uint64_data(), 8);
    default:
      // All narrow types share int32_data; types below a byte come packed, a byte in each entry.
      return pack_field(tensor.int32_data(), std::max(bits, 8U) / 8);
  }
}

Result<Constant> build(const pb::TensorProto& tensor, Bytes* movable_raw) {
  Constant out;
  out.type.dtype = dtype_of(tensor);
  out.type.dims = {tensor.dims().begin(), tensor.dims().end()};
  const auto invalid = [&](const std::string& why) {
    return fail(ErrorCode::InvalidInput, name_of(tensor.name()) + " " + why);
  };
  if (tensor.has_segment()) return invalid("is stored in segments, which ONNX has given up");
  const auto count = element_count(out.type.dims);
  if (!count) return invalid("has the impossible shape " + dims_text(out.type.dims));
  if (out.is_string()) {
    if (tensor.string_data_size() != *count) {
      return invalid("holds " + std::to_string(tensor.string_data_size()) + " strings, its shape " +
                     dims_text(out.type.dims) + " needs " + std::to_string(*count));
    }
    out.strings = {tensor.string_data().begin(), tensor.string_data().end()};
    return out;
  }
  const auto size = raw_bytes(out.type.dtype, out.type.dims);
  if (element_bits(out.type.dtype) == 0)
    return invalid("has the unknown element type " + std::to_string(tensor.data_type()));
  if (!size || *size > kMaxTensorBytes)
    return invalid("has the shape " + dims_text(out.type.dims) + ", which is more than 2 GiB");
  Bytes data = !tensor.has_raw_data()   ? typed_data(tensor)
               : movable_raw != nullptr ? std::move(*movable_raw)
                                        : tensor.raw_data();
  if (data.size() != *size) {
    return invalid("holds " + std::to_string(data.size()) + " bytes of data, its shape " +
                   dims_text(out.type.dims) + " and type " + type_text(out.type.dtype) + " need " +
                   std::to_string(*size));
  }
  return make_constant(std::move(out.type), std::move(data));
}

template <typename T>
Bytes raw_of(const T* values, std::size_t count) {
  return Bytes(reinterpret_cast<const char*>(values), count * sizeof(T));
}

template <typename T>
void append_integers(const Constant& value, std::vector<std::int64_t>& out) {
  const std::size_t count = value.bytes.size() / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, value.bytes.data() + i * sizeof(T), sizeof(T));
    out.push_back(static_cast<std::int64_t>(element));
  }
}

}  // namespace

unsigned element_bits(DType type) {
  if (const std::size_t bytes = domain::dtype_size(type); bytes != 0)
    return static_cast<unsigned>(bytes) * 8;
  switch (static_cast<int>(type)) {
    case pb::TensorProto::FLOAT8E4M3FN:
    case pb::TensorProto::FLOAT8E4M3FNUZ:
    case pb::TensorProto::FLOAT8E5M2:
    case pb::TensorProto::FLOAT8E5M2FNUZ:
    case pb::TensorProto::FLOAT8E8M0:
      return 8;
    case pb::TensorProto::UINT4:
    case pb::TensorProto::INT4:
    case pb::TensorProto::FLOAT4E2M1:
      return 4;
    case pb::TensorProto::UINT2:
    case pb::TensorProto::INT2:
      return 2;
    default:
      return 0;
  }
}

std::string type_text(DType type) {
  if (element_bits(type) == 0 || domain::dtype_size(type) != 0) return domain::dtype_name(type);
  std::string name = pb::TensorProto_DataType_Name(static_cast<pb::TensorProto_DataType>(type));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return name;
}

std::string dims_text(const std::vector<std::int64_t>& dims) {
  std::string out = "[";
  for (std::size_t i = 0; i < dims.size(); ++i)
    out += (i == 0 ? "" : ",") + std::to_string(dims[i]);
  return out + "]";
}

std::optional<std::int64_t> element_count(const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) empty = true;
    if (dim != 0 && __builtin_mul_overflow(count, dim, &count)) return std::nullopt;
  }
  return empty ? 0 : count;
}

std::optional<std::uint64_t> raw_bytes(DType type, const std::vector<std::int64_t>& dims) {
  const auto count = element_count(dims);
  const unsigned bits = element_bits(type);
  if (!count || bits == 0) return std::nullopt;
  std::uint64_t all = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(*count), std::uint64_t{bits}, &all))
    return std::nullopt;
  return (all + 7) / 8;
}

Constant Constant::written_out() const {
  if (!repeated) return *this;
  Bytes all;
  const std::uint64_t wanted = size();
  all.reserve(wanted);
  while (all.size() < wanted) all.append(bytes);
  return make_constant(type, std::move(all));
}

std::optional<std::vector<std::int64_t>> Constant::integers() const {
  if (repeated && size() > kMaxWrittenIntegers) return std::nullopt;
  if (repeated) return written_out().integers();
  std::vector<std::int64_t> out;
  switch (type.dtype) {
    case DType::Int64:
      append_integers<std::int64_t>(*this, out);
      break;
    case DType::Int32:
      append_integers<std::int32_t>(*this, out);
      break;
    case DType::Int16:
      append_integers<std::int16_t>(*this, out);
      break;
    case DType::Int8:
      append_integers<std::int8_t>(*this, out);
      break;
    case DType::UInt64:
      append_integers<std::uint64_t>(*this, out);
      break;
    case DType::UInt32:
      append_integers<std::uint32_t>(*this, out);
      break;
    case DType::UInt16:
      append_integers<std::uint16_t>(*this, out);
      break;
    case DType::UInt8:
    case DType::Bool:
      append_integers<std::uint8_t>(*this, out);
      break;
    default:
      return std::nullopt;
  }
  return out;
}

Constant make_constant(TensorType type, Bytes bytes) {
  Constant out;
  out.type = std::move(type);
  auto held = std::make_shared<const Bytes>(std::move(bytes));
  out.bytes = *held;
  out.keeper = std::move(held);
  return out;
}

Constant make_repeated(TensorType type, Bytes element) {
  Constant out = make_constant(std::move(type), std::move(element));
  out.repeated = true;
  return out;
}

Result<Constant> take_constant(pb::TensorProto& tensor) {
  return build(tensor, tensor.has_raw_data() ? tensor.mutable_raw_data() : nullptr);
}

Result<Constant> read_constant(const pb::TensorProto& tensor) { return build(tensor, nullptr); }

Result<Constant> read_sparse(const pb::SparseTensorProto& sparse) {
  auto values = read_constant(sparse.values());
  if (!values) return values;
  auto places = read_constant(sparse.indices());
  if (!places) return places;
  const auto index = places->integers();
  const std::string name = name_of(sparse.values().name());
  Constant out;
  out.type = {values->type.dtype, {sparse.dims().begin(), sparse.dims().end()}};
  const auto count = element_count(out.type.dims);
  const auto size = raw_bytes(out.type.dtype, out.type.dims);
  const std::size_t each = element_bits(out.type.dtype) / 8;
  const std::size_t rank = out.type.dims.size();
  const auto number = static_cast<std::size_t>(values->type.elements());
  const bool linear = places->type.dims.size() == 1;
  if (!count || !size || *size > kMaxTensorBytes || each == 0 || !index ||
      values->type.dims.size() != 1 || index->size() != number * (linear ? 1 : rank)) {
    return fail(ErrorCode::InvalidInput,
                name + " is a sparse tensor whose values, indices and shape do not fit together");
  }
  Bytes data(*size, '\0');
  for (std::size_t i = 0; i < number; ++i) {
    std::int64_t place = 0;
    if (linear) {
      place = (*index)[i];
    } else {
      for (std::size_t axis = 0; axis < rank; ++axis) {
        const std::int64_t at = (*index)[i * rank + axis];
        if (at < 0 || at >= out.type.dims[axis]) place = -1;
        if (place >= 0) place = place * out.type.dims[axis] + at;
      }
    }
    if (place < 0 || place >= *count)
      return fail(ErrorCode::InvalidInput,
                  name + " is a sparse tensor with an index outside its shape");
    data.replace(static_cast<std::size_t>(place) * each, each,
                 values->bytes.substr(i * each, each));
  }
  return make_constant(std::move(out.type), std::move(data));
}

Result<Constant> read_constant_node(const pb::NodeProto& node) {
  for (const pb::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == "value") return read_constant(attribute.t());
    if (attribute.name() == "sparse_value") return read_sparse(attribute.sparse_tensor());
    if (attribute.name() == "value_float") {
      const float value = attribute.f();
      return make_constant({DType::Float32, {}}, raw_of(&value, 1));
    }
    if (attribute.name() == "value_int") {
      const std::int64_t value = attribute.i();
      return make_constant({DType::Int64, {}}, raw_of(&value, 1));
    }
    if (attribute.name() == "value_floats") {
      return make_constant(
          {DType::Float32, {attribute.floats_size()}},
          raw_of(attribute.floats().data(), static_cast<std::size_t>(attribute.floats_size())));
    }
    if (attribute.name() == "value_ints") {
      return make_constant(
          {DType::Int64, {attribute.ints_size()}},
          raw_of(attribute.ints().data(), static_cast<std::size_t>(attribute.ints_size())));
    }
    if (attribute.name() == "value_string" || attribute.name() == "value_strings") {
      Constant out;
      out.type.dtype = DType::String;
      if (attribute.name() == "value_string") {
        out.strings = {attribute.s()};
      } else {
        out.strings = {attribute.strings().begin(), attribute.strings().end()};
        out.type.dims = {attribute.strings_size()};
      }
      return out;
    }
  }
  return fail(ErrorCode::InvalidInput, "the Constant node '" +
                                           (node.output_size() > 0 ? node.output(0) : node.name()) +
                                           "' has no value");
}

void write_constant(const Constant& value, pb::TensorProto& tensor) {
  tensor.set_data_type(static_cast<std::int32_t>(value.type.dtype));
  tensor.mutable_dims()->Assign(value.type.dims.begin(), value.type.dims.end());
  if (value.is_string()) {
    for (const std::string& text : value.strings) tensor.add_string_data(text);
    return;
  }
  const Constant all = value.written_out();
  tensor.set_raw_data(all.bytes.data(), all.bytes.size());
}

base::Digest content_digest(const Constant& value) {
  if (!value.is_string()) return base::digest_of(value.written_out().bytes);
  base::Hasher hasher("layerfarm.strings.1");
  for (const std::string& text : value.strings) hasher.add(text);
  return hasher.finish();
}

}  // namespace layerfarm::worker::onnx
