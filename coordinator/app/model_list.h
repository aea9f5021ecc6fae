// ModelList: from what the user wrote after --model to files and the names of their outputs
// (design.md, section 8).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "shared/base/result.h"

namespace layerfarm::coordinator::app {

/// One model of a run.
struct ModelFile {
  std::filesystem::path path;  ///< as given
  std::string name;            ///< file name without its last extension
  /// Folder below the output folder, empty but where two names clash: then the model's folder below
  /// the common parent.
  std::filesystem::path folder;
};

/// A folder and a type that is refused (.tflite, .pt, .pth, .py) are errors.
[[nodiscard]] base::Result<void> check_model_file(const std::filesystem::path& path);

/// Expands globs (`*`, `?`, `[...]`; a file of exactly that name comes first), drops repeats, keeps
/// the order given. Errors: no file, a folder, a type that is refused (.tflite, .pt, .pth, .py), a
/// glob without a match.
[[nodiscard]] base::Result<std::vector<ModelFile>> expand_models(
    const std::vector<std::string>& patterns);

}  // namespace layerfarm::coordinator::app
