// Where ONNX Runtime's library is: it is opened at run time, so that no program holds a path of the
// building machine.
#pragma once

#include <filesystem>
#include <system_error>

#include "shared/base/build_info.h"
#include "shared/base/places.h"

namespace layerfarm::base {

/// `$ONNXRUNTIME_ROOT/lib`, else the library that was installed with the program, else that of the
/// dependency cache (builds in a checkout). It need not be there.
[[nodiscard]] inline std::filesystem::path onnxruntime_library() {
  namespace fs = std::filesystem;
  const fs::path name = fs::path("lib") / "libonnxruntime.so.1";
  if (const std::string own = environment("ONNXRUNTIME_ROOT"); !own.empty())
    return fs::absolute(own) / name;
  const fs::path carried = program_folder().parent_path() / "lib" / "layerfarm" / name.filename();
  std::error_code error;
  if (fs::exists(carried, error)) return carried;
  return dependencies_folder() / kOnnxRuntimeFolder / name;
}

}  // namespace layerfarm::base
