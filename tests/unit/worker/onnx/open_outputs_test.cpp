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

TEST_CASE("random numbers in bodies and functions leave open what is computed from them") {
  const OnnxBench bench;
  const std::string random = "r = RandomNormal<shape = [4]>()";
  CHECK(
      only_layer(bench,
                 "(float[4] x, bool c) => (float[4] y, float[4] z) { y, z = If (c) <then_branch = "
                 "a () => (float[4] p, float[4] q) { " +
                     random +
                     " p = Add(x, r) q = Relu(x) }, else_branch = b () => (float[4] s, float[4] "
                     "t) { s = Neg(x) t = Abs(x) }> }",
                 17)
          .open_outputs == Places{0});
  // What one round draws is what the next one is given; how many elements there are is known.
  const auto loop = [&](const std::string& inner) {
    return only_layer(
               bench,
               "(int64 n, bool c, float[4] x, float[4] k) => (float[4] a, float[4] b, "
               "int64[m] g) { a, b, g = Loop (n, c, x, k) <body = l (int64 i, bool go, "
               "float[4] u, float[4] v) => (bool on, float[4] w, float[4] t, int64[1] h) { " +
                   inner + " h = Shape(w) }> }",
               17)
        .open_outputs;
  };
  CHECK(loop("on = Identity(go) w = Identity(v) t = Bernoulli(u)") == Places{0, 1});
  CHECK(loop("on = Identity(go) w = Identity(u) t = Bernoulli(v)") == Places{1});
  CHECK(loop("on = Identity(go) w = Neg(u) t = Relu(v)").empty());
  // Whether it goes on is drawn.
  CHECK(loop("r = RandomUniform<shape = [1]>() q = Cast<to = 9>(r) on = Squeeze(q) w = Neg(u) t = "
             "Relu(v)") == Places{0, 1, 2});
  CHECK(only_layer(bench,
                   "(float[4] k, float[3,4] x) => (float[4] a, float[3,4] g) { a, g = Scan "
                   "<num_scan_inputs = 1, body = s (float[4] u, float[4] e) => (float[4] w, "
                   "float[4] h) { w = Relu(u) h = RandomUniformLike(e) }> (k, x) }",
                   17)
            .open_outputs == Places{1});
  const auto function = [&](const std::string& graph, const std::string& text) {
    const auto analysis = bench.analyze(
        parse_model("<ir_version: 8, opset_import: [\"\" : 17, \"own\" : 1]> agraph " + graph +
                    " <domain: \"own\", opset_import: [\"\" : 17]> " + text));
    REQUIRE(analysis.layers.size() == 1);
    return analysis.layers[0].open_outputs;
  };
  const std::string call = "(float[4] x) => (float[4] y, float[4] z) { y, z = own.Noise(x) }";
  CHECK(
      function(call, "Noise (p) => (q, s) { r = RandomNormalLike(p) q = Add(p, r) s = Relu(p) }") ==
      Places{0});
  CHECK(function(call, "Noise (p) => (q, s) { q = Neg(p) s = Relu(p) }").empty());
  // A Dropout that is told to drop, also by whoever calls it.
  const std::string drop =
      "(float[4] x) => (float[4] y) <bool on = {1}, float half = {0.5}> { y = own.Drop(x, half, "
      "on) }";
  CHECK(function(drop, "Drop (p, h, t) => (q) { q = Dropout(p, h, t) }") == Places{0});
  CHECK(function(drop, "Drop (p, h, t) => (q) { q = Dropout(p, h) }").empty());
}

TEST_CASE("in a whole model and its segments what follows from random numbers is open") {
  const OnnxBench bench;
  const auto file =
      bench.write(graph_model(R"((float[4] x) => (float[4] y, float[4] z, int64[1] n) {
    r = RandomNormalLike(x)  a = Add(x, r)  y = Relu(a)  z = Relu(x)  n = Shape(a) })"));
  const auto answer = lf::analyze(
      {.request = {.model_path = file.string(), .assignment = {"a", "a", "b", "b", "b"}},
       .blobs = bench.blobs,
       .shapes_answer = {},
       .shapes_folder = {}});
  REQUIRE(answer);
  const auto& layers = answer->analysis.layers;
  const auto open = [](const domain::Layer& layer) {
    std::vector<std::string> out;
    for (const std::uint32_t place : layer.open_outputs) out.push_back(layer.output_names[place]);
    return out;
  };
  REQUIRE(layers.size() == 4);
  CHECK(open(layers[2]) == std::vector<std::string>{"y"});
  CHECK(open(layers[3]) == std::vector<std::string>{"y", "a"});
  for (std::size_t i = 0; i < 2; ++i) {
    for (const std::string& name : layers[i].output_names) {
      const auto names = open(layers[i]);
      CHECK((std::find(names.begin(), names.end(), name) != names.end()) ==
            (name == "y" || name == "a"));
    }
  }
  // A layer by itself is fed what another one drew.
  const auto alone = bench.analyze(
      graph_model("(float[4] x) => (float[4] y) { r = RandomNormalLike(x) y = Add(x, r) }"));
  CHECK(alone.layers[0].open_outputs == Places{0});
  CHECK(alone.layers[1].open_outputs.empty());
}
