#include "worker/onnx/signature.h"

#include <set>
#include <string>

#include "shared/domain/dtype.h"
#include "shared/domain/quantized_ops.h"

namespace layerfarm::worker::onnx {
namespace {

void hash_constant(base::Hasher& hasher, const Constant& value, const base::Digest* content) {
  hasher.add(static_cast<std::int64_t>(value.type.dtype))
      .add(static_cast<std::int64_t>(value.type.dims.size()));
  for (const std::int64_t dim : value.type.dims) hasher.add(dim);
  if (content != nullptr) hasher.add(*content);
}

/// Names that only operators on quantized numbers read.
std::set<std::string> quantized_numbers(const pb::GraphProto& graph) {
  std::set<std::string> out;
  for (const pb::NodeProto& node : graph.node()) {
    if (domain::works_on_quantized(node.op_type()))
      out.insert(node.input().begin(), node.input().end());
  }
  for (const pb::NodeProto& node : graph.node()) {
    if (domain::works_on_quantized(node.op_type())) continue;
    for (const std::string& name : used_names(node)) out.erase(name);
  }
  return out;
}

}  // namespace

Signatures sign(const CanonicalLayer& layer, const std::vector<base::Digest>& contents) {
  const base::Bytes skeleton = serialize(layer.module);
  const std::set<std::string> quantized = quantized_numbers(layer.module.graph());
  base::Hasher exact("layerfarm.signature.1");
  base::Hasher loose("layerfarm.signature.loose.2");
  exact.add(skeleton);
  loose.add(skeleton);
  for (std::size_t i = 0; i < layer.constants.size(); ++i) {
    const auto& [name, value] = layer.constants[i];
    const domain::DType dtype = value->type.dtype;
    const bool number =
        domain::is_floating(dtype) || (quantized.contains(name) && dtype != domain::DType::Bool);
    hash_constant(exact, *value, &contents[i]);
    hash_constant(loose, *value, number ? nullptr : &contents[i]);
  }
  return {exact.finish(), loose.finish()};
}

}  // namespace layerfarm::worker::onnx
