// The analyze job: from a model file to layers with signatures, modules, input ranges and MAC
// counts. No ONNX in this header.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "shared/base/blob_folder.h"
#include "shared/base/result.h"
#include "shared/domain/analyze_request.h"
#include "shared/domain/layer.h"

namespace layerfarm::worker::onnx {

struct AnalyzeOptions {
  domain::AnalyzeRequest request;
  base::BlobFolder blobs;  ///< where modules and large constants go
  std::optional<std::string>
      shapes_answer;  ///< what a run of the model showed (the helper's answer)
  std::optional<std::filesystem::path>
      shapes_folder;  ///< where the model for such a run may be written; none: do not ask
  /// Where the outline of the model that was taken apart goes when that is not the file itself (a
  /// converted one, a subgraph); where it will be quantized, the model itself.
  std::optional<std::filesystem::path> changed_model;
};

struct AnalyzeAnswer {
  domain::ModelAnalysis analysis;
  /// Not empty: shapes are missing that a run of the model would show. This is the request for the
  /// helper; `analysis` is not filled.
  std::string shapes_request;
};

/// Errors read well after "<file>: ".
[[nodiscard]] base::Result<AnalyzeAnswer> analyze(const AnalyzeOptions& options);

/// The whole of a self-contained model as one layer: its module, signature, inputs, outputs and MAC
/// counts. Id and operator type are those of its main node.
[[nodiscard]] base::Result<domain::Layer> whole_as_layer(const std::filesystem::path& file,
                                                         const base::BlobFolder& blobs);

/// Which nodes the request's subgraph goes from and to, in the model as the request converts it;
/// NotFound for a name that no node has.
[[nodiscard]] base::Result<domain::NodeRange> subgraph_range(const domain::AnalyzeRequest& request);
/// Writes the converted model of a request, whole, to `out`. Same errors.
[[nodiscard]] base::Result<void> save_converted(const domain::AnalyzeRequest& request,
                                                const std::filesystem::path& out);

/// Version of the ONNX library.
[[nodiscard]] std::string onnx_version();

}  // namespace layerfarm::worker::onnx
