// The analyze job: a model file becomes a stored ModelAnalysis. What kind of file it is, the
// formats know. Job thread.
#pragma once

#include "shared/domain/analyze_request.h"
#include "shared/domain/layer.h"
#include "shared/domain/outcome.h"
#include "worker/toolchain/model_format.h"

namespace layerfarm::worker::toolchain {

class AnalyzeStage {
 public:
  explicit AnalyzeStage(ModelFormats formats = make_model_formats())
      : formats_(std::move(formats)) {}
  /// Done: `analysis` names the blob of the encoded ModelAnalysis. A model whose operators cannot
  /// be located is Done too and says why.
  domain::Outcome run(const domain::AnalyzeRequest& request, StepContext& context);

 private:
  ModelFormats formats_;
};

}  // namespace layerfarm::worker::toolchain
