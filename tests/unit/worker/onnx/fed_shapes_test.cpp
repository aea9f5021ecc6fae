#include "worker/onnx/fed_shapes.h"

#include <set>

#include "tests/unit/worker/onnx/bench.h"

using namespace layerfarm;
using namespace layerfarm::test;

namespace {

using Names = std::set<std::string>;

/// Every value that inference leaves open counts as seen in a run, with one dim of 3.
Names fed_in(const pb::ModelProto& model) {
  const OnnxBench bench;
  auto loaded = lf::load_model(bench.write(model));
  REQUIRE(loaded);
  lf::Shapes shapes = lf::infer_shapes(*loaded, {});
  for (const std::string& name : shapes.unknown) {
    shapes.types[name] = {.dtype = domain::DType::Float32, .dims = std::vector<std::int64_t>{3}};
    shapes.seen_in_run.insert(name);
  }
  const lf::NameSet fed = lf::fed_shapes(*loaded, shapes);
  return {fed.begin(), fed.end()};
}
Names fed_in(const std::string& graph, int opset = 17) { return fed_in(graph_model(graph, opset)); }

}  // namespace

TEST_CASE(
    "what counts values has a fed shape, and so has all behind it up to what is fixed again") {
  CHECK(fed_in(R"((float[16] x) => (float y) {
    z = NonZero(x)  t = Transpose(z)  s = Shape(t)  f = Cast<to = 1>(s)  v = GatherND(x, t)  r = Relu(v)
    y = ReduceSum<keepdims = 0>(r) })") == Names{"z", "t", "v", "r"});
  CHECK(fed_in("(float[4] x, bool[4] c) => (float[a] y) { y = Compress(x, c) }") == Names{"y"});
  CHECK(fed_in("(float[4] x) => (float[a] y) { y = Unique(x) }") == Names{"y"});
  CHECK(fed_in(R"((float[1,9,4] b, float[1,1,9] c) => (int64[a,3] y)
      <int64 most = {5}> { y = NonMaxSuppression(b, c, most) })") == Names{"y"});
  // Of a constant it counts the same each time.
  CHECK(fed_in("(float[2] x) => (float[2] y) <float[3] c = {1.0, 0.0, 2.0}> { z = NonZero(c)  s = "
               "Shape(z)  y = Identity(x) }")
            .empty());
}

TEST_CASE("a shape that follows from shapes and constants is none that is fed") {
  // ONNX's inference gives up at the arithmetic of real numbers; what the run showed is right.
  const std::string graph = R"(=> (float[a,b] y) <float two = {2.0}> {
    s = Shape(x)  f = Cast<to = 1>(s)  m = Mul(f, two)  n = Floor(m)  to = Cast<to = 7>(n)
    e = Expand(one, to)  y = Relu(e) })";
  CHECK(fed_in("(float[2,3] x, float[1,1] one) " + graph).empty());
  // A value of x, not its shape.
  CHECK(fed_in(R"((float[2] x, float[1] one) => (float[a,b] y) {
    to = Cast<to = 7>(x)  e = Expand(one, to)  y = Relu(e) })") == Names{"e", "y"});
  CHECK(fed_in(R"((float[4] x, int64[1] k) => (float[a] y) { y, i = TopK(x, k) })") ==
        Names{"y", "i"});
  CHECK(fed_in(R"((float[4] x) => (float[a] y) { n = ArgMax<axis = 0, keepdims = 0>(x)
    zero = Constant<value_int = 0>()  one = Constant<value_int = 1>()  r = Range(zero, n, one)  y = Cast<to = 1>(r) })") ==
        Names{"r", "y"});
}

TEST_CASE("an If is as its branches where the model decides the condition, else its shape is fed") {
  const std::string branches = R"(
    y = If (c) <then_branch = a () => (float[p] t) { t = Relu(r) }, else_branch = b () => (float[q, w] e) { e = Cast<to = 1>(u) }> })";
  CHECK(fed_in(R"((float[1,4] x) => (float[m] y) { r = Identity(x) u = Identity(x)
    s = Shape(x)  n = ReduceMax<keepdims = 0>(s)  one = Constant<value_int = 1>()  c = Equal(n, one))" +
               branches)
            .empty());
  CHECK(fed_in("(float[1,4] x, bool c) => (float[m] y) { r = Identity(x) u = Identity(x)" +
               branches) == Names{"y"});
  CHECK(fed_in(R"((float[1,4] x) => (float[m] y) { r = Identity(x) u = NonZero(x)
    s = Shape(x)  n = ReduceMax<keepdims = 0>(s)  one = Constant<value_int = 1>()  c = Equal(n, one))" +
               branches) == Names{"u", "y"});
}

TEST_CASE(
    "of operators outside ONNX the usual ones keep their inputs' shapes, functions are looked "
    "into") {
  const auto model = [](const std::string& body) {
    return parse_model(R"(<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1, "own" : 1]>
      agraph )" + body);
  };
  CHECK(fed_in(model("(float[4] x) => (float[a] y) { g = com.microsoft.Gelu(x)  y = Relu(g) }"))
            .empty());
  CHECK(
      fed_in(model("(float[4] x) => (float[a] y) { g = com.microsoft.Unique(x)  y = Relu(g) }")) ==
      Names{"g", "y"});
  CHECK(fed_in(model("(float[4] x) => (float[a] y) { y = own.Thing(x) }")) == Names{"y"});
  const std::string counting = R"((float[4] x) => (float[a] y) { y = own.Thing(x) }
    <domain: "own", opset_import: ["" : 17]> Thing (p) => (q) { )";
  CHECK(fed_in(model(counting + "q = Relu(p) }")).empty());
  CHECK(fed_in(model(counting + "n = NonZero(p)  q = Cast<to = 1>(n) }")) == Names{"y"});
}

TEST_CASE("what the file declares is no word on what counts values") {
  const OnnxBench bench;
  const auto fed = [&](const std::string& graph) {
    auto loaded = lf::load_model(bench.write(graph_model(graph)));
    REQUIRE(loaded);
    const lf::Shapes shapes = lf::infer_shapes(*loaded, {});
    CHECK(shapes.unknown.empty());
    const lf::NameSet out = lf::fed_shapes(*loaded, shapes);
    return Names(out.begin(), out.end());
  };
  CHECK(fed("(float[4] x) => (float[1,2] y) <int64[1,2] z> { z = NonZero(x)  y = Cast<to = 1>(z) "
            "}") == Names{"z", "y"});
  CHECK(fed("(float[4] x, int64[1] to) => (float[2] y) <float[2] e> { e = Reshape(x, to)  y = "
            "Relu(e) }")
            .empty());
}
