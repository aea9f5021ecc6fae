#include "worker/onnx/write_model.h"

#include <fmt/format.h>

#include <system_error>

#include "shared/base/files.h"
#include "worker/onnx/canonical.h"
#include "worker/onnx/data_files.h"
#include "worker/onnx/outside_data.h"

namespace layerfarm::worker::onnx {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

}  // namespace

Result<void> write_model(const LoadedModel& model, const std::filesystem::path& file) {
  pb::ModelProto whole = model.proto;
  std::uint64_t bytes = whole.ByteSizeLong();
  for (const pb::TensorProto& tensor : whole.graph().initializer()) {
    if (is_outside(tensor)) bytes += model.initializers.at(tensor.name()).size();
  }
  if (bytes > kMaxTensorBytes) {
    return fail(ErrorCode::InvalidInput,
                fmt::format("has {} bytes now, and one ONNX file holds at most 2 GiB", bytes));
  }
  for (pb::TensorProto& tensor : *whole.mutable_graph()->mutable_initializer()) {
    if (is_outside(tensor)) write_constant(model.initializers.at(tensor.name()), tensor);
  }
  std::error_code error;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
  if (error) {
    return fail(ErrorCode::Internal,
                "cannot make the folder " + file.parent_path().string() + ": " + error.message());
  }
  return base::write_file_atomically(file, serialize(whole), base::Sync::Yes);
}

Result<void> write_outline(const LoadedModel& model, const std::filesystem::path& file) {
  pb::ModelProto outline = model.proto;
  for (pb::TensorProto& tensor : *outline.mutable_graph()->mutable_initializer()) {
    if (!is_outside(tensor)) continue;
    const Constant& value = model.initializers.at(tensor.name());
    refer_to_data(value, {.name = "left-out", .blob = {}, .bytes = value.size()}, tensor);
  }
  return base::write_file_atomically(file, serialize(outline), base::Sync::No);
}

}  // namespace layerfarm::worker::onnx
