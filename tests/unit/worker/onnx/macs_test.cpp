#include "worker/onnx/macs.h"

#include <nlohmann/json.hpp>

#include "tests/unit/worker/onnx/bench.h"

using namespace layerfarm;
using namespace layerfarm::test;

TEST_CASE("counts and records equal those of the original tool, key by key") {
  OnnxBench bench;
  const auto analysis = bench.analyze(read_model("macs.onnx"));
  const auto golden = nlohmann::ordered_json::parse(*base::read_file(
      std::filesystem::path(kTestsFolder) / "data" / "models" / "macs_mac_debug.json"));
  REQUIRE(golden["ops"].size() == analysis.layers.size());
  for (const domain::Layer& layer : analysis.layers) {
    const auto& wanted = golden["ops"][layer.id];
    CHECK(layer.mac_count == wanted["mac_count"].get<std::int64_t>());
    CHECK(nlohmann::ordered_json::parse(layer.mac_breakdown).dump() ==
          wanted["mac_breakdown"].dump());
  }
}

TEST_CASE("each kind of multiplying operator is counted by its own rule") {
  OnnxBench bench;
  const auto count = [&](const std::string& graph) {
    const auto analysis = bench.analyze(graph_model(graph));
    return analysis.layers.back().mac_count;
  };
  CHECK(count("(float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4,8,8] y) { y = Conv<pads = "
              "[1,1,1,1]>(x, w) }") == 256 * 27);
  CHECK(count("(float[1,4,6,6] x, float[4,2,2,2] w) => (float[1,2,7,7] y) { y = ConvTranspose(x, "
              "w) }") == 144 * 8);
  CHECK(count("(float[5,2] a, float[3,5] b) => (float[2,3] y) { y = Gemm<transA = 1, transB = "
              "1>(a, b) }") == 2 * 5 * 3);
  CHECK(count("(float[2,3,4] a, float[4,5] b) => (float[2,3,5] y) { y = MatMul(a, b) }") == 30 * 4);
  CHECK(count("(uint8[2,4] a, uint8[4,5] b) => (int32[2,5] y) { y = MatMulInteger(a, b) }") ==
        10 * 4);
  CHECK(count("(float[2,3] a, float[3,4] b) => (float[2,4] y) { y = Einsum<equation = \"i j, j k "
              "-> i k\">(a, b) }") == 24);
  CHECK(count("(float[2,3] a) => (float[3,2] y) { y = Einsum<equation = \"...ij->...ji\">(a) }") ==
        0);
  CHECK(count("(float[7,2,3] x, float[1,16,3] w, float[1,16,4] r) => (float[7,1,2,4] y) { y, h, c "
              "= LSTM<hidden_size = 4>(x, w, r) }") == 14 * (48 + 64));
  CHECK(count("(float[2] x) => (float[2] y) { y = Relu(x) }") == 0);
}

TEST_CASE("a record ends with its formula and names the node only where it has a name") {
  OnnxBench bench;
  auto model = graph_model("(float[2,3] a, float[3,4] b) => (float[2,4] y) { y = MatMul(a, b) }");
  CHECK(
      bench.analyze(model).layers[0].mac_breakdown ==
      R"([{"op_type":"MatMul","mac_count":24,"output_shape":[2,4],"K":3,"output_dtype":"float32","a_shape":[2,3],"a_dtype":"float32","formula":"prod(output_shape) * K"}])");
  model.mutable_graph()->mutable_node(0)->set_name("mm");
  CHECK(bench.analyze(model).layers[0].mac_breakdown.starts_with(
      R"([{"node_name":"mm","op_type":"MatMul")"));
}
