#include "worker/onnx/segments.h"

#include <string>
#include <vector>

#include "tests/unit/worker/onnx/bench.h"

using namespace layerfarm;
using namespace layerfarm::test;

namespace {

using Names = std::vector<std::string>;

std::string ops_of(const pb::ModelProto& module) {
  std::string out;
  for (const pb::NodeProto& node : module.graph().node())
    out += (out.empty() ? "" : " ") + node.op_type();
  return out;
}

struct SegmentBench : OnnxBench {
  base::Result<lf::AnalyzeAnswer> try_split(
      const pb::ModelProto& model, Names assignment,
      domain::LayerUnit unit = domain::LayerUnit::Node) const {
    return lf::analyze({.request = {.model_path = write(model).string(),
                                    .unit = unit,
                                    .assignment = std::move(assignment)},
                        .blobs = blobs,
                        .shapes_answer = {},
                        .shapes_folder = {}});
  }
  domain::ModelAnalysis split(const pb::ModelProto& model, Names assignment,
                              domain::LayerUnit unit = domain::LayerUnit::Node) const {
    auto answer = try_split(model, std::move(assignment), unit);
    INFO((answer ? std::string() : answer.error().text()));
    REQUIRE(answer);
    return answer->analysis;
  }
  Names ops(const domain::ModelAnalysis& analysis) const {
    Names out;
    for (const domain::Layer& layer : analysis.layers) out.push_back(ops_of(module(layer.module)));
    return out;
  }
};

/// Executors and sizes.
std::vector<domain::Segment> cut(const domain::ModelAnalysis& analysis) {
  std::vector<domain::Segment> out = analysis.segments;
  for (domain::Segment& segment : out) segment.nodes.clear();
  return out;
}

const char* const kChain = R"((float[4] b, float[4] a) => (float[4] y) {
    s = Add(a, b)
    r = Relu(s)
    m = Mul(r, a)
    y = Sigmoid(m)
  })";

}  // namespace

TEST_CASE("a model is cut where its executor changes; the whole of it comes after its segments") {
  SegmentBench bench;
  const auto analysis = bench.split(graph_model(kChain), {"e0", "e1", "e0", "e0"});
  CHECK(analysis.segments == std::vector<domain::Segment>{{"e0", 1, {"Add_s"}},
                                                          {"e1", 1, {"Relu_r"}},
                                                          {"e0", 2, {"Mul_m", "Sigmoid_y"}}});
  CHECK(bench.ops(analysis) ==
        Names{"Add", "Relu", "Mul Sigmoid", "Add Relu Mul Sigmoid", "Add Relu Mul Sigmoid"});
  const auto& last = analysis.layers[2];
  CHECK(last.id == "segment 3 (Mul_m .. Sigmoid_y)");
  CHECK(last.input_names == Names{"r", "a"});
  CHECK(last.output_names == Names{"y"});
  CHECK(last.problem.empty());
  const auto& whole = analysis.layers[3];
  CHECK(whole.id == "the whole model");
  CHECK(whole.output_names == Names{"y"});
  CHECK(analysis.layers[4].output_names == Names{"y", "s", "r"});
  CHECK(analysis.layers[4].input_names == whole.input_names);
}

