#include "worker/onnx/open_outputs.h"

#include "tests/unit/worker/onnx/bench.h"

using namespace layerfarm;
using namespace layerfarm::test;
using Places = std::vector<std::uint32_t>;

namespace {

domain::Layer only_layer(const OnnxBench& bench, const std::string& graph, int opset) {
  const auto analysis = bench.analyze(graph_model(graph, opset));
  REQUIRE(analysis.layers.size() == 1);
  return analysis.layers[0];
}

}  // namespace

TEST_CASE("a Dropout's mask is open until opset 11 and stays a result of the layer") {
  const OnnxBench bench;
  const std::string float_mask = "(float[2] x) => (float[2] y, float[2] m) { y, m = Dropout(x) }";
  const std::string bool_mask = "(float[2] x) => (float[2] y, bool[2] m) { y, m = Dropout(x) }";
  const domain::Layer seven = only_layer(bench, float_mask, 7);
  CHECK(seven.output_names == std::vector<std::string>{"y", "m"});
  CHECK(seven.outputs.size() == 2);
  CHECK(seven.open_outputs == Places{1});
  CHECK(only_layer(bench, bool_mask, 10).open_outputs == Places{1});
  CHECK(only_layer(bench, bool_mask, 11).open_outputs == Places{1});
  CHECK(only_layer(bench, bool_mask, 12).open_outputs.empty());
  CHECK(
      only_layer(bench, "(float[2] x) => (float[2] y) { y = Dropout(x) }", 7).open_outputs.empty());
}

TEST_CASE("what a Dropout in training mode drops is random, so nothing of it is compared") {
  const OnnxBench bench;
  const auto open = [&](const std::string& training, int opset = 17) {
    return only_layer(bench,
                      "(float[2] x) => (float[2] y, bool[2] m) <float ratio = {0.5}, bool training "
                      "= {" +
                          training + "}> { y, m = Dropout(x, ratio, training) }",
                      opset)
        .open_outputs;
  };
  CHECK(open("1") == Places{0, 1});
  CHECK(open("1", 12) == Places{0, 1});
  CHECK(open("0").empty());
  // A Constant node says it as well; what is fed is false.
  CHECK(only_layer(bench,
                   "(float[2] x) => (float[2] y) { r = Constant<value = float {0.5}>() t = "
                   "Constant<value = bool {1}>() y = Dropout(x, r, t) }",
                   13)
            .open_outputs == Places{0});
  CHECK(only_layer(bench, "(float[2] x, bool t) => (float[2] y) { y = Dropout(x, , t) }", 13)
            .open_outputs.empty());
  CHECK(only_layer(bench, "(float[2] x) => (float[2] y) { y = Dropout(x) }", 13)
            .open_outputs.empty());
  CHECK(
      only_layer(bench, "(float[2] x) => (float[2] y) { y = Dropout(x) }", 7).open_outputs.empty());
}

TEST_CASE("random numbers are nobody's fault, with a seed or without") {
  const OnnxBench bench;
  CHECK(only_layer(bench, "(float[2] x) => (float[2] y) { y = Bernoulli(x) }", 17).open_outputs ==
        Places{0});
  CHECK(only_layer(bench,
                   "(float[2] x) => (float[2] y) { y = RandomNormalLike<seed: float = 3.0>(x) }",
                   17)
            .open_outputs == Places{0});
}

TEST_CASE("of an old BatchNormalization only the saved statistics are open, where they stand") {
  const OnnxBench bench;
  const auto open = [&](const std::string& results) {
    return only_layer(bench,
                      "(float[1,2,3,3] x, float[2] s, float[2] b, float[2] m, float[2] v) => "
                      "(float[1,2,3,3] y, float[2] sm, float[2] sv) { " +
                          results + " = BatchNormalization(x, s, b, m, v) }",
                      9)
        .open_outputs;
  };
  CHECK(open("y, rm, rv, sm, sv") == Places{3, 4});
  CHECK(open("y, , , sm, sv") ==
        Places{1, 2});  // places in the layer, which leaves out unnamed ones
}

TEST_CASE("results that the standard describes are compared, though nobody reads them") {
  const OnnxBench bench;
  CHECK(only_layer(bench,
                   "(float[1,1,4,4] x) => (float[1,1,2,2] y, int64[1,1,2,2] i) { y, i = "
                   "MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x) }",
                   10)
            .open_outputs.empty());
  const auto own = bench.analyze(parse_model(R"(
    <ir_version: 8, opset_import: ["" : 9, "mine" : 1]>
    agraph (float[2] x) => (float[2] y, float[2] m) { y, m = mine.Dropout(x) })"));
  CHECK(own.layers[0].open_outputs.empty());
}
