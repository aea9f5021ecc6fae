#include "worker/onnx/opset.h"

#include <onnx/version_converter/convert.h>

#include <algorithm>
#include <exception>
#include <map>
#include <string>
#include <unordered_set>

#include "worker/onnx/canonical.h"

namespace layerfarm::worker::onnx {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

}  // namespace

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

Result<void> raise_model(pb::ModelProto& model, std::int64_t opset) {
  const auto cannot = [&](const std::string& why) {
    return fail(ErrorCode::InvalidInput,
                "cannot be raised to opset " + std::to_string(opset) + ": " + why);
  };
  pb::ModelProto raised;
  try {
    raised = pb::version_conversion::ConvertVersion(without_outside_data(model),
                                                    static_cast<int>(opset));
  } catch (const std::exception& error) {
    const std::string why = error.what();
    return cannot(why.substr(0, why.find('\n')));
  }
  std::map<std::string, pb::TensorProto*> outside;
  for (pb::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (is_outside(tensor)) outside.emplace(tensor.name(), &tensor);
  }
  std::unordered_set<std::string> declared;
  for (const pb::ValueInfoProto& input : model.graph().input()) declared.insert(input.name());

  pb::GraphProto& target = *raised.mutable_graph();
  google::protobuf::RepeatedPtrField<pb::ValueInfoProto> inputs;
  for (pb::ValueInfoProto& input : *target.mutable_input()) {
    const auto found = outside.find(input.name());
    if (found == outside.end() || declared.contains(input.name())) {
      inputs.Add(pb::ValueInfoProto(input));
    }
    if (found != outside.end()) target.add_initializer()->Swap(found->second);
  }
  target.mutable_input()->Swap(&inputs);
  const CanonicalLayer none;
  raised.set_ir_version(std::max<std::int64_t>(model.ir_version(), ir_version_for(raised, none)));
  model = std::move(raised);
  return {};
}

}  // namespace layerfarm::worker::onnx