TEST_CASE("inputs of the whole model are drawn in the model's order, not by name") {
  SegmentBench bench;
  const auto analysis = bench.split(graph_model(kChain), {"e", "e", "e", "e"});
  REQUIRE(analysis.layers.size() == 2);  // one segment leaves no boundary
  const auto& whole = analysis.layers[1];
  CHECK(whole.input_names == Names{"a", "b"});
  CHECK(whole.draw_order == std::vector<std::uint32_t>{1, 0});
  CHECK(analysis.layers[0].draw_order == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("the whole model is given inputs that nothing takes, its segments are not") {
  SegmentBench bench;
  const auto analysis = bench.split(graph_model("(float[2] unused, float[4] x, string[1] text) => "
                                                "(float[4] y) { r = Relu(x) y = Neg(r) }"),
                                    {"e0", "e1"});
  REQUIRE(analysis.layers.size() == 4);
  CHECK(analysis.layers[0].input_names == Names{"x"});
  for (std::size_t i = 2; i < 4; ++i) {
    CHECK(analysis.layers[i].input_names == Names{"x", "unused"});
    CHECK(analysis.layers[i].draw_order == std::vector<std::uint32_t>{1, 0});
    CHECK(analysis.layers[i].problem.empty());
  }
}

TEST_CASE("what is constant or leads nowhere is in no segment, but stays in the whole model") {
  SegmentBench bench;
  const auto analysis = bench.split(graph_model(R"((float[2, 6] x) => (float[3, 4] y)
  <int64[1] four = {4}, int64[1] three = {3}> {
    to = Concat<axis = 0>(three, four)
    z = Reshape(x, to)
    unused = Sigmoid(x)
    y = Relu(z)
  })"),
                                    {"e1", "e0", "e1", "e0"});
  CHECK(cut(analysis) == std::vector<domain::Segment>{{"e0", 2, {}}});
  CHECK(bench.ops(analysis) == Names{"Reshape Relu", "Concat Reshape Sigmoid Relu"});
  CHECK(analysis.layers[0].input_names == Names{"x"});
  CHECK(analysis.layers[1].output_names == Names{"y"});
  CHECK(analysis.operators == 4);
}

TEST_CASE("a value that two segments take, and one that the model gives, leave their segment") {
  SegmentBench bench;
  const auto analysis = bench.split(graph_model(R"((float[4] x) => (float[4] y, float[4] r) {
    r = Relu(x)
    s = Sigmoid(r)
    t = Tanh(s)
    y = Add(t, r)
  })"),
                                    {"e0", "e0", "e1", "e0"});
  CHECK(cut(analysis) == std::vector<domain::Segment>{{"e0", 2, {}}, {"e1", 1, {}}, {"e0", 1, {}}});
  CHECK(analysis.layers[0].output_names == Names{"r", "s"});
  CHECK(analysis.layers[3].output_names == Names{"y", "r"});  // as the model has them
  CHECK(analysis.layers[4].output_names == Names{"y", "r", "s", "t"});
}

TEST_CASE("a value that the model lists twice is given once") {
  SegmentBench bench;
  const auto analysis = bench.split(
      graph_model("(float[4] x) => (float[4] y, float[4] y) { r = Relu(x) y = Neg(r) }"),
      {"e0", "e1"});
  REQUIRE(analysis.layers.size() == 4);
  CHECK(analysis.layers[2].output_names == Names{"y"});
  CHECK(analysis.layers[3].output_names == Names{"y", "r"});
  for (const auto& layer : analysis.layers) CHECK(layer.problem.empty());
}

TEST_CASE("values that only a body uses pass a boundary too") {
  SegmentBench bench;
  const auto analysis = bench.split(graph_model(R"((float[4] x, bool c) => (float[4] y) {
    r = Relu(x)
    y = If (c) <
      then_branch = one () => (float[4] p) { p = Neg(r) },
      else_branch = two () => (float[4] q) { q = Identity(r) }
    >
  })"),
                                    {"e0", "e1"});
  REQUIRE(analysis.segments.size() == 2);
  CHECK(analysis.layers[0].output_names == Names{"r"});
  CHECK(analysis.layers[1].input_names == Names{"c", "r"});
  // A body's nodes have numbers too, and stand for the operator that they are in.
  CHECK(analysis.segments[1].nodes == Names{"If_y", "If_y", "If_y"});
  const auto module = bench.module(analysis.layers[1].module);
  CHECK(module.graph().node(0).name() == "n0");
  CHECK(module.graph().node(0).attribute(1).g().node(0).name() == "n2");
}

