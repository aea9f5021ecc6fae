#include "worker/onnx/ranges.h"

#include "worker/onnx/shapes.h"

#include "tests/unit/worker/onnx/bench.h"

using namespace layerfarm;
using namespace layerfarm::test;
using Values = std::vector<double>;

namespace {

/// What is fed to the inputs of a model's only layer.
std::vector<domain::InputSpec> inputs_of(const std::string& graph, int opset = 18) {
  OnnxBench bench;
  const auto analysis = bench.analyze(graph_model(graph, opset));
  REQUIRE(analysis.layers.size() == 1);
  CHECK(analysis.layers[0].problem == "");
  return analysis.layers[0].inputs;
}

void check_range(const domain::InputSpec& spec, double lo, double hi) {
  CHECK(spec.values.empty());
  CHECK(spec.lo == lo);
  CHECK(spec.hi == hi);
}

}  // namespace

TEST_CASE("inputs that mean nothing special get the usual range of their type") {
  for (const char* type : {"float", "double", "int8", "int64"}) {
    check_range(
        inputs_of("(" + std::string(type) + "[2] x) => (" + type + "[2] y) { y = Identity(x) }")[0],
        -40, 40);
  }
  for (const char* type : {"uint8", "uint16", "uint32", "uint64"}) {
    check_range(
        inputs_of("(" + std::string(type) + "[2] x) => (" + type + "[2] y) { y = Identity(x) }")[0],
        0, 80);
  }
  check_range(inputs_of("(bool[2] x) => (bool[2] y) { y = Not(x) }")[0], 0, 2);
}

TEST_CASE("an index stays inside its table") {
  // The rule of the original: an index of a Gather over a constant table.
  const auto gather = inputs_of(
      "(int64[5] i) => (float[5,2] y) <float[3,2] t = {1,2,3,4,5,6}> { y = Gather<axis = 0>(t, i) "
      "}");
  REQUIRE(gather.size() == 1);
  check_range(gather[0], 0, 3);
  check_range(
      inputs_of("(float[4,7] t, int64[5] i) => (float[4,5] y) { y = Gather<axis = -1>(t, i) }")[1],
      0, 7);
  check_range(
      inputs_of(
          "(float[4,7] t, int64[4,2] i) => (float[4,2] y) { y = GatherElements<axis = 1>(t, i) }")
          [1],
      0, 7);
  check_range(
      inputs_of("(float[4,7,3] t, int64[6,2] i) => (float[6,3] y) { y = GatherND(t, i) }")[1], 0,
      4);
  check_range(
      inputs_of(
          "(float[2,7,3] t, int64[2,1] i) => (float[2,3] y) { y = GatherND<batch_dims = 1>(t, i) }")
          [1],
      0, 7);
  check_range(
      inputs_of(
          "(int64[4] i, float[2] v) => (float[4,6] y) <int64 d = {6}> { y = OneHot(i, d, v) }")[0],
      0, 6);
  check_range(
      inputs_of("(float[3,5] x, int64[3] t) => (float y) { y = SoftmaxCrossEntropyLoss(x, t) }")[1],
      0, 5);
}

TEST_CASE("where values are written, no place is written twice") {
  CHECK(inputs_of("(float[5,2] t, int64[3,2] i, float[3,2] u) => (float[5,2] y) { y = "
                  "ScatterElements<axis = 0>(t, i, u) }")[1]
            .values == Values{0, 0, 1, 1, 2, 2});
  CHECK(inputs_of(
            "(float[2,3] t, int64[4,2] i, float[4] u) => (float[2,3] y) { y = ScatterND(t, i, u) }")
            [1]
                .values == Values{0, 0, 0, 1, 0, 2, 1, 0});
  // More tuples than places: then only the range is kept.
  check_range(
      inputs_of(
          "(float[2] t, int64[4,1] i, float[4] u) => (float[2] y) { y = ScatterND(t, i, u) }")[1],
      0, 2);
}

TEST_CASE("an input that says a shape gives the shape that the model has") {
  CHECK(
      inputs_of("(float[2,6] x, int64[3] s) => (float[3,2,2] y) { y = Reshape(x, s) }")[1].values ==
      Values{3, 2, 2});
  CHECK(inputs_of("(float[1,6] x, int64[2] s) => (float[4,6] y) { y = Expand(x, s) }")[1].values ==
        Values{4, 6});
  CHECK(inputs_of("(int64[2] s) => (float[4,6] y) { y = ConstantOfShape(s) }")[0].values ==
        Values{4, 6});
  CHECK(inputs_of("(float[2,3] x, int64[2] r) => (float[4,9] y) { y = Tile(x, r) }")[1].values ==
        Values{2, 3});
  CHECK(inputs_of("(float[2,3] x, int64[4] p) => (float[4,3] y) { y = Pad(x, p) }")[1].values ==
        Values{0, 0, 2, 0});
  CHECK(inputs_of("(float[1,1,4,4] x, float[4] s) => (float[1,1,8,2] y) { y = Resize<mode = "
                  "\"nearest\">(x, \"\", s) }")[1]
            .values == Values{1, 1, 2, 0.5});
  CHECK(inputs_of("(float[1,1,4,4] x, int64[4] s) => (float[1,1,8,2] y) { y = Resize<mode = "
                  "\"nearest\">(x, \"\", \"\", s) }")[1]
            .values == Values{1, 1, 8, 2});
  CHECK(inputs_of(
            "(float[7] x, int64[2] s) => (float[3] a, float[4] b) { a, b = Split<axis = 0>(x, s) }")
            [1]
                .values == Values{3, 4});
  CHECK(inputs_of("(float[1,2,9,9] x, int64[2] s) => (float[1,2,5,7] y) { y = CenterCropPad<axes = "
                  "[2, 3]>(x, s) }")[1]
            .values == Values{5, 7});
}

