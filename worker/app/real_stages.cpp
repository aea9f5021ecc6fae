#include "worker/app/real_stages.h"

#include "worker/toolchain/prepare_stage.h"
#include "worker/toolchain/tool_step.h"
#include "worker/toolchain/whole_stage.h"

namespace layerfarm::worker::app {
using domain::Ending;
using domain::Outcome;
using domain::Stage;

namespace {

Outcome no_adapter(Stage stage, const std::string& name) {
  Outcome out;
  out.stage = stage;
  out.ending = Ending::Infrastructure;
  out.diagnostic =
      toolchain::diagnostic("toolchain", "missing", "this worker has no toolchain '" + name + "'");
  return out;
}

}  // namespace

toolchain::Toolchain* RealStages::adapter(const std::string& name) const {
  const auto [it, added] = adapters_.try_emplace(name);
  if (added) it->second = toolchain::make_toolchain(name);
  return it->second.get();
}

Outcome RealStages::analyze(const domain::AnalyzeRequest& request,
                            toolchain::StepContext& context) {
  return analyze_.run(request, context);
}

Outcome RealStages::prepare(const domain::Layer& layer, const domain::InputSet& inputs,
                            toolchain::StepContext& context) {
  return toolchain::prepare_stage(layer, inputs, context);
}

std::vector<Outcome> RealStages::compile(const domain::ChipSpec& chip,
                                         const domain::ExecutorSpec& executor,
                                         std::span<const domain::Layer* const> layers,
                                         toolchain::StepContext& context) {
  toolchain::Toolchain* tool = adapter(chip.toolchain);
  if (tool == nullptr)
    return std::vector<Outcome>(layers.size(), no_adapter(Stage::Compile, chip.toolchain));
  std::vector<toolchain::CompileJob> jobs;
  for (const domain::Layer* layer : layers) jobs.push_back({layer});
  return toolchain::compile_stage(*tool, chip, executor, jobs, context);
}

Outcome RealStages::execute(const toolchain::StageJob& job, const domain::Tolerance& tolerance,
                            toolchain::StepContext& context) {
  toolchain::Toolchain* tool = adapter(job.chip.toolchain);
  if (tool == nullptr) return no_adapter(Stage::Execute, job.chip.toolchain);
  return toolchain::execute_stage(*tool, job, tolerance, context);
}

Outcome RealStages::recompare(const toolchain::StageJob& job, const std::vector<base::Digest>& kept,
                              const domain::Tolerance& tolerance, toolchain::StepContext& context) {
  static const domain::Prepared kNone;
  return toolchain::recompare_stage(job.layer, job.prepared != nullptr ? *job.prepared : kNone,
                                    kept, tolerance, context);
}

Outcome RealStages::time(const toolchain::StageJob& job, int runs,
                         toolchain::StepContext& context) {
  toolchain::Toolchain* tool = adapter(job.chip.toolchain);
  if (tool == nullptr) return no_adapter(Stage::Time, job.chip.toolchain);
  return toolchain::time_stage(*tool, job, runs, context);
}

Outcome RealStages::whole(const domain::ChipSpec& chip, const domain::WholeRequest& request,
                          const domain::InputSet& inputs, const domain::Tolerance& tolerance,
                          toolchain::StepContext& context) {
  toolchain::Toolchain* tool = adapter(chip.toolchain);
  if (tool == nullptr) return no_adapter(Stage::Whole, chip.toolchain);
  return toolchain::whole_stage(*tool, chip, request, inputs, tolerance, context);
}

bool RealStages::tiny(const domain::ChipSpec& chip) const {
  const toolchain::Toolchain* tool = adapter(chip.toolchain);
  return tool != nullptr && tool->needs(chip).tiny;
}

}  // namespace layerfarm::worker::app
