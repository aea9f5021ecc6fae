#include "worker/onnx/value_types.h"

#include <algorithm>

#include "worker/onnx/constant.h"

namespace layerfarm::worker::onnx {
namespace {

std::string describe(const pb::TypeProto& type) {
  const auto of = [](const std::string& kind, const pb::TypeProto& element) {
    if (!element.has_tensor_type()) return kind + " of " + describe(element) + "s";
    return kind + " of " +
           type_text(static_cast<domain::DType>(element.tensor_type().elem_type())) + " tensors";
  };
  switch (type.value_case()) {
    case pb::TypeProto::kSequenceType:
      return of("sequence", type.sequence_type().elem_type());
    case pb::TypeProto::kOptionalType:
      // The element of an optional is one thing, not many.
      return type.optional_type().elem_type().has_tensor_type()
                 ? of("optional", type.optional_type().elem_type())
                 : "optional " + describe(type.optional_type().elem_type());
    case pb::TypeProto::kMapType:
      return "map";
    case pb::TypeProto::kSparseTensorType:
      return "sparse tensor";
    case pb::TypeProto::kOpaqueType:
      return "opaque value";
    default:
      return "value of unknown type";
  }
}

}  // namespace

bool ValueType::fixed() const {
  return other.empty() && dtype != domain::DType::Undefined && dims.has_value() &&
         std::all_of(dims->begin(), dims->end(), [](std::int64_t dim) { return dim >= 0; });
}

ValueType read_type(const pb::TypeProto& type) {
  ValueType out;
  if (type.value_case() == pb::TypeProto::VALUE_NOT_SET) return out;
  if (!type.has_tensor_type()) {
    out.other = describe(type);
    return out;
  }
  out.dtype = static_cast<domain::DType>(type.tensor_type().elem_type());
  if (!type.tensor_type().has_shape()) return out;
  out.dims.emplace();
  for (const auto& dim : type.tensor_type().shape().dim()) {
    out.dims->push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : -1);
  }
  return out;
}

void write_type(const ValueType& value, pb::TypeProto& type) {
  type.Clear();
  if (value.dtype == domain::DType::Undefined) return;
  auto& tensor = *type.mutable_tensor_type();
  tensor.set_elem_type(static_cast<std::int32_t>(value.dtype));
  if (!value.dims) return;
  tensor.mutable_shape();
  for (const std::int64_t dim : *value.dims) {
    auto& written = *tensor.mutable_shape()->add_dim();
    if (dim >= 0) written.set_dim_value(dim);
  }
}

}  // namespace layerfarm::worker::onnx
