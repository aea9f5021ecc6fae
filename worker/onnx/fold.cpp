#include "worker/onnx/fold.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

namespace layerfarm::worker::onnx {
namespace {

using base::Bytes;
using domain::DType;
using domain::TensorType;
using Ints = std::vector<std::int64_t>;

/// Larger results stay inputs: they would cost more to carry than to compute.
constexpr std::uint64_t kMaxFolded = std::uint64_t{512} << 20;
constexpr std::uint64_t kMaxFoldedInAll = std::uint64_t{1} << 30;

std::size_t element_bytes(const Constant& value) {
  return value.is_string() ? 0 : element_bits(value.type.dtype) / 8;
}

std::optional<std::uint64_t> allowed_size(const TensorType& type) {
  const auto size = raw_bytes(type.dtype, type.dims);
  return size && *size <= kMaxFolded ? size : std::nullopt;
}

Ints strides_of(const Ints& dims) {
  Ints strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

/// out[i0,i1,..] = source[base + i0*strides[0] + ...]; strides count elements.
Bytes strided_copy(const Constant& source, const Ints& out_dims, std::int64_t base,
                   const Ints& strides) {
  const std::size_t each = element_bytes(source);
  const auto count = static_cast<std::size_t>(element_count(out_dims).value_or(0));
  Bytes out(count * each, '\0');
  Ints index(out_dims.size(), 0);
  std::int64_t from = base;
  for (std::size_t n = 0; n < count; ++n) {
    std::memcpy(out.data() + n * each, source.bytes.data() + static_cast<std::size_t>(from) * each,
                each);
    for (std::size_t axis = out_dims.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < out_dims[axis]) break;
      from -= strides[axis] * out_dims[axis];
      index[axis] = 0;
    }
  }
  return out;
}

std::optional<Ints> broadcast_dims(const Ints& a, const Ints& b) {
  Ints out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t left = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t right = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (left != right && left != 1 && right != 1) return std::nullopt;
    out[out.size() - 1 - i] = left == 1 ? right : left;
  }
  return out;
}

Bytes broadcast(const Constant& value, const Ints& out_dims) {
  const Ints own = strides_of(value.type.dims);
  Ints strides(out_dims.size(), 0);
  const std::size_t shift = out_dims.size() - value.type.dims.size();
  for (std::size_t i = 0; i < value.type.dims.size(); ++i)
    strides[i + shift] = value.type.dims[i] == 1 ? 0 : own[i];
  return strided_copy(value, out_dims, 0, strides);
}

std::optional<std::size_t> axis_of(std::int64_t axis, std::size_t rank) {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

/// Same bytes under another shape.
std::optional<Constant> with_dims(const Constant& value, Ints dims) {
  const auto count = element_count(dims);
  if (!count || *count != element_count(value.type.dims)) return std::nullopt;
  Constant out = value;
  out.type.dims = std::move(dims);
  return out;
}

/// A numeric list from an input, else from an attribute of the same meaning (older opsets).
std::optional<Ints> list_of(const pb::NodeProto& node, const std::vector<const Constant*>& inputs,
                            std::size_t place, const char* attribute) {
  if (place < inputs.size() && inputs[place] != nullptr) return inputs[place]->integers();
  if (find_attribute(node, attribute) != nullptr) return ints_attribute(node, attribute);
  return std::nullopt;
}

std::optional<Constant> slice(const pb::NodeProto& node,
                              const std::vector<const Constant*>& inputs) {
  const Constant& data = *inputs[0];
  const auto starts = list_of(node, inputs, 1, "starts");
  const auto ends = list_of(node, inputs, 2, "ends");
  if (!starts || !ends || starts->size() != ends->size()) return std::nullopt;
  Ints axes = list_of(node, inputs, 3, "axes").value_or(Ints());
  const Ints steps = list_of(node, inputs, 4, "steps").value_or(Ints(starts->size(), 1));
  if (axes.empty()) {
    for (std::size_t i = 0; i < starts->size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (axes.size() != starts->size() || steps.size() != starts->size()) return std::nullopt;
  const Ints own = strides_of(data.type.dims);
  Ints dims = data.type.dims;
  Ints strides = own;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = axis_of(axes[i], dims.size());
    const std::int64_t step = steps[i];
    if (!axis || step == 0 || step == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
    const std::int64_t size = data.type.dims[*axis];
    const std::int64_t low = step > 0 ? 0 : -1;
    const std::int64_t high = step > 0 ? size : size - 1;
    const auto place = [&](std::int64_t at) {
      return std::clamp(at < 0 ? at + size : at, low, high);
    };
    const std::int64_t start = std::max<std::int64_t>(place((*starts)[i]), 0);
    // ONNX Runtime, which makes the references, takes the greatest end backwards as "to the front";
    // by ONNX's text nothing would be left.
    const bool greatest = (*ends)[i] == std::numeric_limits<std::int64_t>::max() ||
                          (*ends)[i] == std::numeric_limits<std::int32_t>::max();
    const std::int64_t end = greatest && step < 0 ? -1 : place((*ends)[i]);
    const std::int64_t distance = step > 0 ? end - start : start - end;
    const std::int64_t stride = step > 0 ? step : -step;
    dims[*axis] = distance <= 0 || size == 0 ? 0 : (distance - 1) / stride + 1;
    strides[*axis] = dims[*axis] > 1 ? own[*axis] * step : 0;
    first += start * own[*axis];
  }
  const TensorType type{data.type.dtype, dims};
  if (data.repeated) return make_repeated(type, Bytes(data.bytes));
  if (!allowed_size(type)) return std::nullopt;
  return make_constant(type, strided_copy(data, dims, first, strides));
}

std::optional<Constant> concat(const pb::NodeProto& node,
                               const std::vector<const Constant*>& inputs) {
  std::vector<Constant> parts;
  for (const Constant* input : inputs) {
    if (input == nullptr || !allowed_size(input->type)) return std::nullopt;
    parts.push_back(input->written_out());
  }
  if (parts.empty()) return std::nullopt;
  const auto axis = axis_of(int_attribute(node, "axis", 0), parts[0].type.dims.size());
  if (!axis) return std::nullopt;
  TensorType type = parts[0].type;
  type.dims[*axis] = 0;
  for (const Constant& part : parts) {
    Ints rest = part.type.dims;
    if (part.type.dtype != type.dtype || rest.size() != type.dims.size()) return std::nullopt;
    const std::int64_t added = std::exchange(rest[*axis], type.dims[*axis]);
    if (rest != type.dims) return std::nullopt;
    type.dims[*axis] += added;
  }
  const auto size = allowed_size(type);
  if (!size) return std::nullopt;
  std::size_t rows = 1;
  for (std::size_t i = 0; i < *axis; ++i) rows *= static_cast<std::size_t>(type.dims[i]);
  Bytes out;
  out.reserve(*size);
  for (std::size_t row = 0; row < rows; ++row) {
    for (const Constant& part : parts) {
      const std::size_t block = part.bytes.size() / rows;
      out.append(part.bytes.substr(row * block, block));
    }
  }
  return make_constant(std::move(type), std::move(out));
}

std::optional<Constant> gather(const pb::NodeProto& node,
                               const std::vector<const Constant*>& inputs) {
  const Constant& data = *inputs[0];
  if (inputs.size() < 2 || inputs[1] == nullptr) return std::nullopt;
  const auto indices = inputs[1]->integers();
  const auto axis = axis_of(int_attribute(node, "axis", 0), data.type.dims.size());
  if (!indices || !axis) return std::nullopt;
  const std::int64_t size = data.type.dims[*axis];
  TensorType type{data.type.dtype, {}};
  std::size_t rows = 1;
  std::size_t block = element_bytes(data);
  for (std::size_t i = 0; i < data.type.dims.size(); ++i) {
    if (i == *axis) {
      type.dims.insert(type.dims.end(), inputs[1]->type.dims.begin(), inputs[1]->type.dims.end());
      continue;
    }
    type.dims.push_back(data.type.dims[i]);
    (i < *axis ? rows : block) *= static_cast<std::size_t>(data.type.dims[i]);
  }
  const auto wanted = allowed_size(type);
  if (!wanted) return std::nullopt;
  for (const std::int64_t index : *indices) {
    if (index < -size || index >= size) return std::nullopt;
  }
  if (data.repeated) return make_repeated(std::move(type), Bytes(data.bytes));
  Bytes out;
  out.reserve(*wanted);
  for (std::size_t row = 0; row < rows; ++row) {
    for (const std::int64_t index : *indices) {
      const auto at = static_cast<std::size_t>(index < 0 ? index + size : index);
      out.append(data.bytes.substr((row * static_cast<std::size_t>(size) + at) * block, block));
    }
  }
  return make_constant(std::move(type), std::move(out));
}

std::optional<Constant> squeeze(const pb::NodeProto& node,
                                const std::vector<const Constant*>& inputs) {
  const Ints& dims = inputs[0]->type.dims;
  const auto axes = list_of(node, inputs, 1, "axes");
  std::vector<bool> drop(dims.size(), false);
  for (std::size_t i = 0; i < dims.size(); ++i) drop[i] = !axes && dims[i] == 1;
  for (const std::int64_t wanted : axes.value_or(Ints())) {
    const auto axis = axis_of(wanted, dims.size());
    if (!axis || dims[*axis] != 1) return std::nullopt;
    drop[*axis] = true;
  }
  Ints out;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!drop[i]) out.push_back(dims[i]);
  }
  return with_dims(*inputs[0], std::move(out));
}

std::optional<Constant> unsqueeze(const pb::NodeProto& node,
                                  const std::vector<const Constant*>& inputs) {
  const Ints& dims = inputs[0]->type.dims;
  const auto axes = list_of(node, inputs, 1, "axes");
  if (!axes) return std::nullopt;
  Ints out(dims.size() + axes->size(), -1);
  for (const std::int64_t wanted : *axes) {
    const auto axis = axis_of(wanted, out.size());
    if (!axis || out[*axis] == 1) return std::nullopt;
    out[*axis] = 1;
  }
  std::size_t next = 0;
  for (std::int64_t& dim : out) {
    if (dim == -1) dim = dims[next++];
  }
  return with_dims(*inputs[0], std::move(out));
}

std::optional<Constant> reshape(const pb::NodeProto& node,
                                const std::vector<const Constant*>& inputs) {
  const auto shape = list_of(node, inputs, 1, "shape");
  const auto count = element_count(inputs[0]->type.dims);
  if (!shape || !count) return std::nullopt;
  const bool zero_is_zero = int_attribute(node, "allowzero", 0) != 0;
  Ints dims = *shape;
  std::optional<std::size_t> open;
  std::int64_t known = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !zero_is_zero) {
      if (i >= inputs[0]->type.dims.size()) return std::nullopt;
      dims[i] = inputs[0]->type.dims[i];
    }
    if (dims[i] == -1) {
      if (open) return std::nullopt;
      open = i;
    } else if (dims[i] < 0 || __builtin_mul_overflow(known, dims[i], &known)) {
      return std::nullopt;
    }
  }
  if (open) {
    if (known == 0 || *count % known != 0) return std::nullopt;
    dims[*open] = *count / known;
  }
  return with_dims(*inputs[0], std::move(dims));
}