TEST_CASE("the conversions around a quantized operator go where it goes") {
  SegmentBench bench;
  const auto model = graph_model(R"((float[4] x) => (float[4] y)
  <float s = {0.5}, int8 z = {0}> {
    xq = QuantizeLinear(x, s, z)
    xd = DequantizeLinear(xq, s, z)
    a = Add(xd, xd)
    aq = QuantizeLinear(a, s, z)
    y = DequantizeLinear(aq, s, z)
  })",
                                 19);
  const auto analysis = bench.split(model, {"host", "", "htp", "", "host"}, domain::LayerUnit::Qdq);
  CHECK(cut(analysis) ==
        std::vector<domain::Segment>{{"host", 1, {}}, {"htp", 3, {}}, {"host", 1, {}}});
}

TEST_CASE("of a quantized model what computes is assigned, conversions and the rest follow it") {
  SegmentBench bench;
  const auto model = graph_model(R"((float[4] x) => (float[4] y)
  <float s = {0.5}, int8 z = {0}> {
    xq = QuantizeLinear(x, s, z)
    xd = DequantizeLinear(xq, s, z)
    a = Add(xd, xd)
    aq = QuantizeLinear(a, s, z)
    ad = DequantizeLinear(aq, s, z)
    r = Relu(ad)
    rq = QuantizeLinear(r, s, z)
    rd = DequantizeLinear(rq, s, z)
    b = Sigmoid(rd)
    bq = QuantizeLinear(b, s, z)
    y = DequantizeLinear(bq, s, z)
  })",
                                 19);
  const auto split = [&](Names assignment) {
    return lf::analyze({.request = {.model_path = bench.write(model).string(),
                                    .quantize = domain::Quantization{},
                                    .assignment = std::move(assignment)},
                        .blobs = bench.blobs,
                        .shapes_answer = {},
                        .shapes_folder = {}});
  };
  // Relu has none of its own and goes with what it takes; first and last conversion go along.
  const auto answer = split({"htp", "", "host"});
  REQUIRE(answer);
  CHECK(cut(answer->analysis) == std::vector<domain::Segment>{{"htp", 7, {}}, {"host", 4, {}}});
  // What leaves a segment is quantized, as it was in between.
  CHECK(answer->analysis.layers[0].output_names == Names{"rq"});
  CHECK(answer->analysis.layers[1].input_names == Names{"rq"});
  CHECK(cut(split({"", "host", "htp"})->analysis) ==
        std::vector<domain::Segment>{{"host", 7, {}}, {"htp", 4, {}}});
  CHECK(cut(split({"", "", ""})->analysis) == std::vector<domain::Segment>{{"", 11, {}}});
  const auto refused = split({"htp", "host"});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text() == "the assignment is of 2 operators, the quantized model has 3");
}

TEST_CASE("dequantized weights and values are made in each segment that takes them") {
  SegmentBench bench;
  // Both Muls are of htp and have one weight; nothing but the order keeps the second one's
  // conversions out of the first segment.
  const auto model = graph_model(R"((float[4] x) => (float[4] y)
  <float s = {0.5}, int8 z = {0}, int8[4] w = {1, 2, 3, 4}, int8[4] v = {4, 3, 2, 1}> {
    wd = DequantizeLinear(w, s, z)
    vd = DequantizeLinear(v, s, z)
    xq = QuantizeLinear(x, s, z)
    xd = DequantizeLinear(xq, s, z)
    a = Mul(xd, wd)
    aq = QuantizeLinear(a, s, z)
    ad = DequantizeLinear(aq, s, z)
    c = Sigmoid(ad)
    cq = QuantizeLinear(c, s, z)
    cd = DequantizeLinear(cq, s, z)
    m = Mul(cd, wd)
    mq = QuantizeLinear(m, s, z)
    md = DequantizeLinear(mq, s, z)
    n = Add(md, vd)
    k = Sub(n, ad)
    kq = QuantizeLinear(k, s, z)
    y = DequantizeLinear(kq, s, z)
  })",
                                 19);
  const auto answer = lf::analyze({.request = {.model_path = bench.write(model).string(),
                                               .quantize = domain::Quantization{},
                                               .assignment = {"htp", "host", "htp", "htp", "htp"}},
                                   .blobs = bench.blobs,
                                   .shapes_answer = {},
                                   .shapes_folder = {}});
  REQUIRE(answer);
  const auto& layers = answer->analysis.layers;
  CHECK(cut(answer->analysis) ==
        std::vector<domain::Segment>{{"htp", 5, {}}, {"host", 3, {}}, {"htp", 11, {}}});
  CHECK(layers[0].output_names == Names{"aq"});
  CHECK(layers[1].input_names == Names{"aq"});
  CHECK(layers[1].output_names == Names{"cq"});
  CHECK(layers[2].input_names == Names{"cq", "aq"});
}

