// RealStages: the stages as worker/toolchain has them, with one adapter per toolchain kept for the
// worker's life. Job thread only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker/app/stages.h"
#include "worker/toolchain/analyze_stage.h"

namespace layerfarm::worker::app {

class RealStages final : public Stages {
 public:
  /// Other model formats than this program knows may be handed in.
  explicit RealStages(toolchain::ModelFormats formats = toolchain::make_model_formats())
      : analyze_(std::move(formats)) {}
  domain::Outcome analyze(const domain::AnalyzeRequest& request,
                          toolchain::StepContext& context) override;
  domain::Outcome prepare(const domain::Layer& layer, const domain::InputSet& inputs,
                          toolchain::StepContext& context) override;
  std::vector<domain::Outcome> compile(const domain::ChipSpec& chip,
                                       const domain::ExecutorSpec& executor,
                                       std::span<const domain::Layer* const> layers,
                                       toolchain::StepContext& context) override;
  domain::Outcome execute(const toolchain::StageJob& job, const domain::Tolerance& tolerance,
                          toolchain::StepContext& context) override;
  domain::Outcome recompare(const toolchain::StageJob& job, const std::vector<base::Digest>& kept,
                            const domain::Tolerance& tolerance,
                            toolchain::StepContext& context) override;
  domain::Outcome time(const toolchain::StageJob& job, int runs,
                       toolchain::StepContext& context) override;
  domain::Outcome whole(const domain::ChipSpec& chip, const domain::WholeRequest& request,
                        const domain::InputSet& inputs, const domain::Tolerance& tolerance,
                        toolchain::StepContext& context) override;
  [[nodiscard]] bool tiny(const domain::ChipSpec& chip) const override;

 private:
  /// Null when this program has no such adapter.
  [[nodiscard]] toolchain::Toolchain* adapter(const std::string& name) const;
  toolchain::AnalyzeStage analyze_;
  mutable std::map<std::string, std::unique_ptr<toolchain::Toolchain>> adapters_;
};

}  // namespace layerfarm::worker::app
