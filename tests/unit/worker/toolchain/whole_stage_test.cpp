#include "worker/toolchain/whole_stage.h"

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "shared/protocol/codec.h"
#include "tests/support/worker/toolchain_bench.h"

using namespace layerfarm;
using namespace layerfarm::worker;
using namespace layerfarm::worker::toolchain;
using domain::DType;
using domain::Ending;
using domain::Outcome;
using nlohmann::json;

namespace {

std::string floats(const std::vector<float>& values) {
  std::string out(values.size() * 4, '\0');
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

/// Gives what the test says, by layer, and notes what each was fed.
class FakeToolchain final : public Toolchain {
 public:
  Needs wanted;
  std::map<std::string, std::vector<std::string>> gives;  ///< by layer id
  std::map<std::string, Ending> compile_endings;
  std::map<std::string, Ending> run_endings;
  std::vector<std::string> calls;
  std::map<std::string, std::vector<std::string>> fed;
  std::vector<std::string> map;
  const base::BlobFolder* blobs = nullptr;

  std::string says = "gone";
  [[nodiscard]] std::string_view name() const override { return "fake"; }
  [[nodiscard]] Needs needs(const domain::ChipSpec&) const override { return wanted; }
  [[nodiscard]] Probe probe(const domain::ChipSpec&) const override { return {}; }
  std::vector<Outcome> compile(const domain::ChipSpec&, const domain::ExecutorSpec& executor,
                               std::span<const CompileJob> jobs, StepContext&) override {
    std::vector<Outcome> out;
    std::string call = "compile " + executor.name + ":";
    for (const CompileJob& job : jobs) {
      call += " " + job.layer->id;
      if (job.executors != nullptr) {
        map = *job.executors;
        CHECK(executor.options.empty());
      }
      Outcome& one = out.emplace_back();
      one.ending =
          compile_endings.contains(job.layer->id) ? compile_endings[job.layer->id] : Ending::Done;
      if (one.ending == Ending::Done) {
        one.artifact.emplace();
      } else {
        one.diagnostic = {.where = "compile", .cause = "refused", .text = "no", .raw = {}};
      }
    }
    calls.push_back(call);
    return out;
  }
  RunResult run(const domain::ChipSpec&, const domain::ExecutorSpec& executor, const RunJob& job,
                StepContext& context) override {
    const std::string& id = job.layer->id;
    calls.push_back("run " + executor.name + ": " + id);
    for (const base::Digest& input : job.prepared->inputs)
      fed[id].push_back(blobs->get(input).value());
    RunResult out;
    out.ending = run_endings.contains(id) ? run_endings[id] : Ending::Done;
    if (out.ending != Ending::Done) {
      out.diagnostic = {.where = "run", .cause = "crashed: SIGSEGV", .text = says, .raw = {}};
      return out;
    }
    out.run_us = 5;
    for (const std::string& bytes : gives.at(id)) {
      out.outputs.push_back(context.scratch / std::to_string(out.outputs.size()));
      std::ofstream(out.outputs.back(), std::ios::binary) << bytes;
      out.types.push_back({DType::Float32, {2}});
    }
    return out;
  }
  TimeResult time(const domain::ChipSpec&, const domain::ExecutorSpec&, const RunJob&, int,
                  StepContext&) override {
    return {};
  }
};

const domain::TensorType kType{DType::Float32, {2}};

/// x -> s1 (e0) -> a -> s2 (e1) -> b -> s3 (e0), which takes a too -> y.
struct WholeBench : test::ToolBench {
  FakeToolchain tool;
  domain::ChipSpec chip;
  domain::ModelAnalysis model;
  domain::WholeRequest request;
  domain::Tolerance tolerance;
  /// What the reference gives, in the order of the layer that is asked about.
  std::vector<std::string> reference = {floats({1, 2})};

  WholeBench() {
    tool.blobs = &blobs;
    chip.name = "c";
    for (const char* name : {"e0", "e1"}) chip.executors.emplace_back().name = name;
    add("s1", {"x"}, {"a"});
    add("s2", {"a"}, {"b"});
    add("s3", {"b", "a"}, {"y"});
    add("whole", {"x"}, {"y"});
    add("probed", {"x"}, {"y", "a", "b"});
    model.segments = {{"e0", 1, {"Add_a"}}, {"e1", 2, {"Neg_b", "If_b"}}, {"e0", 3, {}}};
    model.operators = 6;
    tool.gives = {{"s1", {floats({7, 7})}},
                  {"s2", {floats({8, 8})}},
                  {"s3", {floats({1, 2})}},
                  {"whole", {floats({1, 2})}}};
    helpers.on_ort = [this](const std::string& text) {
      const json asked = json::parse(text);
      json outputs = json::array();
      for (const std::string& bytes : reference) {
        const std::string file = asked.at("output_folder").get<std::string>() + "/output_" +
                                 std::to_string(outputs.size()) + ".bin";
        std::ofstream(file, std::ios::binary) << bytes;
        outputs.push_back({{"file", file}, {"dtype", 1}, {"dims", {2}}});
      }
      return test::answered(json{{"ok", true}, {"run_us", 1}, {"outputs", outputs}}.dump());
    };
  }
  void add(const std::string& id, const std::vector<std::string>& inputs,
           const std::vector<std::string>& outputs) {
    domain::Layer& layer = model.layers.emplace_back();
    layer.id = id;
    layer.module.blob = blobs.put("module " + id).value();
    layer.input_names = inputs;
    layer.output_names = outputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      layer.inputs.push_back({.type = kType});
      layer.draw_order.push_back(static_cast<std::uint32_t>(i));
    }
    layer.outputs.assign(outputs.size(), kType);
  }
  Outcome go() {
    request.analysis = blobs.put(protocol::encode_analysis(model)).value();
    return whole_stage(tool, chip, request, {}, tolerance, context());
  }
};

}  // namespace

