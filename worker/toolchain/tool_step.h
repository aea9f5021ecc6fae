// ToolStep: one run of a tool, and the one place where the end of a child becomes an Ending with a
// Diagnostic (design.md, section 6). Job thread.
#pragma once

#include <string>
#include <vector>

#include "shared/domain/outcome.h"
#include "worker/process/process_runner.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {

/// Bounds of the lease's limits for a step that does `units` pieces of work at once: time grows
/// with them, nothing else does.
[[nodiscard]] process::Bounds compile_bounds(const domain::Limits& limits, std::size_t units = 1);
[[nodiscard]] process::Bounds run_bounds(const domain::Limits& limits);

/// What is asked of a tool.
struct ToolCall {
  process::Command command;
  std::string where;  ///< the step, as reports name it: "compile", "run"
  std::string tool;   ///< tool and version
};

/// How it went.
struct ToolEnd {
  domain::Ending ending = domain::Ending::Infrastructure;
  domain::Diagnostic diagnostic;  ///< ending != Done
  process::ProcessResult result;
};

/// How a child's end is judged. `said` is what it printed that may hold the reason; nothing is
/// stored.
[[nodiscard]] domain::Ending ending_of(const process::ProcessResult& result);
[[nodiscard]] std::string cause_of(const process::ProcessResult& result,
                                   const process::Bounds& bounds);

/// Everything about a step for people who look into a failure: command line, versions, how it
/// ended, all it printed. Kept as a blob (`--keep-failed` writes it out).
[[nodiscard]] std::string raw_report(const ToolCall& call, const process::ProcessResult& result);

/// Runs the tool; on failure the diagnostic is complete, its raw report stored.
[[nodiscard]] ToolEnd run_tool(const ToolCall& call, StepContext& context);

/// A call of a run program in the step's folder, on the worker's cores, within the run's limits.
[[nodiscard]] ToolCall run_call(std::string tool, std::vector<std::string> argv,
                                const StepContext& context);

/// A diagnostic of the adapter's own, not of a tool's end.
[[nodiscard]] domain::Diagnostic diagnostic(std::string where, std::string cause, std::string text);
/// An Error of ours (disk, blob store) as the end of a step: not the case's fault.
[[nodiscard]] domain::Diagnostic infrastructure(std::string where, const base::Error& error);

}  // namespace layerfarm::worker::toolchain
