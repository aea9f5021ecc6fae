// ort: layers on ONNX Runtime's own CPU provider, in the resident layerfarm-ort. Compiles nothing.
// Options of a chip or executor: `optimization` = all | none, `threads` (default 1),
// `session.<entry>` (docs/chips.md).
#include <optional>
#include <utility>

#include "worker/cache/materialise.h"
#include "worker/toolchain/ort_helper.h"
#include "worker/toolchain/tool_results.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {
namespace {

class OrtToolchain final : public Toolchain {
 public:
  [[nodiscard]] std::string_view name() const override { return "ort"; }

  [[nodiscard]] Needs needs(const domain::ChipSpec& /*chip*/) const override {
    return {.prepare = true, .compile = false, .batch = 1, .tiny = false};
  }

  [[nodiscard]] Probe probe(const domain::ChipSpec& /*chip*/) const override {
    return probe_onnxruntime();
  }

  std::vector<domain::Outcome> compile(const domain::ChipSpec& /*chip*/,
                                       const domain::ExecutorSpec& /*executor*/,
                                       std::span<const CompileJob> jobs,
                                       StepContext& /*context*/) override {
    std::vector<domain::Outcome> out;
    for (const CompileJob& job : jobs)
      out.push_back(module_as_artifact(*job.layer, "onnxruntime " + onnxruntime_version()));
    return out;
  }

  RunResult run(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor,
                const RunJob& job, StepContext& context) override {
    RunResult out;
    const auto session = cpu_session(chip, executor, *job.layer, context, out);
    return session ? ort_run(*session, prepared_inputs(*job.layer, *job.prepared, context.blobs),
                             context)
                   : out;
  }

  TimeResult time(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor,
                  const RunJob& job, int runs, StepContext& context) override {
    RunResult problem;
    const auto session = cpu_session(chip, executor, *job.layer, context, problem);
    if (session)
      return ort_time(*session, prepared_inputs(*job.layer, *job.prepared, context.blobs), runs,
                      context);
    return not_timed(std::move(problem));
  }

 private:
  static std::optional<OrtSession> cpu_session(const domain::ChipSpec& chip,
                                               const domain::ExecutorSpec& executor,
                                               const domain::Layer& layer, StepContext& context,
                                               RunResult& problem) {
    const cache::Placed placed =
        cache::place_module(context.blobs, layer.module, context.scratch / "module", "layer");
    if (!placed.ok()) {
      problem = not_placed(placed);
      return std::nullopt;
    }
    return cpu_session_of(domain::merged_options(chip, executor), placed.module);
  }
};

}  // namespace

std::unique_ptr<Toolchain> make_ort_toolchain() { return std::make_unique<OrtToolchain>(); }

}  // namespace layerfarm::worker::toolchain