TEST_CASE_FIXTURE(WholeBench, "segments run in order, each on its executor, fed by name") {
  const Outcome out = go();
  REQUIRE_MESSAGE(out.ending == Ending::Done, out.diagnostic.text);
  CHECK(out.stage == domain::Stage::Whole);
  CHECK(tool.calls == std::vector<std::string>{"compile e0: s1", "compile e0: s3", "compile e1: s2",
                                               "run e0: s1", "run e1: s2", "run e0: s3"});
  CHECK(tool.fed["s2"] == std::vector<std::string>{floats({7, 7})});
  CHECK(tool.fed["s3"] == std::vector<std::string>{floats({8, 8}), floats({7, 7})});
  REQUIRE(out.whole.has_value());
  REQUIRE(out.whole->outputs.size() == 1);
  CHECK(out.whole->outputs[0].max_abs == 0);
  CHECK(out.whole->expected_outputs == 1);
  CHECK(out.whole->bytes_crossed == 16);  // a to e1, b to e0; a stays with e0 for s3
  CHECK(out.whole->reference.rfind("onnxruntime", 0) == 0);
  REQUIRE(out.whole->segments.size() == 3);
  CHECK(out.whole->segments[1] == domain::SegmentRun{.executor = "e1",
                                                     .operators = 2,
                                                     .results = {"b"},
                                                     .boundary = {},
                                                     .run_us = 5,
                                                     .note = ""});
}

TEST_CASE_FIXTURE(WholeBench, "segments of one executor are compiled together where that pays") {
  tool.wanted.batch = 4;
  REQUIRE(go().ending == Ending::Done);
  CHECK(tool.calls.at(0) == "compile e0: s1 s3");
}

TEST_CASE_FIXTURE(WholeBench, "nothing is compiled where the toolchain needs no artifact") {
  tool.wanted.compile = false;
  REQUIRE(go().ending == Ending::Done);
  CHECK(tool.calls.at(0) == "run e0: s1");
}

TEST_CASE_FIXTURE(WholeBench, "a difference at the outputs is in the numbers") {
  tool.gives["s3"] = {floats({1, 3})};
  const Outcome out = go();
  REQUIRE(out.ending == Ending::Done);
  CHECK(out.whole->outputs.at(0).max_abs == 1);
  CHECK(out.whole->outputs.at(0).num_failed == 1);
}

