// Quantized modules in the place of layers' float ones: made canonical, stored and signed as any
// layer's module.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/blob_folder.h"
#include "shared/base/result.h"
#include "shared/domain/layer.h"

namespace layerfarm::worker::onnx {

/// What the quantizer made of one module.
struct QuantizedModule {
  std::filesystem::path file;
  std::vector<std::uint32_t> layers;  ///< places in the analysis: all have this one float module
  std::vector<std::string> inputs;    ///< names in the file, in the order of the layers' inputs
  std::vector<std::string> outputs;   ///< and of their outputs
};

[[nodiscard]] base::Result<std::vector<QuantizedModule>> parse_quantized_modules(
    std::string_view json);

/// The layers get module, signature, types and MAC counts of the quantized form; ids, names and
/// places stay. A module that cannot be taken leaves its layers in float and says why
/// (Layer::quantize_note).
void replace_modules(const std::vector<QuantizedModule>& modules, const base::BlobFolder& blobs,
                     domain::ModelAnalysis& analysis);

}  // namespace layerfarm::worker::onnx
