#include "worker/onnx/raise.h"

#include "tests/unit/worker/onnx/bench.h"

using namespace layerfarm;
using namespace layerfarm::test;

TEST_CASE("an old form is raised and keeps its inputs, results and constants") {
  OnnxBench bench;
  const auto analysis = bench.analyze(
      graph_model("(float[1,200] x) => (float[200] y) { s = Constant<value_ints = [200, 200]>() w "
                  "= ConstantOfShape(s) h = MatMul(x, w) y = Squeeze<axes = [0]>(h) }",
                  11));
  const auto out = bench.folder / "raised.onnx";
  const auto raise = [&](const domain::Layer& layer) {
    const auto done = lf::raise_opset(bench.blobs.path(layer.module.blob), 17, out);
    INFO((done ? std::string() : done.error().text()));
    return done.has_value();
  };
  REQUIRE(raise(layer_named(analysis, "Squeeze_y")));
  pb::ModelProto raised;
  REQUIRE(raised.ParseFromString(*base::read_file(out)));
  CHECK(raised.opset_import(0).version() == 17);
  CHECK(raised.graph().input(0).name() == "i0");
  CHECK(raised.graph().output(0).name() == "o0");
  CHECK(raised.graph().node(raised.graph().node_size() - 1).input_size() == 2);

  // The data file lies beside the module; the raised one refers to the same name.
  const auto& matmul = layer_named(analysis, "MatMul_h");
  REQUIRE(matmul.module.data.size() == 1);
  const auto module = bench.folder / "module.onnx";
  REQUIRE(bench.blobs.link_to(matmul.module.blob, module));
  REQUIRE(
      bench.blobs.link_to(matmul.module.data[0].blob, bench.folder / matmul.module.data[0].name));
  REQUIRE(lf::raise_opset(module, 17, out));
  REQUIRE(raised.ParseFromString(*base::read_file(out)));
  REQUIRE(raised.graph().initializer_size() == 1);
  CHECK(raised.graph().initializer(0).name() == "c0");
  CHECK(raised.graph().initializer(0).external_data(0).value() == matmul.module.data[0].name);
  CHECK(raised.graph().input_size() == 1);
}

TEST_CASE("what cannot be raised is refused and nothing is written") {
  OnnxBench bench;
  const auto out = bench.folder / "raised.onnx";
  const auto model = bench.write(graph_model("(float[2] x) => (float[2] y) { y = Relu(x) }", 17));
  auto done = lf::raise_opset(model, 17, out);
  REQUIRE_FALSE(done);
  CHECK(done.error().text() == "has opset 17, it cannot be raised to 17");
  done = lf::raise_opset(model, 999, out);
  REQUIRE_FALSE(done);
  CHECK(done.error().text().find("the newest is") != std::string::npos);
  done = lf::raise_opset(bench.write("no model", "other"), 17, out);
  REQUIRE_FALSE(done);
  CHECK(done.error().text() == "is not an ONNX model");
  CHECK_FALSE(std::filesystem::exists(out));
}
