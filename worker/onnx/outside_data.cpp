#include "worker/onnx/outside_data.h"

#include <algorithm>
#include <string>
#include <unordered_set>

namespace layerfarm::worker::onnx {

bool is_outside(const pb::TensorProto& tensor) {
  if (tensor.data_location() == pb::TensorProto::EXTERNAL) return true;
  return !tensor.has_raw_data() && tensor.float_data().empty() && tensor.int32_data().empty() &&
         tensor.int64_data().empty() && tensor.double_data().empty() &&
         tensor.uint64_data().empty() && tensor.string_data().empty() &&
         std::find(tensor.dims().begin(), tensor.dims().end(), 0) == tensor.dims().end();
}

pb::ModelProto without_outside_data(const pb::ModelProto& model) {
  pb::ModelProto out = model;
  pb::GraphProto& graph = *out.mutable_graph();
  std::unordered_set<std::string> inputs;
  for (const pb::ValueInfoProto& input : graph.input()) inputs.insert(input.name());
  google::protobuf::RepeatedPtrField<pb::TensorProto> inside;
  for (pb::TensorProto& tensor : *graph.mutable_initializer()) {
    if (!is_outside(tensor)) {
      inside.Add(std::move(tensor));
      continue;
    }
    if (inputs.contains(tensor.name())) continue;
    pb::ValueInfoProto& input = *graph.add_input();
    input.set_name(tensor.name());
    auto& type = *input.mutable_type()->mutable_tensor_type();
    type.set_elem_type(tensor.data_type());
    type.mutable_shape();
    for (const std::int64_t dim : tensor.dims())
      type.mutable_shape()->add_dim()->set_dim_value(dim);
  }
  graph.mutable_initializer()->Swap(&inside);
  return out;
}

}  // namespace layerfarm::worker::onnx
