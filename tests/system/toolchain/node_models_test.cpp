// ONNX's own node models through the iree adapter: a batch must answer like single compiles,
// whatever IREE makes of a model. They are there after `scripts/setup --tests`; without them
// nothing is tested here. LAYERFARM_TEST_NODE_MODELS=N takes N of them instead of a few.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "shared/base/places.h"
#include "tests/system/toolchain/real_bench.h"

using namespace layerfarm;
using namespace layerfarm::worker::toolchain;
namespace fs = std::filesystem;

namespace {

std::vector<fs::path> node_models() {
  std::vector<fs::path> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(base::dependencies_folder(), error)) {
    if (entry.path().filename().string().rfind("onnx-testdata-", 0) != 0 ||
        !fs::exists(entry.path() / ".complete"))
      continue;
    for (const auto& model : fs::directory_iterator(entry.path() / "node"))
      out.push_back(model.path() / "model.onnx");
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("node models compiled in batches get the endings and texts that they get alone") {
  std::vector<fs::path> models = node_models();
  if (models.empty()) {
    MESSAGE("no node models here (scripts/setup --tests): nothing tested");
    return;
  }
  std::mt19937 random(5);
  std::shuffle(models.begin(), models.end(), random);
  const std::string count = base::environment("LAYERFARM_TEST_NODE_MODELS");
  models.resize(std::min<std::size_t>(models.size(), count.empty() ? 20 : std::stoul(count)));

  test::RealBench bench;
  const auto chip = bench.chip("host-cpu");
  const auto iree = make_toolchain("iree");
  std::vector<domain::Layer> layers(models.size());
  std::vector<CompileJob> jobs;
  for (std::size_t i = 0; i < models.size(); ++i) {
    layers[i].module.blob = bench.blobs.put(base::read_file(models[i]).value()).value();
    jobs.push_back({&layers[i]});
  }
  for (const auto& executor : chip.executors) {
    const auto start = std::chrono::steady_clock::now();
    const auto together = compile_stage(*iree, chip, executor, jobs, bench.step);
    const auto middle = std::chrono::steady_clock::now();
    std::map<std::string, int> endings;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const std::string name = models[i].parent_path().filename().string();
      const domain::Outcome alone =
          compile_stage(*iree, chip, executor, {&jobs[i], 1}, bench.step)[0];
      const domain::Outcome& one = together[i];
      ++endings[std::string(domain::ending_name(one.ending))];
      CHECK_MESSAGE(one.ending == alone.ending, executor.name << " " << name << ": "
                                                              << one.diagnostic.text << " / "
                                                              << alone.diagnostic.text);
      CHECK_MESSAGE(one.diagnostic.cause == alone.diagnostic.cause, executor.name << " " << name);
      CHECK_MESSAGE(one.diagnostic.text == alone.diagnostic.text, executor.name << " " << name);
      CHECK_MESSAGE(one.artifact.has_value() == alone.artifact.has_value(), name);
      if (one.artifact && alone.artifact)
        CHECK_MESSAGE(one.artifact->note == alone.artifact->note, name);
    }
    const auto seconds = [](auto from, auto to) {
      return std::chrono::duration<double>(to - from).count();
    };
    std::string text;
    for (const auto& [ending, n] : endings) text += " " + ending + " " + std::to_string(n);
    MESSAGE(executor.name << ":" << text << "; batches " << seconds(start, middle) << " s, alone "
                          << seconds(middle, std::chrono::steady_clock::now()) << " s");
  }
}
