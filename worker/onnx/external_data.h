// Constants that a model keeps in files beside it. Only files inside the model's own folder are
// ever opened.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "shared/base/result.h"
#include "shared/domain/layer.h"
#include "worker/onnx/constant.h"
#include "worker/onnx/mapped_file.h"

namespace layerfarm::worker::onnx {

class ExternalData {
 public:
  explicit ExternalData(std::filesystem::path folder) : folder_(std::move(folder)) {}
  /// The value of a tensor whose data location is EXTERNAL; its bytes stay in the mapped file.
  [[nodiscard]] base::Result<Constant> read(const pb::TensorProto& tensor);
  /// Every file that was opened, by name.
  [[nodiscard]] std::vector<domain::ReadFile> files() const;

 private:
  [[nodiscard]] base::Result<std::shared_ptr<const MappedFile>> open(const std::string& location);

  std::filesystem::path folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> open_;  // by location
};

}  // namespace layerfarm::worker::onnx
