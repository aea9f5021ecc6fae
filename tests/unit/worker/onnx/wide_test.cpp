#include "worker/onnx/wide.h"

#include "tests/unit/worker/onnx/bench.h"

using namespace layerfarm;
using namespace layerfarm::test;

TEST_CASE("a bfloat16 layer gets a float32 form with its result rounded") {
  OnnxBench bench;
  const auto analysis = bench.analyze(
      graph_model("(bfloat16[2,4] x, float[2] unused) => (bfloat16[2,4] y) { w = Cast<to = 16>(c) "
                  "y = Mul(x, w) c = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]>() }"));
  const auto& layer = layer_named(analysis, "Mul_y");
  CHECK(layer.problem == "");
  REQUIRE(layer.wide_module);
  const auto wide = bench.module(*layer.wide_module);
  REQUIRE(wide.graph().node_size() == 3);
  CHECK(wide.graph().node(0).op_type() == "Mul");
  CHECK(wide.graph().node(1).op_type() == "Cast");
  CHECK(wide.graph().node(1).attribute(0).i() == pb::TensorProto::BFLOAT16);
  CHECK(wide.graph().node(2).attribute(0).i() == pb::TensorProto::FLOAT);
  CHECK(wide.graph().node(2).output(0) == wide.graph().output(0).name());
  CHECK(wide.graph().input(0).type().tensor_type().elem_type() == pb::TensorProto::FLOAT);
  CHECK(wide.graph().output(0).type().tensor_type().elem_type() == pb::TensorProto::FLOAT);
  CHECK(wide.graph().initializer(0).data_type() == pb::TensorProto::FLOAT);
  CHECK(lf::read_constant(wide.graph().initializer(0))->bytes ==
        std::string("\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40", 16));
  // The layer itself keeps its type.
  CHECK(layer.inputs[0].type.dtype == domain::DType::BFloat16);
  CHECK(bench.module(layer.module).graph().input(0).type().tensor_type().elem_type() ==
        pb::TensorProto::BFLOAT16);
}

TEST_CASE("attributes that name the type follow it, other results stay") {
  OnnxBench bench;
  const auto cast =
      bench.analyze(graph_model("(float[2] x) => (bfloat16[2] y) { y = Cast<to = 16>(x) }"));
  REQUIRE(cast.layers[0].wide_module);
  CHECK(bench.module(*cast.layers[0].wide_module).graph().node(0).attribute(0).i() ==
        pb::TensorProto::FLOAT);
  const auto compare = bench.analyze(
      graph_model("(bfloat16[2] x, bfloat16[2] z) => (bool[2] y) { y = Less(x, z) }"));
  REQUIRE(compare.layers[0].wide_module);
  CHECK(bench.module(*compare.layers[0].wide_module).graph().node_size() == 1);
}

TEST_CASE("layers without bfloat16, and those with bodies, have no wide form") {
  OnnxBench bench;
  CHECK_FALSE(bench.analyze(graph_model("(float16[2] x) => (float16[2] y) { y = Relu(x) }"))
                  .layers[0]
                  .wide_module);
  CHECK_FALSE(bench
                  .analyze(graph_model("(bool c, bfloat16[2] x) => (bfloat16[2] y) { y = If(c) "
                                       "<then_branch = a () => (bfloat16[2] p) { p = Neg(x) }, "
                                       "else_branch = b () => (bfloat16[2] q) { q = Abs(x) }> }"))
                  .layers[0]
                  .wide_module);
  lf::Constant other = lf::make_constant({domain::DType::Float32, {1}}, std::string(4, '\0'));
  CHECK_FALSE(lf::widened(other));
}
