// Cost of keeping the report of a 10,000-layer model on disk while 1,000 results/s come in: what a
// write costs, and the share of one core at the interval of design.md (limit 6 %). Prints a JSON
// line per figure.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "coordinator/report/report_writer.h"
#include "shared/base/files.h"

using namespace layerfarm;
using namespace layerfarm::coordinator::report;

namespace {

constexpr std::size_t kLayers = 10000;
constexpr double kResultsPerSecond = 1000;
constexpr double kLimitPercent = 6;

double cpu_seconds() {
  struct rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

ReportPlan plan() {
  ReportPlan out;
  out.model_name = "bench";
  out.chip.name = "SM8550";
  out.chip.executors = {{.name = "htp", .evidence = domain::Evidence::Emulator},
                        {.name = "host", .same_engine = true}};
  out.reference = "onnxruntime 1.32.0";
  for (std::size_t i = 0; i < kLayers; ++i) {
    LayerFacts facts;
    facts.id = "Conv_/model/block" + std::to_string(i / 10) + "/conv" + std::to_string(i) +
               "/Conv_output_0";
    facts.node_name =
        "/model/block" + std::to_string(i / 10) + "/conv" + std::to_string(i) + "/Conv";
    facts.orig_index = static_cast<std::uint32_t>(i);
    facts.node_index = static_cast<std::uint32_t>(i);
    facts.mac_count = 36864;
    facts.mac_breakdown =
        R"([{"node_name": "c", "op_type": "Conv", "mac_count": 36864, "output_shape": [1, 8, 8, 8]}])";
    facts.location = std::to_string(i + 20) + ":12";
    out.layers.push_back(std::move(facts));
  }
  return out;
}

CaseResult result(std::size_t n) {
  CaseResult out;
  out.tolerance = {0.01, 0.01, 0.001};
  if (n % 7 == 0) {
    out.failure = Failure{
        true, "ToolError",
        "QNN: node validation failed, op type not supported on this target (code 3110)", "compile"};
    return out;
  }
  out.status = domain::Status::Success;
  out.max_rel_diff = 1e-4 + static_cast<double>(n) * 1.234e-9;
  out.max_abs_diff = 3e-5 + static_cast<double>(n) * 1.7e-8;
  out.numbers = Numbers{0,
                        4096,
                        1.5e-6 + static_cast<double>(n) * 3e-11,
                        out.max_rel_diff,
                        0.99999 - static_cast<double>(n) * 1e-12,
                        0,
                        n % 4096};
  out.same_engine = n % 2 == 1;
  return out;
}

void print(const char* name, double value, const char* unit, const char* peer, double limit) {
  std::printf(
      R"({"name": "%s", "value": %.4g, "unit": "%s", "peer": "%s", "peer_value": %.4g, "ratio": %.3g})"
      "\n",
      name, value, unit, peer, limit, limit > 0 ? value / limit : 0);
}

}  // namespace

int main() {
  const auto scratch =
      base::ScratchFolder::make(std::filesystem::temp_directory_path(), "layerfarm-bench");
  if (!scratch) return 1;
  ReportState state(plan());
  ReportWriter writer(state, report_paths(scratch->path(), "bench"));

  // All cases are known but one: what is left is the greatest file there is.
  std::size_t n = 0;
  const double fold_start = cpu_seconds();
  for (; n < 2 * kLayers; ++n) state.settle(n / 2, n % 2, result(n));
  const double fold_us = (cpu_seconds() - fold_start) * 1e6 / static_cast<double>(n);
  if (!writer.write(Phase::Running)) return 1;

  double write_cpu = 0;
  double write_wall = 0;
  double slowest_wall = 0;
  constexpr int kWrites = 20;
  for (int round = 0; round < kWrites; ++round) {
    for (int i = 0; i < static_cast<int>(kResultsPerSecond); ++i, ++n)
      state.settle(n / 2 % kLayers, n % 2, result(n));
    const double cpu = cpu_seconds();
    const auto wall = std::chrono::steady_clock::now();
    if (!writer.write(Phase::Running)) return 1;
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
    write_cpu += cpu_seconds() - cpu;
    write_wall += seconds;
    slowest_wall = std::max(slowest_wall, seconds);
  }
  const double cpu_per_write = write_cpu / kWrites;
  const double wall_per_write = write_wall / kWrites;
  const double interval =
      std::chrono::duration<double>(
          write_interval(std::chrono::nanoseconds(static_cast<std::int64_t>(wall_per_write * 1e9))))
          .count();
  const double share = 100 * (cpu_per_write / interval + fold_us * 1e-6 * kResultsPerSecond);
  const auto size =
      file_state(writer.paths().report)->size + file_state(writer.paths().compiler)->size;
  const double finish_start = cpu_seconds();
  if (!writer.write(Phase::Finished)) return 1;
  print("report.fold", fold_us, "us/result", "", 0);
  print("report.write_cpu", cpu_per_write * 1e3, "ms/write", "bytes of both files",
        static_cast<double>(size));
  print("report.write_wall", wall_per_write * 1e3, "ms/write", "slowest", slowest_wall * 1e3);
  print("report.finish", (cpu_seconds() - finish_start) * 1e3, "ms", "", 0);
  print("report.on_disk_within", interval + slowest_wall, "s", "interval of the design", interval);
  print("report.share_of_core", share, "%", "limit", kLimitPercent);
  return share < kLimitPercent ? 0 : 1;
}