TEST_CASE("an assignment of another model is refused") {
  SegmentBench bench;
  const auto answer = bench.try_split(graph_model(kChain), {"e0"});
  REQUIRE_FALSE(answer);
  CHECK(answer.error().text() == "the assignment is of 1 operators, the model has 4");
}

TEST_CASE("the length of what counts values is no constant, and no such value leaves its segment") {
  SegmentBench bench;
  const auto model = graph_model(R"((float[16] x) => (float[16] y, float[16] w)
  <int64 one = {1}> {
    r = Relu(x)
    z = NonZero(r)
    t = Transpose(z)
    v = GatherND(x, t)
    s = ReduceSum<keepdims = 0>(v)
    y = Add(r, s)
    h = Shape(z)
    n = Gather(h, one)
    f = Cast<to = 1>(n)
    w = Mul(x, f)
  })");
  const auto split = [&](Names assignment) {
    const auto answer = lf::analyze(
        {.request = {.model_path = bench.write(model).string(),
                     .assignment = std::move(assignment)},
         .blobs = bench.blobs,
         .shapes_answer =
             R"({"ok":true,"values":[{"name":"z","dtype":7,"dims":[1,16]},{"name":"t","dtype":7,"dims":[16,1]},{"name":"v","dtype":1,"dims":[16]}]})",
         .shapes_folder = {}});
    REQUIRE(answer);
    return answer->analysis;
  };
  const auto one = split({"a", "a", "a", "a", "a", "a", "a", "a", "a", "a"});
  CHECK(bench.ops(one).front() ==
        "Relu NonZero Transpose GatherND ReduceSum Add Shape Gather Cast Mul");
  // In a segment the values have the shapes that come, not those of the run.
  for (const auto& layer : one.layers) {
    const auto module = bench.module(layer.module);
    std::size_t open = 0;
    for (const auto& value : module.graph().value_info()) {
      for (const auto& dim : value.type().tensor_type().shape().dim())
        open += dim.has_dim_value() ? 0 : 1;
    }
    CHECK(open == 5);  // z, t and v
  }
  CHECK(std::none_of(one.notes.begin(), one.notes.end(),
                     [](const std::string& note) { return note.starts_with("[Executor"); }));
  // Transpose, Shape and GatherND go with NonZero; ReduceSum and Gather take fixed shapes.
  const auto two = split({"a", "a", "b", "b", "b", "b", "b", "b", "b", "b"});
  CHECK(two.segments.size() == 2);
  CHECK(bench.ops(two)[0] == "Relu NonZero Transpose GatherND ReduceSum Shape");
  CHECK(bench.ops(two)[1] == "Add Gather Cast Mul");
  CHECK(two.notes.back() ==
        "[ExecutorAssignments] 4 operator(s) run on a together with NonZero_z (Transpose_t of b, "
        "GatherND_v of b, ReduceSum_s of b and 1 more): tensors between them have a shape that "
        "depends on the values fed, and what passes from one segment to another needs a fixed one");
}
