// The stages around an adapter: compile, execute, recompare, time. Each gives a whole Outcome;
// whether to try again is the coordinator's decision (design.md, section 6). Job thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/domain/chip.h"
#include "shared/domain/comparison.h"
#include "shared/domain/layer.h"
#include "shared/domain/outcome.h"
#include "shared/domain/tolerance.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {

/// What one case needs.
struct StageJob {
  const domain::ChipSpec& chip;
  const domain::ExecutorSpec& executor;
  const domain::Layer& layer;
  const domain::Artifact* artifact = nullptr;  ///< null when the toolchain needs no compile
  const domain::Prepared* prepared = nullptr;  ///< null when it needs no prepare
};

/// Outputs of one run are kept for recompare when they are no more than this together.
inline constexpr std::uint64_t kKeptBytes = std::uint64_t{64} << 20;

/// Compiles for one executor; answers in the order of `jobs`.
[[nodiscard]] std::vector<domain::Outcome> compile_stage(Toolchain& toolchain,
                                                         const domain::ChipSpec& chip,
                                                         const domain::ExecutorSpec& executor,
                                                         std::span<const CompileJob> jobs,
                                                         StepContext& context);
/// One result of a layer beside its reference; of one whose content ONNX leaves open, its size
/// alone.
[[nodiscard]] domain::Comparison compare_result(const domain::Layer& layer, std::size_t index,
                                                const domain::TensorType& expected_type,
                                                base::BytesView expected,
                                                const domain::TensorType& actual_type,
                                                base::BytesView actual,
                                                const domain::Tolerance& tolerance);
/// Runs once, compares each output with its reference, counts for `tolerance`, keeps the outputs.
[[nodiscard]] domain::Outcome execute_stage(Toolchain& toolchain, const StageJob& job,
                                            const domain::Tolerance& tolerance,
                                            StepContext& context);
/// Compares kept outputs again, for another tolerance. LostBlob when one was pruned.
[[nodiscard]] domain::Outcome recompare_stage(const domain::Layer& layer,
                                              const domain::Prepared& prepared,
                                              const std::vector<base::Digest>& kept,
                                              const domain::Tolerance& tolerance,
                                              StepContext& context);
/// One warm-up, then `runs` timed runs.
[[nodiscard]] domain::Outcome time_stage(Toolchain& toolchain, const StageJob& job, int runs,
                                         StepContext& context);

}  // namespace layerfarm::worker::toolchain
