#include "worker/onnx/raise.h"

#include <string>

#include "shared/base/files.h"
#include "worker/onnx/canonical.h"
#include "worker/onnx/load.h"
#include "worker/onnx/opset.h"

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

  if (auto raised = raise_model(model, opset); !raised) return raised;
  return base::write_file_atomically(out, serialize(model), base::Sync::No);
}

}  // namespace layerfarm::worker::onnx
