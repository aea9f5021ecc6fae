// The analyze job over the real reader, ONNX Runtime and the real importer.
#include <doctest/doctest.h>

#include <set>

#include "shared/protocol/codec.h"
#include "tests/system/toolchain/real_bench.h"
#include "worker/toolchain/analyze_stage.h"
#include "worker/toolchain/prepare_stage.h"

using namespace layerfarm;
using domain::Ending;
using domain::Outcome;

namespace {

std::string sample(const std::string& name) {
  return std::string(test::kTestsFolder) + "/data/models/" + name;
}

Outcome analyze(test::RealBench& bench, const std::string& model,
                std::vector<std::pair<std::string, std::int64_t>> dims = {}) {
  return worker::toolchain::AnalyzeStage().run({.model_path = model, .dims = std::move(dims)},
                                               bench.step);
}

domain::ModelAnalysis analysis_of(test::RealBench& bench, const Outcome& outcome) {
  REQUIRE_MESSAGE(outcome.ending == Ending::Done,
                  outcome.diagnostic.cause << ": " << outcome.diagnostic.text);
  auto decoded = protocol::decode_analysis(bench.blobs.get(*outcome.analysis).value());
  REQUIRE(decoded);
  return *decoded;
}

}  // namespace

TEST_CASE(
    "each layer of the sample models has a place in the importer's module and runs on the "
    "reference engine with its own inputs") {
  test::RealBench bench;
  for (const char* name : {"gen_tiny_transformer.onnx", "gen_repeat_cnn.onnx", "gen_odd.onnx"}) {
    const auto analysis = analysis_of(bench, analyze(bench, sample(name), {{"length", 3}}));
    CHECK_MESSAGE(analysis.location_problem.empty(), analysis.location_problem);
    REQUIRE(analysis.locations.size() == analysis.layers.size());
    CHECK_FALSE(analysis.importer_version.empty());
    std::set<base::Digest> seen;
    for (std::size_t i = 0; i < analysis.layers.size(); ++i) {
      const domain::Layer& layer = analysis.layers[i];
      CHECK(analysis.locations[i].op_type == layer.op_type);
      CHECK_MESSAGE(layer.problem.empty(), layer.id << ": " << layer.problem);
      if (!seen.insert(layer.signature).second) continue;
      const Outcome prepared = worker::toolchain::prepare_stage(layer, {}, bench.step);
      REQUIRE_MESSAGE(prepared.ending == Ending::Done,
                      layer.id << ": " << prepared.diagnostic.text);
      CHECK(prepared.prepared->expected_types == layer.outputs);
    }
  }
}

TEST_CASE("shapes that only a run shows come from ONNX Runtime") {
  test::RealBench bench;
  const auto analysis = analysis_of(bench, analyze(bench, sample("run_shapes.onnx")));
  REQUIRE(analysis.layers.size() == 3);
  for (const domain::Layer& layer : analysis.layers) {
    CHECK_MESSAGE(layer.problem.empty(), layer.problem);
    const Outcome prepared = worker::toolchain::prepare_stage(layer, {}, bench.step);
    CHECK_MESSAGE(prepared.ending == Ending::Done, layer.id << ": " << prepared.diagnostic.text);
  }
  REQUIRE(analysis.notes.size() == 1);
  CHECK(analysis.notes[0] == "the shapes of 4 values were found by running the model");
}

TEST_CASE("a file that is no model and a reader without memory each end as one clear error") {
  test::RealBench bench;
  const auto broken = bench.folder.path() / "not a model.onnx";
  REQUIRE(base::write_file_atomically(broken, "hello", base::Sync::No));
  const Outcome refused = analyze(bench, broken.string());
  CHECK(refused.ending == Ending::Refused);
  CHECK(refused.diagnostic.text == "not a model.onnx: is not an ONNX model");
  CHECK_FALSE(refused.analysis);
  bench.step.limits.memory_bytes = std::int64_t{4} << 20;
  const Outcome over = analyze(bench, sample("huge_weight.onnx"));
  CHECK(over.ending != Ending::Done);
  CHECK(over.diagnostic.text.starts_with("huge_weight.onnx: "));
}

TEST_CASE("a layer with 400 MB of constants is taken apart without holding them in memory") {
  test::RealBench bench;
  bench.step.limits.memory_bytes = std::int64_t{200} << 20;
  const auto analysis = analysis_of(bench, analyze(bench, sample("huge_weight.onnx")));
  const domain::Layer& layer = analysis.layers.back();
  CHECK(layer.op_type == "MatMul");
  REQUIRE(layer.module.data.size() == 1);
  CHECK(layer.module.data[0].bytes == std::uint64_t{25088} * 4096 * 4);
  CHECK(std::filesystem::file_size(bench.blobs.path(layer.module.data[0].blob)) ==
        layer.module.data[0].bytes);
  CHECK(layer.mac_count == std::int64_t{25088} * 4096);
}
