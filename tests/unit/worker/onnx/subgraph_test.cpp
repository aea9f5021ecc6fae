#include "worker/onnx/subgraph.h"

#include <onnx/checker.h>

#include "tests/unit/worker/onnx/bench.h"

using namespace layerfarm;
using namespace layerfarm::test;

namespace {

const char* const kChain =
    "(float[1,4] x) => (float[1,4] y, float[1,4] b) <float[4] w = {1,2,3,4}> { c = "
    "Constant<value_floats = [1.0, 1.0, 1.0, 1.0]>() a = Relu(x) b = Mul(a, w) d = Add(b, c) e = "
    "Constant<value_floats = [2.0, 2.0, 2.0, 2.0]>() f = Sub(d, e) y = Add(f, a) }";

struct SubgraphBench : OnnxBench {
  std::filesystem::path file = write(graph_model(kChain));

  base::Result<lf::AnalyzeAnswer> part(const std::string& from, const std::string& to,
                                       std::optional<std::filesystem::path> outline = {}) const {
    return try_analyze({.model_path = file.string(), .subgraph = domain::SubgraphRange{from, to}},
                       outline);
  }
};

}  // namespace

TEST_CASE("a subgraph has the layers between two nodes and numbers of its own") {
  const SubgraphBench bench;
  for (const auto& [from, to] :
       {std::pair{"b", "f"}, std::pair{"Mul_b", "Sub_f"}, std::pair{"b", "Sub_f"}}) {
    const auto outline = bench.folder / "outline.onnx";
    const auto answer = bench.part(from, to, outline);
    INFO((answer ? std::string() : answer.error().text()));
    REQUIRE(answer);
    const domain::ModelAnalysis& analysis = answer->analysis;
    CHECK(analysis.subgraph == domain::NodeRange{1, 3});
    CHECK(analysis.operators == 3);
    REQUIRE(analysis.layers.size() == 3);
    CHECK(analysis.layers[0].id == "Mul_b");
    CHECK(analysis.layers[2].id == "Sub_f");
    for (std::uint32_t i = 0; i < 3; ++i) {
      CHECK(analysis.layers[i].orig_index == i);
      CHECK(analysis.layers[i].node_index == i);
    }
    CHECK(analysis.notes.at(0) ==
          std::string("[Subgraph] Resolved '") + from + "' -> 1, '" + to + "' -> 3");

    pb::ModelProto module;
    REQUIRE(module.ParseFromString(*base::read_file(outline)));
    const pb::GraphProto& graph = module.graph();
    CHECK(graph.name() == "subgraph_1_to_3");
    REQUIRE(graph.node_size() == 4);  // the Constant between comes along
    CHECK(graph.node(2).op_type() == "Constant");
    REQUIRE(graph.input_size() == 1);
    CHECK(graph.input(0).name() == "a");
    // The weight, and the Constant node before the subgraph.
    REQUIRE(graph.initializer_size() == 2);
    CHECK(graph.initializer(0).name() == "c");
    CHECK(graph.initializer(1).name() == "w");
    // What leaves it: a result of the model, and what a later node takes.
    REQUIRE(graph.output_size() == 2);
    CHECK(graph.output(0).name() == "b");
    CHECK(graph.output(1).name() == "f");
    pb::checker::check_model(module, /*full_check=*/true);
  }
}

TEST_CASE("a layer is the same work in a subgraph and in the whole model") {
  const SubgraphBench bench;
  const auto part = bench.part("b", "f");
  const auto whole = bench.try_analyze(bench.file);
  REQUIRE(part);
  REQUIRE(whole);
  for (const domain::Layer& layer : part->analysis.layers)
    CHECK(layer.signature == layer_named(whole->analysis, layer.id).signature);
  CHECK(part->analysis.model_digest == whole->analysis.model_digest);
  CHECK_FALSE(whole->analysis.subgraph.has_value());
}

TEST_CASE("shape arithmetic before a subgraph is known inside it") {
  const OnnxBench bench;
  const auto file = bench.write(graph_model(
      "(float[2,6] x) => (float[N,M] y) <int64[1] three = {3}> { s = Shape(x) at = "
      "Constant<value_int = 0>() n = Gather(s, at) axes = Constant<value_ints = [0]>() u = "
      "Unsqueeze(n, axes) t = Concat<axis = 0>(u, three, u) h = Relu(x) y = Reshape(h, t) }"));
  const auto answer =
      bench.try_analyze({.model_path = file.string(), .subgraph = domain::SubgraphRange{"h", "y"}});
  REQUIRE(answer);
  REQUIRE(answer->analysis.layers.size() == 2);
  const domain::Layer& reshape = answer->analysis.layers[1];
  CHECK(reshape.inputs.size() == 1);
  CHECK(reshape.outputs.at(0).dims == std::vector<std::int64_t>{2, 3, 2});
}

TEST_CASE("names that are not there are refused with those that are") {
  const SubgraphBench bench;
  const auto from = bench.part("nothing", "y");
  REQUIRE_FALSE(from);
  CHECK(from.error().text() ==
        "Could not resolve --subgraph-from='nothing'. Available: ['Relu_a', 'a', 'Mul_b', 'b', "
        "'Add_d']...");
  const auto to = bench.part("a", "c");  // a Constant is no layer
  REQUIRE_FALSE(to);
  CHECK(to.error().text().starts_with("Could not resolve --subgraph-to='c'. "));
}

TEST_CASE("a subgraph that ends before it begins is no error and has no layers") {
  const SubgraphBench bench;
  const auto answer = bench.part("f", "b");
  REQUIRE(answer);
  CHECK(answer->analysis.layers.empty());
  CHECK(answer->analysis.skipped ==
        "--subgraph-from is node 3, which comes after --subgraph-to, node 1");
}

TEST_CASE("a subgraph is one of the converted model") {
  const OnnxBench bench;
  const auto file = bench.write(graph_model(
      "(float[1,8] x) => (float[1,2] y) <int64[1] k = {2}> { h = Relu(x) t, at = TopK(h, k) y = "
      "Abs(t) }"));
  const auto answer = bench.try_analyze({.model_path = file.string(),
                                         .convert = {.bf16 = true},
                                         .subgraph = domain::SubgraphRange{"h_fp32", "t_bf16"}});
  INFO((answer ? std::string() : answer.error().text()));
  REQUIRE(answer);
  REQUIRE(answer->analysis.layers.size() == 3);
  CHECK(answer->analysis.layers[0].id == "Cast_h_fp32");
  CHECK(answer->analysis.layers[1].id == "TopK_t");
  CHECK(answer->analysis.layers[2].id == "Cast_t_bf16");
}
