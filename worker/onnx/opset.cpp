#include "worker/onnx/opset.h"

#include <onnx/version_converter/convert.h>

#include <algorithm>
#include <exception>
#include <map>
#include <string>
#include <unordered_set>

#include "worker/onnx/canonical.h"
#include "worker/onnx/outside_data.h"

namespace layerfarm::worker::onnx {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

}  // namespace

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