std::optional<Constant> transpose(const pb::NodeProto& node,
                                  const std::vector<const Constant*>& inputs) {
  const Constant& data = *inputs[0];
  const std::size_t rank = data.type.dims.size();
  Ints perm = ints_attribute(node, "perm");
  if (perm.empty()) {
    for (std::size_t i = rank; i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
  }
  const Ints own = strides_of(data.type.dims);
  std::vector<bool> used(rank, false);
  Ints dims;
  Ints strides;
  for (const std::int64_t wanted : perm) {
    const auto axis = axis_of(wanted, rank);
    if (!axis || used[*axis]) return std::nullopt;
    used[*axis] = true;
    dims.push_back(data.type.dims[*axis]);
    strides.push_back(own[*axis]);
  }
  const TensorType type{data.type.dtype, dims};
  if (dims.size() != rank) return std::nullopt;
  if (data.repeated) return make_repeated(type, Bytes(data.bytes));
  if (!allowed_size(type)) return std::nullopt;
  return make_constant(type, strided_copy(data, dims, 0, strides));
}

std::optional<Constant> constant_of_shape(const pb::NodeProto& node,
                                          const std::vector<const Constant*>& inputs) {
  const auto dims = inputs[0]->integers();
  if (!dims) return std::nullopt;
  Constant element = make_constant({DType::Float32, {1}}, Bytes(4, '\0'));
  if (const pb::AttributeProto* value = find_attribute(node, "value"); value != nullptr) {
    auto read = read_constant(value->t());
    if (!read || read->type.elements() != 1 || element_bytes(*read) == 0) return std::nullopt;
    element = *read;
  }
  TensorType type{element.type.dtype, *dims};
  const auto size = raw_bytes(type.dtype, type.dims);
  if (!size || *size > kMaxTensorBytes) return std::nullopt;
  return make_repeated(std::move(type), Bytes(element.bytes));
}

float half_to_float(std::uint16_t half) {
  const int exponent = (half >> 10) & 0x1F;
  const int mantissa = half & 0x3FF;
  float value = 0;
  if (exponent == 31) {
    value = mantissa != 0 ? std::numeric_limits<float>::quiet_NaN()
                          : std::numeric_limits<float>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    value = std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  }
  return (half & 0x8000) != 0 ? -value : value;
}

std::uint16_t to_bfloat16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >>
                                    16);  // to nearest, ties to even
}

