#include "worker/onnx/raise.h"

#include <onnx/version_converter/convert.h>

#include <exception>
#include <map>
#include <string>

#include "shared/base/files.h"
#include "worker/onnx/canonical.h"
#include "worker/onnx/load.h"

namespace layerfarm::worker::onnx {

using base::ErrorCode;
using base::fail;
using base::Result;

Result<void> raise_opset(const std::filesystem::path& path, std::int64_t opset,
                         const std::filesystem::path& out) {
  // Checked as any model is; what is converted is the file as it stands, with its references to
  // data files.
  if (auto loaded = load_model(path); !loaded) return fail(std::move(loaded.error()));
  auto bytes = base::read_file(path);
  if (!bytes) return fail(std::move(bytes.error()));
  pb::ModelProto model;
  if (!model.ParseFromString(*bytes))
    return fail(ErrorCode::InvalidInput, "is damaged: it does not parse as an ONNX model");
  const std::int64_t from = opset_version(model, "");
  if (from >= opset)
    return fail(ErrorCode::InvalidInput, "has opset " + std::to_string(from) +
                                             ", it cannot be raised to " + std::to_string(opset));
  if (opset > newest_opset()) {
    return fail(ErrorCode::InvalidInput, "cannot be raised to opset " + std::to_string(opset) +
                                             ", the newest is " + std::to_string(newest_opset()));
  }

  // The converter would lose the references, so to it such constants are inputs.
  pb::GraphProto& graph = *model.mutable_graph();
  std::map<std::string, pb::TensorProto> outside;
  google::protobuf::RepeatedPtrField<pb::TensorProto> inside;
  for (pb::TensorProto& tensor : *graph.mutable_initializer()) {
    if (tensor.data_location() != pb::TensorProto::EXTERNAL) {
      inside.Add(std::move(tensor));
      continue;
    }
    pb::ValueInfoProto& input = *graph.add_input();
    input.set_name(tensor.name());
    auto& type = *input.mutable_type()->mutable_tensor_type();
    type.set_elem_type(tensor.data_type());
    for (const std::int64_t dim : tensor.dims())
      type.mutable_shape()->add_dim()->set_dim_value(dim);
    outside.emplace(tensor.name(), std::move(tensor));
  }
  graph.mutable_initializer()->Swap(&inside);

  pb::ModelProto raised;
  try {
    raised = pb::version_conversion::ConvertVersion(model, static_cast<int>(opset));
  } catch (const std::exception& error) {
    const std::string why = error.what();
    return fail(ErrorCode::InvalidInput, "cannot be raised to opset " + std::to_string(opset) +
                                             ": " + why.substr(0, why.find('\n')));
  }
  pb::GraphProto& target = *raised.mutable_graph();
  google::protobuf::RepeatedPtrField<pb::ValueInfoProto> inputs;
  for (pb::ValueInfoProto& input : *target.mutable_input()) {
    const auto found = outside.find(input.name());
    if (found == outside.end()) {
      inputs.Add(std::move(input));
    } else {
      target.add_initializer()->Swap(&found->second);
    }
  }
  target.mutable_input()->Swap(&inputs);
  CanonicalLayer none;
  raised.set_ir_version(std::max<std::int64_t>(model.ir_version(), ir_version_for(raised, none)));
  return base::write_file_atomically(out, serialize(raised), base::Sync::No);
}

}  // namespace layerfarm::worker::onnx
