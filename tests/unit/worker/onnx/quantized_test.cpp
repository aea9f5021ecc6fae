#include "worker/onnx/quantized.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/worker/onnx/bench.h"

using namespace layerfarm;
using namespace layerfarm::test;
using worker::onnx::parse_quantized_modules;
using worker::onnx::QuantizedModule;
using worker::onnx::replace_modules;

namespace {

/// Two layers whose values have names out of alphabetical order; `table` is gathered by an index.
const char* const kFloat =
    R"((float[1, 3] z, float[1, 3] a, int64[1] at) => (float[1, 3] sum, float[1, 3] row)
  <float[5, 3] table = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6}> {
    [add] sum = Add(z, a)
    [look] row = Gather(table, at)
  })";

const char* const kAdd = R"((int8[1, 3] i0_q, float[1, 3] i1) => (int8[1, 3] o0_q)
  <float s = {0.5}, int8 z = {0}> {
    i1_q = QuantizeLinear(i1, s, z)
    i1_d = DequantizeLinear(i1_q, s, z)
    i0_d = DequantizeLinear(i0_q, s, z)
    [n0] o0 = Add(i0_d, i1_d)
    o0_q = QuantizeLinear(o0, s, z)
  })";

const char* const kGather = R"((int64[1] i0) => (float[1, 3] o0)
  <int8[5, 3] t = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6}, float s = {0.5}, int8 z = {0}> {
    d = DequantizeLinear(t, s, z)
    [n0] o0 = Gather(d, i0)
  })";

struct QuantizedBench : OnnxBench {
  domain::ModelAnalysis analysis = analyze(graph_model(kFloat));

  std::filesystem::path file(const char* text, const std::string& name) const {
    return write(graph_model(text).SerializeAsString(), name);
  }
};

}  // namespace

TEST_CASE("a layer takes the quantized module and keeps its own names and places") {
  QuantizedBench bench;
  const domain::Layer plain = bench.analysis.layers[0];
  replace_modules({{.file = bench.file(kAdd, "add.onnx"),
                    .layers = {0},
                    .inputs = {"i0_q", "i1"},
                    .outputs = {"o0_q"}}},
                  bench.blobs, bench.analysis);
  const domain::Layer& layer = bench.analysis.layers[0];
  CHECK(layer.quantized == true);
  CHECK(layer.quantize_note.empty());
  CHECK(layer.problem.empty());
  CHECK(layer.id == "Add_sum");
  CHECK(layer.node_name == "add");
  CHECK(layer.node_index == plain.node_index);
  CHECK(layer.signature != plain.signature);
  CHECK(layer.module.blob != plain.module.blob);
  // The module takes its inputs in the order in which its nodes use them: i1 first.
  REQUIRE(layer.inputs.size() == 2);
  CHECK(layer.input_names == std::vector<std::string>{"a", "z"});
  CHECK(layer.inputs[0].type.dtype == domain::DType::Float32);
  CHECK(layer.inputs[1].type == domain::TensorType{domain::DType::Int8, {1, 3}});
  CHECK(layer.inputs[1].lo == -40);
  CHECK(layer.draw_order == std::vector<std::uint32_t>{0, 1});
  CHECK(layer.output_names == std::vector<std::string>{"sum"});
  CHECK(layer.outputs[0] == domain::TensorType{domain::DType::Int8, {1, 3}});
  CHECK(bench.module(layer.module).graph().node_size() == 5);
  CHECK_FALSE(bench.analysis.layers[1].quantized);
}

TEST_CASE("an index keeps its range, though its table is no constant any more") {
  QuantizedBench bench;
  CHECK(bench.analysis.layers[1].inputs[0].hi == 5);
  replace_modules(
      {{.file = bench.file(kGather, "g.onnx"), .layers = {1}, .inputs = {"i0"}, .outputs = {"o0"}}},
      bench.blobs, bench.analysis);
  const domain::Layer& layer = bench.analysis.layers[1];
  CHECK(layer.quantized == true);
  CHECK(layer.inputs[0].lo == 0);
  CHECK(layer.inputs[0].hi == 5);
}

TEST_CASE("one module serves all layers that have it, and equal ones have equal signatures") {
  OnnxBench bench;
  auto analysis = bench.analyze(graph_model(R"((float[2, 3] x) => (float[2, 4] y, float[2, 4] q)
    <float[3, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}> {
      [one] y = MatMul(x, w)
      q = MatMul(x, w)
    })"));
  const auto file = bench.write(graph_model(R"((float[2, 3] i0) => (float[2, 4] o0)
    <int8[3, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, float s = {0.5}, int8 z = {0}> {
      q = QuantizeLinear(i0, s, z)
      d = DequantizeLinear(q, s, z)
      wd = DequantizeLinear(w, s, z)
      [n0] o0 = MatMul(d, wd)
    })")
                                    .SerializeAsString(),
                                "m.onnx");
  replace_modules({{.file = file, .layers = {0, 1}, .inputs = {"i0"}, .outputs = {"o0"}}},
                  bench.blobs, analysis);
  CHECK(analysis.layers[0].signature == analysis.layers[1].signature);
  // Multiplications are those of the quantized form; the record names the node as the model does.
  CHECK(analysis.layers[0].mac_count == 2 * 4 * 3);
  const auto records = nlohmann::json::parse(analysis.layers[0].mac_breakdown);
  REQUIRE(records.size() == 1);
  CHECK(records[0].at("node_name") == "one");
  CHECK_FALSE(nlohmann::json::parse(analysis.layers[1].mac_breakdown)[0].contains("node_name"));
}

TEST_CASE("a module that does not fit, or cannot be read, leaves the layer in float and says why") {
  QuantizedBench bench;
  const domain::Layer plain = bench.analysis.layers[0];
  const auto stays = [&](const QuantizedModule& module, const std::string& why) {
    replace_modules({module}, bench.blobs, bench.analysis);
    const domain::Layer& layer = bench.analysis.layers[0];
    CHECK(layer.quantized == false);
    CHECK(layer.quantize_note.find(why) != std::string::npos);
    CHECK(layer.signature == plain.signature);
    CHECK(layer.module == plain.module);
    CHECK(layer.inputs == plain.inputs);
  };
  const auto add = bench.file(kAdd, "add.onnx");
  stays({add, {0}, {"i0_q", "other"}, {"o0_q"}}, "inputs and outputs are not those of the layer");
  stays({add, {0}, {"i0_q", "i1"}, {}}, "inputs and outputs are not those of the layer");
  stays({bench.folder / "none.onnx", {0}, {"i0_q", "i1"}, {"o0_q"}}, "cannot be used");
  stays({bench.write("text", "t.onnx"), {0}, {"i0_q", "i1"}, {"o0_q"}}, "cannot be used");
  replace_modules({{add, {7}, {"i0_q", "i1"}, {"o0_q"}}}, bench.blobs, bench.analysis);
}

TEST_CASE("the list of modules is checked") {
  const auto list = parse_quantized_modules(
      R"([{"file": "a.onnx", "layers": [0, 2], "inputs": ["x"], "outputs": ["y"]}])");
  REQUIRE(list);
  REQUIRE(list->size() == 1);
  CHECK((*list)[0].layers == std::vector<std::uint32_t>{0, 2});
  for (const char* bad : {"", "[1]", R"([{"file": 1}])", R"([{"file": "a", "layers": [-1.5]}])"})
    CHECK_FALSE(parse_quantized_modules(bad));
}
