// A model file read and checked: whatever comes later may rely on its names, order and constants.
#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "shared/base/digest.h"
#include "shared/base/result.h"
#include "shared/domain/layer.h"
#include "worker/onnx/constant.h"
#include "worker/onnx/proto.h"

namespace layerfarm::worker::onnx {

inline constexpr std::int64_t kOldestOpset = 7;
[[nodiscard]] std::int64_t newest_opset();

struct LoadedModel {
  /// Nodes in topological order, no external data any more, no two values of one name. Data of
  /// large initializers is moved to `initializers`.
  pb::ModelProto proto;
  std::unordered_map<std::string, Constant> initializers;
  std::vector<domain::ReadFile> files;
  base::Digest digest;  ///< of the file; with external data, over all files
  std::vector<std::string> notes;
};

/// Makes `tensor` an initializer of the model's main graph that has this value; a value of that
/// name is replaced.
void hold_initializer(LoadedModel& model, pb::TensorProto& tensor, const std::string& name,
                      Constant value);

/// The error's message is a reason that reads well after "<file>: ".
[[nodiscard]] base::Result<LoadedModel> load_model(const std::filesystem::path& path);

}  // namespace layerfarm::worker::onnx