TEST_CASE("a slice whose bounds are inputs takes what the result's shape says") {
  const auto all = inputs_of(
      "(float[4,9] x, int64[1] s, int64[1] e, int64[1] a, int64[1] t) => (float[4,5] y) { y = "
      "Slice(x, s, e, a, t) }");
  CHECK(all[1].values == Values{0});
  CHECK(all[2].values == Values{5});
  CHECK(all[3].values == Values{1});
  CHECK(all[4].values == Values{1});
  const auto back = inputs_of(
      "(float[9] x, int64[1] e) => (float[5] y) <int64[1] s = {-1}, int64[1] a = {0}, int64[1] t = "
      "{-2}> { y = Slice(x, s, e, a, t) }");
  CHECK(back[1].values == Values{-10});
}

TEST_CASE("axes are those that explain the result's shape") {
  CHECK(inputs_of("(float[2,3] x, int64[2] a) => (float[1,2,1,3] y) { y = Unsqueeze(x, a) }")[1]
            .values == Values{0, 2});
  CHECK(inputs_of("(float[1,2,1,3] x, int64[1] a) => (float[1,2,3] y) { y = Squeeze(x, a) }")[1]
            .values == Values{2});
  CHECK(inputs_of("(float[2,3,4] x, int64[1] a) => (float[2,1,4] y) { y = ReduceMean(x, a) }")[1]
            .values == Values{1});
  CHECK(
      inputs_of(
          "(float[2,3,4] x, int64[2] a) => (float[3] y) { y = ReduceMean<keepdims = 0>(x, a) }")[1]
          .values == Values{0, 2});
  CHECK(inputs_of("(float[2,3] x, int64 a) => (float[2,3] y) { y = CumSum(x, a) }")[1].values ==
        Values{0});
}

TEST_CASE("counts and lengths are possible ones") {
  CHECK(inputs_of(
            "(float[2,8] x, int64[1] k) => (float[2,3] v, int64[2,3] i) { v, i = TopK(x, k) }")[1]
            .values == Values{3});
  const auto range =
      inputs_of("(int64 a, int64 b, int64 c) => (int64[6] y) { y = Range(a, b, c) }");
  CHECK(range[0].values == Values{0});
  CHECK(range[1].values == Values{6});
  CHECK(range[2].values == Values{1});
  CHECK(inputs_of(
            "(int64 b) => (int64[6] y) <int64 a = {10}, int64 c = {-2}> { y = Range(a, b, c) }")[0]
            .values == Values{-2});
  check_range(inputs_of("(float[5,2,3] x, int64[2] n) => (float[5,2,3] y) { y = "
                        "ReverseSequence<time_axis = 0, batch_axis = 1>(x, n) }")[1],
              1, 6);
  check_range(inputs_of("(int32[4] x, int32[4] d) => (int32[4] y) { y = Div(x, d) }")[1], 1, 40);
  check_range(inputs_of("(float[4] x, float[4] d) => (float[4] y) { y = Div(x, d) }")[1], -40, 40);
  check_range(
      inputs_of(
          "(uint8[4] x, uint8[4] d) => (uint8[4] y) { y = BitShift<direction = \"LEFT\">(x, d) }")
          [1],
      0, 8);
}

TEST_CASE("a loop runs as often as its results say, and begins") {
  const auto loop = inputs_of(R"((int64 n, bool c, float[2] s) => (float[2] y, float[5,2] trace) {
    y, trace = Loop(n, c, s) <body = b (int64 i, bool go, float[2] a) => (bool more, float[2] next, float[2] seen) { more = Identity(go) next = Add(a, a) seen = Identity(a) }>
  })");
  CHECK(loop[0].values == Values{5});
  CHECK(loop[1].values == Values{1});
  check_range(loop[2], -40, 40);
}

TEST_CASE("what a body or a function uses as an index is an index") {
  const auto captured = inputs_of(R"((bool c, float[4] t, int64[2] i) => (float[2] y) {
    y = If(c) <then_branch = a () => (float[2] p) { p = Gather(t, i) }, else_branch = b () => (float[2] q) { j = Identity(i) q = Gather(t, j) }>
  })");
  REQUIRE(captured.size() == 3);
  // Inputs come in the order of use: the condition, then what the bodies take.
  check_range(captured[1].type.dtype == domain::DType::Int64 ? captured[1] : captured[2], 0, 4);

  OnnxBench bench;
  const auto called = bench.analyze(parse_model(R"(
    <ir_version: 8, opset_import: ["" : 17, "own" : 1]>
    agraph (float[6] t, int64[2] i) => (float[2] y) { y = own.pick(t, i) }
    <domain: "own", opset_import: ["" : 17]>
    pick (table, index) => (z) { moved = Identity(index) z = Gather(table, moved) })"));
  check_range(called.layers[0].inputs[1], 0, 6);
}

TEST_CASE("a value of the model is an index wherever it is moved to before") {
  OnnxBench bench;
  auto loaded =
      lf::load_model(bench.write(graph_model(R"((int32[1,4] ids, float[2] x) => (float[4,3] y)
    <float[9,3] table = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9}, int64[1] flat = {-1}> {
      wide = Cast<to = 7>(ids)
      r = Reshape(wide, flat)
      y = Gather(table, r)
    })")));
  REQUIRE(loaded);
  const auto shapes = lf::infer_shapes(*loaded, {});
  const lf::Ranges ranges(*loaded, shapes.types);
  check_range(ranges.of_value("ids"), 0, 9);
  check_range(ranges.of_value("x"), -40, 40);
}