std::optional<std::vector<double>> reals_of(const Constant& value) {
  std::vector<double> out;
  const auto read_all = [&](auto sample, auto convert) {
    for (std::size_t at = 0; at + sizeof sample <= value.bytes.size(); at += sizeof sample) {
      std::memcpy(&sample, value.bytes.data() + at, sizeof sample);
      out.push_back(convert(sample));
    }
  };
  switch (value.type.dtype) {
    case DType::Float32:
      read_all(float{}, [](float x) { return static_cast<double>(x); });
      break;
    case DType::Float64:
      read_all(double{}, [](double x) { return x; });
      break;
    case DType::Float16:
      read_all(std::uint16_t{},
               [](std::uint16_t x) { return static_cast<double>(half_to_float(x)); });
      break;
    case DType::BFloat16:
      read_all(std::uint16_t{}, [](std::uint16_t x) {
        const std::uint32_t bits = std::uint32_t{x} << 16;
        float wide = 0;
        std::memcpy(&wide, &bits, sizeof wide);
        return static_cast<double>(wide);
      });
      break;
    default:
      return std::nullopt;
  }
  return out;
}

template <typename T>
void append(Bytes& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::optional<Constant> cast(const pb::NodeProto& node,
                             const std::vector<const Constant*>& inputs) {
  const Constant& data = *inputs[0];
  const auto to = static_cast<DType>(int_attribute(node, "to", 0));
  if (to == data.type.dtype) return data;
  if (to != DType::Int64 && to != DType::Int32 && to != DType::Float32 && to != DType::BFloat16)
    return std::nullopt;
  Bytes out;
  const bool to_integer = to == DType::Int64 || to == DType::Int32;
  if (auto integers = data.repeated ? std::nullopt : data.integers();
      integers && data.type.dtype != DType::UInt64) {
    for (const std::int64_t value : *integers) {
      if (to == DType::Int64) append(out, value);
      if (to == DType::Int32) append(out, static_cast<std::int32_t>(value));
      if (to == DType::Float32) append(out, static_cast<float>(value));
      if (to == DType::BFloat16) append(out, to_bfloat16(static_cast<float>(value)));
    }
  } else if (auto reals = reals_of(data); reals) {
    const double limit = to == DType::Int32 ? 2147483648.0 : 9223372036854775808.0;
    for (const double value : *reals) {
      // What an integer gets from a value outside its range is not defined.
      if (to_integer && !(value > -limit - 1 && value < limit)) return std::nullopt;
      if (to == DType::Int64) append(out, static_cast<std::int64_t>(value));
      if (to == DType::Int32) append(out, static_cast<std::int32_t>(value));
      if (to == DType::Float32) append(out, static_cast<float>(value));
      if (to == DType::BFloat16) append(out, to_bfloat16(static_cast<float>(value)));
    }
  } else {
    return std::nullopt;
  }
  if (data.repeated) return make_repeated({to, data.type.dims}, std::move(out));
  return make_constant({to, data.type.dims}, std::move(out));
}

template <typename T, typename Out, typename Op>
Bytes combine(const Bytes& left, const Bytes& right, Op op) {
  Bytes out;
  out.reserve(left.size() / sizeof(T) * sizeof(Out));
  for (std::size_t at = 0; at + sizeof(T) <= left.size(); at += sizeof(T)) {
    T a;
    T b;
    std::memcpy(&a, left.data() + at, sizeof(T));
    std::memcpy(&b, right.data() + at, sizeof(T));
    append(out, static_cast<Out>(op(a, b)));
  }
  return out;
}

/// Two inputs of one type, broadcast to each other.
struct Pair {
  Ints dims;
  Bytes left;
  Bytes right;
};

std::optional<Pair> broadcast_pair(const std::vector<const Constant*>& inputs) {
  if (inputs.size() != 2 || inputs[1] == nullptr || inputs[0]->type.dtype != inputs[1]->type.dtype)
    return std::nullopt;
  auto dims = broadcast_dims(inputs[0]->type.dims, inputs[1]->type.dims);
  if (!dims || !allowed_size({inputs[0]->type.dtype, *dims}) || !allowed_size(inputs[0]->type) ||
      !allowed_size(inputs[1]->type))
    return std::nullopt;
  return Pair{*dims, broadcast(inputs[0]->written_out(), *dims),
              broadcast(inputs[1]->written_out(), *dims)};
}

/// Unsigned for Add, Sub and Mul, so that an overflow wraps as it does in every engine. Nothing
/// when an engine would stop the process.
template <typename Signed>
std::optional<Bytes> integer_arithmetic(const std::string& op, const Pair& pair) {
  using Unsigned = std::make_unsigned_t<Signed>;
  const auto wrapped = [&](auto work) {
    return combine<Unsigned, Unsigned>(pair.left, pair.right, work);
  };
  if (op == "Add") return wrapped([](Unsigned a, Unsigned b) { return a + b; });
  if (op == "Sub") return wrapped([](Unsigned a, Unsigned b) { return a - b; });
  if (op == "Mul") return wrapped([](Unsigned a, Unsigned b) { return a * b; });
  if (op == "Max" || op == "Min") {
    const bool greater = op == "Max";
    return combine<Signed, Signed>(pair.left, pair.right, [greater](Signed a, Signed b) {
      return greater ? std::max(a, b) : std::min(a, b);
    });
  }
  bool defined = true;
  Bytes quotients = combine<Signed, Signed>(pair.left, pair.right, [&](Signed a, Signed b) {
    const bool fine = b != 0 && !(a == std::numeric_limits<Signed>::min() && b == -1);
    defined = defined && fine;
    return fine ? a / b : Signed{0};
  });
  if (!defined) return std::nullopt;
  return quotients;
}

/// Shapes are integers; of real numbers only products are wanted.
std::optional<Constant> arithmetic(const std::string& op,
                                   const std::vector<const Constant*>& inputs) {
  const auto pair = broadcast_pair(inputs);
  if (!pair) return std::nullopt;
  const TensorType type{inputs[0]->type.dtype, pair->dims};
  const auto times = [](auto a, auto b) { return a * b; };
  std::optional<Bytes> out;
  if (type.dtype == DType::Int64) out = integer_arithmetic<std::int64_t>(op, *pair);
  if (type.dtype == DType::Int32) out = integer_arithmetic<std::int32_t>(op, *pair);
  if (type.dtype == DType::Float32 && op == "Mul")
    out = combine<float, float>(pair->left, pair->right, times);
  if (type.dtype == DType::Float64 && op == "Mul")
    out = combine<double, double>(pair->left, pair->right, times);
  if (!out) return std::nullopt;
  return make_constant(type, std::move(*out));
}

/// Max and Min of any number of integers.
std::optional<Constant> extreme(const std::string& op, const std::vector<const Constant*>& inputs) {
  const DType dtype = inputs[0]->type.dtype;
  if ((dtype != DType::Int64 && dtype != DType::Int32) || !allowed_size(inputs[0]->type))
    return std::nullopt;
  std::optional<Constant> out = inputs[0]->written_out();
  for (std::size_t i = 1; i < inputs.size() && out; ++i) {
    const Constant so_far = std::move(*out);
    out = arithmetic(op, {&so_far, inputs[i]});
  }
  return out;
}

/// Of integers and bools only: what it is done to otherwise is data, not a shape or a mask.
std::optional<Constant> expand(const std::vector<const Constant*>& inputs) {
  const Constant& data = *inputs[0];
  if (!domain::is_integer(data.type.dtype) && data.type.dtype != DType::Bool) return std::nullopt;
  if (inputs.size() != 2 || inputs[1] == nullptr) return std::nullopt;
  const auto shape = inputs[1]->integers();
  const auto dims = shape ? broadcast_dims(data.type.dims, *shape) : std::nullopt;
  if (!dims) return std::nullopt;
  TensorType type{data.type.dtype, *dims};
  const auto size = raw_bytes(type.dtype, type.dims);
  if (!size || *size > kMaxTensorBytes) return std::nullopt;
  if (data.bytes.size() == element_bytes(data))
    return make_repeated(std::move(type), Bytes(data.bytes));
  if (!allowed_size(type)) return std::nullopt;
  return make_constant(std::move(type), broadcast(data, *dims));
}

/// Of integers only: how many steps real numbers make depends on rounding.
std::optional<Constant> range(const std::vector<const Constant*>& inputs) {
  if (inputs.size() != 3) return std::nullopt;
  const DType dtype = inputs[0]->type.dtype;
  if (dtype != DType::Int64 && dtype != DType::Int32) return std::nullopt;
  std::array<std::int64_t, 3> given{};
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (inputs[i] == nullptr || inputs[i]->type.dtype != dtype) return std::nullopt;
    const auto values = inputs[i]->integers();
    if (!values || values->size() != 1) return std::nullopt;
    given[i] = values->front();
  }
  const auto [start, limit, delta] = given;
  std::int64_t distance = 0;
  if (delta == 0 || delta == std::numeric_limits<std::int64_t>::min() ||
      __builtin_sub_overflow(limit, start, &distance))
    return std::nullopt;
  const bool up = delta > 0;
  const std::int64_t step = up ? delta : -delta;
  std::int64_t count = 0;
  if (up ? distance > 0 : distance < 0) {
    if (distance == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
    count = ((up ? distance : -distance) - 1) / step + 1;
  }
  const TensorType type{dtype, {count}};
  if (!allowed_size(type)) return std::nullopt;
  Bytes out;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t value = start + i * delta;
    if (dtype == DType::Int64) append(out, value);
    if (dtype == DType::Int32) append(out, static_cast<std::int32_t>(value));
  }
  return make_constant(type, std::move(out));
}

