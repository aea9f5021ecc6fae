// ModelFormat: how layers come out of one kind of model file. One format = one file that implements
// this interface and one line in model_formats.cpp (docs/adding-a-model-format.md). Planning,
// sharing, judging and reporting know nothing of formats. Job thread.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/files.h"
#include "shared/domain/analyze_request.h"
#include "shared/domain/layer.h"
#include "shared/domain/outcome.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {

/// The model taken apart, or why that failed.
struct FormatAnswer {
  domain::Ending ending = domain::Ending::Infrastructure;
  domain::ModelAnalysis analysis;  ///< Done: all but the locations
  /// Done: the locations (or why there are none) are in the analysis already: they are of another
  /// module than the model's own.
  bool located = false;
  domain::Diagnostic diagnostic;  ///< else
  /// Not empty: what was taken apart is not the file itself (it was converted, or a part of it),
  /// but the model in this one.
  std::filesystem::path changed_model = {};
  std::shared_ptr<const base::ScratchFolder> folder = nullptr;  ///< keeps that file
};

/// Where the operators of the whole model stand in the module that a compiler reads.
struct FormatLocations {
  domain::Ending ending = domain::Ending::Infrastructure;
  std::vector<domain::SourceLocation>
      locations;         ///< Done: one per operator, in the order of the layers
  std::string importer;  ///< Done: name and version of what made that module
  std::string problem;   ///< else: one line for people
};

class ModelFormat {
 public:
  virtual ~ModelFormat() = default;
  /// As ModelAnalysis::format and LayerModule::format have it: the extension of its modules.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Whether a file is of this format, by its name alone.
  [[nodiscard]] virtual bool reads(const std::string& file) const = 0;
  /// Layers with their modules (stored as blobs), signatures, inputs and outputs.
  virtual FormatAnswer layers(const domain::AnalyzeRequest& request, StepContext& context) = 0;
  /// Line and column of each operator of the model that `taken` is about.
  virtual FormatLocations locations(const domain::AnalyzeRequest& request,
                                    const FormatAnswer& taken, StepContext& context) = 0;
};

using ModelFormats = std::vector<std::unique_ptr<ModelFormat>>;

/// Every format that this program knows; the first that reads a file gets it.
[[nodiscard]] ModelFormats make_model_formats();

}  // namespace layerfarm::worker::toolchain
