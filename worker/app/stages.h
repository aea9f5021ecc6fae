// Stages: what the worker can do for a job, one call a stage. The real ones are in real_stages.cpp;
// tests hand in their own.
#pragma once

#include <span>
#include <vector>

#include "shared/domain/analyze_request.h"
#include "shared/domain/chip.h"
#include "shared/domain/keys.h"
#include "shared/domain/layer.h"
#include "shared/domain/outcome.h"
#include "shared/domain/whole_request.h"
#include "worker/toolchain/execute_stage.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::app {

class Stages {
 public:
  virtual ~Stages() = default;
  virtual domain::Outcome analyze(const domain::AnalyzeRequest& request,
                                  toolchain::StepContext& context) = 0;
  virtual domain::Outcome prepare(const domain::Layer& layer, const domain::InputSet& inputs,
                                  toolchain::StepContext& context) = 0;
  /// One outcome per layer, in order.
  virtual std::vector<domain::Outcome> compile(const domain::ChipSpec& chip,
                                               const domain::ExecutorSpec& executor,
                                               std::span<const domain::Layer* const> layers,
                                               toolchain::StepContext& context) = 0;
  virtual domain::Outcome execute(const toolchain::StageJob& request,
                                  const domain::Tolerance& tolerance,
                                  toolchain::StepContext& context) = 0;
  virtual domain::Outcome recompare(const toolchain::StageJob& request,
                                    const std::vector<base::Digest>& kept,
                                    const domain::Tolerance& tolerance,
                                    toolchain::StepContext& context) = 0;
  virtual domain::Outcome time(const toolchain::StageJob& request, int runs,
                               toolchain::StepContext& context) = 0;
  /// A whole model, by the assignment that its analysis was split by.
  virtual domain::Outcome whole(const domain::ChipSpec& chip, const domain::WholeRequest& request,
                                const domain::InputSet& inputs, const domain::Tolerance& tolerance,
                                toolchain::StepContext& context) = 0;
  /// Whether running one case of this chip costs so little that many may be begun together.
  [[nodiscard]] virtual bool tiny(const domain::ChipSpec& chip) const = 0;
};

}  // namespace layerfarm::worker::app