std::optional<Constant> equal(const std::vector<const Constant*>& inputs) {
  const auto pair = broadcast_pair(inputs);
  if (!pair) return std::nullopt;
  const auto same = [](auto a, auto b) { return a == b; };
  const TensorType type{DType::Bool, pair->dims};
  const DType from = inputs[0]->type.dtype;
  if (from == DType::Float32)
    return make_constant(type, combine<float, std::uint8_t>(pair->left, pair->right, same));
  if (from == DType::Float64)
    return make_constant(type, combine<double, std::uint8_t>(pair->left, pair->right, same));
  if (!domain::is_integer(from) && from != DType::Bool) return std::nullopt;
  switch (domain::dtype_size(from)) {
    case 1:
      return make_constant(type,
                           combine<std::uint8_t, std::uint8_t>(pair->left, pair->right, same));
    case 2:
      return make_constant(type,
                           combine<std::uint16_t, std::uint8_t>(pair->left, pair->right, same));
    case 4:
      return make_constant(type,
                           combine<std::uint32_t, std::uint8_t>(pair->left, pair->right, same));
    case 8:
      return make_constant(type,
                           combine<std::uint64_t, std::uint8_t>(pair->left, pair->right, same));
    default:
      return std::nullopt;
  }
}

std::optional<Constant> where(const std::vector<const Constant*>& inputs) {
  if (inputs.size() != 3 || inputs[1] == nullptr || inputs[2] == nullptr) return std::nullopt;
  const Constant& condition = *inputs[0];
  if (condition.type.dtype != DType::Bool || inputs[1]->type.dtype != inputs[2]->type.dtype)
    return std::nullopt;
  const auto values = broadcast_dims(inputs[1]->type.dims, inputs[2]->type.dims);
  const auto dims = values ? broadcast_dims(condition.type.dims, *values) : std::nullopt;
  const std::size_t each = element_bytes(*inputs[1]);
  if (!dims || each == 0 || !allowed_size({inputs[1]->type.dtype, *dims}) ||
      !allowed_size(inputs[1]->type) || !allowed_size(inputs[2]->type)) {
    return std::nullopt;
  }
  const Bytes choice = broadcast(condition.written_out(), *dims);
  Bytes out = broadcast(inputs[1]->written_out(), *dims);
  const Bytes other = broadcast(inputs[2]->written_out(), *dims);
  for (std::size_t i = 0; i < choice.size(); ++i) {
    if (choice[i] == 0) std::memcpy(out.data() + i * each, other.data() + i * each, each);
  }
  return make_constant({inputs[1]->type.dtype, *dims}, std::move(out));
}

