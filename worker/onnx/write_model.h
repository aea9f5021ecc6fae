// Writing a changed model as a file. For this folder only.
#pragma once

#include <filesystem>

#include "shared/base/result.h"
#include "worker/onnx/load.h"

namespace layerfarm::worker::onnx {

/// The whole model in one file, by temporary file and rename; its folder is made. A model that one
/// file cannot hold is an error.
[[nodiscard]] base::Result<void> write_model(const LoadedModel& model,
                                             const std::filesystem::path& file);

/// All but the values of large constants, which seem to lie in a file that is not there: for who
/// wants to know what operators there are and where (the importer's locations).
[[nodiscard]] base::Result<void> write_outline(const LoadedModel& model,
                                               const std::filesystem::path& file);

}  // namespace layerfarm::worker::onnx
