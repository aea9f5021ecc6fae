// Raising a layer's operator set, for importers and compilers that refuse old forms. No ONNX in
// this header.
#pragma once

#include <cstdint>
#include <filesystem>

#include "shared/base/result.h"

namespace layerfarm::worker::onnx {

/// Reads a module, converts it with ONNX's version converter and writes it to `out`. Constants
/// outside the module stay where they are: `out` refers to the same file names, so it must lie
/// beside them too. A module that has that opset or a newer one is InvalidInput.
[[nodiscard]] base::Result<void> raise_opset(const std::filesystem::path& module,
                                             std::int64_t opset, const std::filesystem::path& out);

}  // namespace layerfarm::worker::onnx
