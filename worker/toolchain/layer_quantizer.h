// Quantization of an analysis: each layer by itself, and the whole model, whose module says where
// each layer is (spec sections 18 and 20). The sidecar quantizes, layerfarm-onnx makes canonical
// modules of what it gives. Job thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "shared/domain/analyze_request.h"
#include "shared/domain/layer.h"
#include "shared/domain/outcome.h"
#include "worker/toolchain/operator_map.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {

/// Layers that one request to the sidecar takes: few enough that a time limit and a crash hit few.
inline constexpr std::size_t kLayersPerRequest = 16;

struct QuantizeAnswer {
  domain::Ending ending = domain::Ending::Infrastructure;
  domain::Diagnostic diagnostic;  ///< ending != Done
  /// The quantized whole model; empty when there is none, and then the analysis' notes say why.
  std::filesystem::path whole;
  std::vector<OperatorName> operators;  ///< of `whole`
};

/// `request.quantize` is set. `model`: the file whose layers `analysis` has. Its layers get
/// quantized modules, or `quantized` false with the reason. A model that is quantized already is
/// left as it is. `folder` holds the work in progress and `whole`.
[[nodiscard]] QuantizeAnswer quantize_layers(const domain::AnalyzeRequest& request,
                                             const std::filesystem::path& model,
                                             const std::filesystem::path& folder,
                                             domain::ModelAnalysis& analysis, StepContext& context);
/// The same for the model as a whole: no layer of `analysis` changes.
[[nodiscard]] QuantizeAnswer quantize_whole(const domain::AnalyzeRequest& request,
                                            const std::filesystem::path& model,
                                            const std::filesystem::path& folder,
                                            domain::ModelAnalysis& analysis, StepContext& context);

}  // namespace layerfarm::worker::toolchain
