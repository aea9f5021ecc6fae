#include "worker/toolchain/tool_results.h"

#include <utility>

namespace layerfarm::worker::toolchain {

using domain::Ending;
using domain::Outcome;

RunResult run_result(ToolEnd end) {
  RunResult out;
  out.ending = end.ending;
  out.diagnostic = std::move(end.diagnostic);
  out.run_us = end.result.wall_us;
  return out;
}

TimeResult time_runs(std::string what, int runs, const std::function<RunResult()>& run) {
  TimeResult out;
  out.what = std::move(what);
  for (int i = 0; i <= runs; ++i) {
    RunResult one = run();
    out.ending = one.ending;
    out.diagnostic = std::move(one.diagnostic);
    if (out.ending != Ending::Done) return out;
    if (i > 0) out.runs_us.push_back(one.run_us);
  }
  return out;
}

TimeResult not_timed(RunResult problem) {
  TimeResult out;
  out.ending = problem.ending;
  out.diagnostic = std::move(problem.diagnostic);
  return out;
}

std::vector<Outcome> nothing_to_compile(std::size_t count) {
  Outcome done;
  done.stage = domain::Stage::Compile;
  done.ending = Ending::Done;
  done.artifact.emplace();
  return {count, done};
}

Outcome module_as_artifact(const domain::Layer& layer, const std::string& tool) {
  Outcome out;
  out.stage = domain::Stage::Compile;
  out.ending = Ending::Done;
  out.tool = tool;
  out.artifact = domain::Artifact{.blob = layer.module.blob,
                                  .data = layer.module.data,
                                  .function = {},
                                  .compile_us = 0,
                                  .batch = 1,
                                  .note = {}};
  return out;
}

RunResult not_placed(const cache::Placed& placed) {
  RunResult out;
  out.ending = placed.lost.empty() ? Ending::Infrastructure : Ending::LostBlob;
  out.lost = placed.lost;
  out.diagnostic =
      diagnostic("import", placed.lost.empty() ? "infrastructure" : "lost blob", placed.problem);
  return out;
}

void set_not_placed(Outcome& out, const cache::Placed& placed) {
  RunResult problem = not_placed(placed);
  out.ending = problem.ending;
  out.diagnostic = std::move(problem.diagnostic);
  out.lost = std::move(problem.lost);
}

}  // namespace layerfarm::worker::toolchain