std::optional<Constant> shape_of(const pb::NodeProto& node, const ValueTypes& types,
                                 const NameSet& fed) {
  if (node.input_size() != 1 || fed.contains(node.input(0))) return std::nullopt;
  const auto found = types.find(node.input(0));
  if (found == types.end() || !found->second.fixed()) return std::nullopt;
  const Ints& dims = *found->second.dims;
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto place = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t start = place(int_attribute(node, "start", 0));
  const std::int64_t end = std::max(place(int_attribute(node, "end", rank)), start);
  Bytes out;
  for (std::int64_t i = start; i < end; ++i) append(out, dims[static_cast<std::size_t>(i)]);
  return make_constant({DType::Int64, {end - start}}, std::move(out));
}

}  // namespace

std::optional<Constant> evaluate(const pb::NodeProto& node,
                                 const std::vector<const Constant*>& inputs) {
  if (inputs.empty() || inputs[0] == nullptr || element_bytes(*inputs[0]) == 0 ||
      !in_default_domain(node))
    return std::nullopt;
  const std::string& op = node.op_type();
  if (op == "Slice") return slice(node, inputs);
  if (op == "Concat") return concat(node, inputs);
  if (op == "Gather") return gather(node, inputs);
  if (op == "Unsqueeze") return unsqueeze(node, inputs);
  if (op == "Squeeze") return squeeze(node, inputs);
  if (op == "Cast") return cast(node, inputs);
  if (op == "ConstantOfShape") return constant_of_shape(node, inputs);
  if (op == "Reshape") return reshape(node, inputs);
  if (op == "Transpose") return transpose(node, inputs);
  if (op == "Add" || op == "Sub" || op == "Mul" || op == "Div") return arithmetic(op, inputs);
  if (op == "Max" || op == "Min") return extreme(op, inputs);
  if (op == "Expand") return expand(inputs);
  if (op == "Range") return range(inputs);
  if (op == "Equal") return equal(inputs);
  if (op == "Where") return where(inputs);
  return std::nullopt;
}

