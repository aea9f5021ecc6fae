#include "worker/onnx/layer_units.h"

#include <string>
#include <vector>

#include "tests/unit/worker/onnx/bench.h"

using namespace layerfarm;
using namespace layerfarm::test;

namespace {

std::string ops_of(const pb::ModelProto& module) {
  std::string out;
  for (const pb::NodeProto& node : module.graph().node())
    out += (out.empty() ? "" : " ") + node.op_type();
  return out;
}

struct UnitBench : OnnxBench {
  domain::ModelAnalysis units(const pb::ModelProto& model) const {
    auto answer = lf::analyze(
        {.request = {.model_path = write(model).string(), .unit = domain::LayerUnit::Qdq},
         .blobs = blobs,
         .shapes_answer = {},
         .shapes_folder = {},
         .changed_model = {}});
    INFO((answer ? std::string() : answer.error().text()));
    REQUIRE(answer);
    return answer->analysis;
  }
};

/// x is quantized, added to itself and rectified, each between conversions; the sum is read twice.
const char* const kQuantized = R"((float[4] x) => (float[4] y, float[4] sum)
  <float s = {0.5}, int8 z = {0}, int8[4] w = {1, 2, 3, 4}> {
    xq = QuantizeLinear(x, s, z)
    xd = DequantizeLinear(xq, s, z)
    wd = DequantizeLinear(w, s, z)
    a = Add(xd, wd)
    aq = QuantizeLinear(a, s, z)
    ad = DequantizeLinear(aq, s, z)
    r = Relu(ad)
    rq = QuantizeLinear(r, s, z)
    y = DequantizeLinear(rq, s, z)
    sum = Add(ad, xd)
  })";

}  // namespace

TEST_CASE("an operator takes in the conversions around it; what is left is a layer by itself") {
  UnitBench bench;
  const auto analysis = bench.units(graph_model(kQuantized, 19));
  std::vector<std::string> ids;
  for (const domain::Layer& layer : analysis.layers) ids.push_back(layer.id);
  CHECK(ids == std::vector<std::string>{"QuantizeLinear_xq", "Add_a", "Relu_r",
                                        "DequantizeLinear_y", "Add_sum"});
  const domain::Layer& add = layer_named(analysis, "Add_a");
  CHECK(ops_of(bench.module(add.module)) == "DequantizeLinear DequantizeLinear Add QuantizeLinear");
  CHECK(add.problem.empty());
  CHECK(add.input_names == std::vector<std::string>{"xq"});
  CHECK(add.output_names == std::vector<std::string>{"aq"});
  CHECK(add.inputs[0].type.dtype == domain::DType::Int8);
  CHECK(add.outputs[0].dtype == domain::DType::Int8);
  // Each reader of a dequantized value takes the conversion in, so it is no result of either.
  CHECK(ops_of(bench.module(layer_named(analysis, "Relu_r").module)) ==
        "DequantizeLinear Relu QuantizeLinear");
  CHECK(layer_named(analysis, "Relu_r").output_names == std::vector<std::string>{"rq"});
  CHECK(ops_of(bench.module(layer_named(analysis, "Add_sum").module)) ==
        "DequantizeLinear DequantizeLinear Add");
  // Places are those of the operators among all nodes.
  CHECK(analysis.operators == 10);
  CHECK(add.node_index == 3);
  CHECK(add.orig_index == 1);
  CHECK(layer_named(analysis, "Add_sum").node_index == 9);
}

TEST_CASE("a result that is also read as it is keeps its QuantizeLinear outside") {
  UnitBench bench;
  const auto analysis = bench.units(graph_model(R"((float[4] x) => (int8[4] q, float[4] n)
    <float s = {0.5}, int8 z = {0}> { r = Relu(x)  q = QuantizeLinear(r, s, z)  n = Neg(r) })",
                                                19));
  REQUIRE(analysis.layers.size() == 3);
  CHECK(ops_of(bench.module(analysis.layers[0].module)) == "Relu");
  CHECK(ops_of(bench.module(analysis.layers[1].module)) == "QuantizeLinear");
}

TEST_CASE("renaming a quantized model leaves the signatures of its units, other scales do not") {
  UnitBench bench;
  const auto plain = bench.units(graph_model(kQuantized, 19));
  std::string renamed = kQuantized;
  for (const char* name : {"aq", "ad", "xd", "wd"}) {
    for (std::size_t at = 0; (at = renamed.find(name, at)) != std::string::npos; at += 4)
      renamed.replace(at, 2, std::string(name) + "_2");
  }
  const auto other = bench.units(graph_model(renamed, 19));
  REQUIRE(other.layers.size() == plain.layers.size());
  for (std::size_t i = 0; i < plain.layers.size(); ++i)
    CHECK(other.layers[i].signature == plain.layers[i].signature);
  std::string scaled = kQuantized;
  scaled.replace(scaled.find("0.5"), 3, "0.25");
  CHECK(bench.units(graph_model(scaled, 19)).layers[1].signature != plain.layers[1].signature);
}

TEST_CASE("without conversions both units are the nodes") {
  UnitBench bench;
  const auto model = read_model("gen_odd.onnx");
  const auto nodes = bench.analyze(model);
  const auto units = bench.units(model);
  REQUIRE(units.layers.size() == nodes.layers.size());
  for (std::size_t i = 0; i < nodes.layers.size(); ++i) CHECK(units.layers[i] == nodes.layers[i]);
}

TEST_CASE("a group's values leave it for another node, the graph or nobody") {
  UnitBench bench;
  const auto loaded = lf::load_model(bench.write(graph_model(
      R"((float[4] x) => (float[4] y) { a = Relu(x)  b = Neg(a)  c = Abs(b)  unused = Exp(b)  y = Add(c, x) })")));
  REQUIRE(loaded);
  const lf::ValueUses uses(*loaded);
  std::vector<const pb::NodeProto*> nodes;
  for (const pb::NodeProto& node : loaded->proto.graph().node()) nodes.push_back(&node);
  const auto inner = lf::NodeGroup::of({nodes[0], nodes[1], nodes[3]}, uses);
  CHECK(inner.inputs() == std::vector<std::string>{"x"});
  CHECK(inner.results == std::vector<std::string>{"b", "unused"});
  CHECK(inner.inner() == std::vector<std::string>{"a"});
  const auto last = lf::NodeGroup::of({nodes[2], nodes[4]}, uses);
  CHECK(last.inputs() == std::vector<std::string>{"b", "x"});
  CHECK(last.results == std::vector<std::string>{"y"});
  CHECK(&last.main() == nodes[2]);
}