TEST_CASE_FIXTURE(WholeBench, "boundaries are compared when asked, with the model's own values") {
  request.check_boundaries = true;
  reference = {floats({1, 2}), floats({7, 7}), floats({8, 9})};
  const Outcome out = go();
  REQUIRE_MESSAGE(out.ending == Ending::Done, out.diagnostic.text);
  const auto& segments = out.whole->segments;
  CHECK(segments.at(0).boundary.at(0).max_abs == 0);
  CHECK(segments.at(1).boundary.at(0).max_abs == 1);
  CHECK(segments.at(2).boundary.at(0).max_abs == 0);
}

TEST_CASE_FIXTURE(WholeBench, "results that the format leaves open are compared by size alone") {
  model.layers[3].open_outputs = {0};
  tool.gives["s3"] = {floats({5, 5})};
  const Outcome out = go();
  REQUIRE(out.ending == Ending::Done);
  CHECK(out.whole->outputs.at(0).num_failed == 0);
}

TEST_CASE_FIXTURE(WholeBench, "a segment that fails says which it is, and nothing runs after it") {
  tool.run_endings["s2"] = Ending::Crashed;
  const Outcome crashed = go();
  CHECK(crashed.ending == Ending::Crashed);
  CHECK(crashed.diagnostic.text == "s2 on e1: gone");
  CHECK(crashed.diagnostic.cause == "crashed: SIGSEGV");
  CHECK(tool.calls.back() == "run e1: s2");
  tool.compile_endings["s3"] = Ending::Refused;
  const Outcome refused = go();
  CHECK(refused.ending == Ending::Refused);
  CHECK(refused.diagnostic.where == "compile");
  CHECK(refused.diagnostic.text == "s3 on e0: no");
}

TEST_CASE_FIXTURE(WholeBench,
                  "nodes that a tool names by number are told as the model's operators") {
  tool.run_endings["s2"] = Ending::Crashed;
  tool.says = "node `n1` of n0, not 'n0'; no \"n2\", 'n', 'n1, n1' or `n1x`, at the end `n0";
  CHECK(go().diagnostic.text ==
        "s2 on e1: node `n1` (If_b) of n0, not 'n0' (Neg_b); no \"n2\", 'n', 'n1, n1' or `n1x`, at "
        "the end `n0");
}

TEST_CASE_FIXTURE(WholeBench, "a toolchain with a map gets the model as it is, and its executors") {
  tool.wanted.takes_map = true;
  chip.executors[0].options = {{"compiler_options", "--of-e0"}};
  request.executors = {"e1", "", "e0", "e0", "e1", "e1"};
  const Outcome out = go();
  REQUIRE_MESSAGE(out.ending == Ending::Done, out.diagnostic.text);
  CHECK(tool.calls == std::vector<std::string>{"compile e0: whole", "run e0: whole"});
  CHECK(tool.map == request.executors);
  REQUIRE(out.whole->segments.size() == 1);
  CHECK(out.whole->segments[0].executor == "by map");
  CHECK(out.whole->segments[0].operators == 6);
  CHECK(out.whole->bytes_crossed == 0);
}

TEST_CASE_FIXTURE(WholeBench, "what cannot be run is refused before anything is compiled") {
  SUBCASE("an executor that the chip lacks") {
    model.segments[1].executor = "e9";
    CHECK(go().diagnostic.text == "chip c has no executor 'e9'");
  }
  SUBCASE("a segment that cannot be fed") {
    model.layers[1].problem = "the shape of input 'a' is unknown";
    CHECK(go().diagnostic.text == "s2: the shape of input 'a' is unknown");
  }
  SUBCASE("a toolchain that takes no inputs") {
    tool.wanted.prepare = false;
    CHECK(go().ending == Ending::Refused);
  }
  SUBCASE("an analysis without segments") {
    model.segments.clear();
    CHECK(go().ending == Ending::Refused);
  }
  CHECK(tool.calls.empty());
}

TEST_CASE_FIXTURE(WholeBench, "an analysis that was pruned is named as lost") {
  request.analysis = base::digest_of("nothing");
  const Outcome out = whole_stage(tool, chip, request, {}, tolerance, context());
  CHECK(out.ending == Ending::LostBlob);
  CHECK(out.lost == std::vector<base::Digest>{request.analysis});
}