base::Result<Constants> Constants::find_all(const LoadedModel& model, const ValueTypes& types,
                                            const NameSet& fed) {
  Constants out;
  out.values_ = model.initializers;
  std::uint64_t spent = 0;
  for (const pb::NodeProto& node : model.proto.graph().node()) {
    if (node.output_size() != 1 || node.output(0).empty()) continue;
    if (is_constant_node(node)) {
      auto value = read_constant_node(node);
      if (!value) return base::fail(std::move(value.error()));
      out.values_.emplace(node.output(0), std::move(*value));
      continue;
    }
    std::optional<Constant> value;
    if (node.op_type() == "Shape" && in_default_domain(node)) {
      value = shape_of(node, types, fed);
    } else {
      std::vector<const Constant*> inputs;
      bool all = node.input_size() > 0;
      for (const std::string& name : node.input()) {
        const Constant* input = name.empty() ? nullptr : out.find(name);
        all = all && (name.empty() || input != nullptr);
        inputs.push_back(input);
      }
      if (all && spent < kMaxFoldedInAll) value = evaluate(node, inputs);
    }
    if (!value) continue;
    spent += value->bytes.size();
    out.values_.emplace(node.output(0), std::move(*value));
  }
  return out;
}

const Constant* Constants::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

}  // namespace layerfarm::worker::onnx
