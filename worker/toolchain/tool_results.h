// Results that adapters give in the same words: from a tool's end, from a module that could not be
// placed, from a tool that compiles nothing, from runs that are timed as processes. Job thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "worker/cache/materialise.h"
#include "worker/toolchain/tool_step.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {

/// A tool's end as the end of a run. The outputs are the adapter's business.
[[nodiscard]] RunResult run_result(ToolEnd end);

/// One warm-up, then `runs` timed runs, each a whole call of `run`; stops at the first that fails.
[[nodiscard]] TimeResult time_runs(std::string what, int runs,
                                   const std::function<RunResult()>& run);
/// A timing that came to nothing, as the run that it needed did.
[[nodiscard]] TimeResult not_timed(RunResult problem);

/// Outcomes of `count` layers where there is nothing to compile and nothing to hand over.
[[nodiscard]] std::vector<domain::Outcome> nothing_to_compile(std::size_t count);
/// Outcome of compiling with a tool that compiles nothing: the artifact is the layer's module.
[[nodiscard]] domain::Outcome module_as_artifact(const domain::Layer& layer,
                                                 const std::string& tool);

/// Why a module could not be placed, as the end of a run.
[[nodiscard]] RunResult not_placed(const cache::Placed& placed);
/// The same as the end of a compile.
void set_not_placed(domain::Outcome& out, const cache::Placed& placed);

}  // namespace layerfarm::worker::toolchain
