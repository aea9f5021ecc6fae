#include "worker/onnx/load.h"

#include <sys/stat.h>

#include "tests/unit/worker/onnx/bench.h"

using namespace layerfarm;
using namespace layerfarm::test;

namespace {

const char* const kRelu = "(float[2,3] x) => (float[2,3] y) { y = Relu(x) }";

/// A model whose weight lies in a file beside it.
pb::ModelProto external_model(const std::string& location, int offset, int length) {
  pb::ModelProto model =
      graph_model("(float[2,4] x) => (float[2,4] y) <float[4,4] w> { y = MatMul(x, w) }");
  pb::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  model.mutable_graph()->clear_value_info();
  tensor.set_name("w");
  tensor.set_data_type(pb::TensorProto::FLOAT);
  tensor.add_dims(4);
  tensor.add_dims(4);
  tensor.set_data_location(pb::TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair<std::string, std::string>("location", location),
                                   {"offset", std::to_string(offset)},
                                   {"length", std::to_string(length)}}) {
    pb::StringStringEntryProto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  return model;
}

}  // namespace

TEST_CASE("files that are no model each get their own reason") {
  OnnxBench bench;
  CHECK(bench.refusal(bench.folder / "none.onnx") == "cannot be read: No such file or directory");
  CHECK(bench.refusal(bench.folder) == "is a folder, not a file");
  CHECK(bench.refusal(bench.write(std::string())) == "is empty");
  CHECK(bench.refusal(bench.write("hello, this is a text")) == "is not an ONNX model");
  CHECK(bench.refusal(bench.write("<!doctype html>")) == "is not an ONNX model");
  CHECK(bench.refusal(bench.write("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"))
            .starts_with("is a Git LFS pointer"));
  CHECK(bench.refusal(bench.write(std::string("\x08\x08", 2))) ==
        "is not an ONNX model: it has no graph");
  const std::string whole = graph_model(kRelu).SerializeAsString();
  CHECK(bench.refusal(bench.write(whole.substr(0, whole.size() - 3)))
            .starts_with("is truncated: it ends at byte"));
  std::string broken = whole;
  broken[whole.find("Relu") - 1] = '\x7f';
  CHECK(bench.refusal(bench.write(broken)) == "is damaged: it does not parse as an ONNX model");
}

TEST_CASE("operator sets older than 7 and newer than known are refused with the number") {
  OnnxBench bench;
  CHECK(bench.refusal(bench.write(graph_model(kRelu, 6)))
            .starts_with("has opset 6, the oldest that is read is 7"));
  CHECK(bench.refusal(bench.write(graph_model(kRelu, 999)))
            .starts_with("has opset 999, the newest that this program knows is"));
  pb::ModelProto none = graph_model(kRelu);
  none.clear_opset_import();
  CHECK(bench.refusal(bench.write(none)).starts_with("has opset 1,"));
  for (const int opset : {7, 13, static_cast<int>(lf::newest_opset())})
    CHECK(bench.analyze(graph_model(kRelu, opset)).layers.size() == 1);
}

TEST_CASE("names that occur twice, cycles and names from nowhere are refused") {
  OnnxBench bench;
  CHECK(bench
            .refusal(
                bench.write(graph_model("(float[2] x) => (float[2] y) { y = Relu(x) y = Neg(x) }")))
            .starts_with("has two values named 'y'"));
  CHECK(bench
            .refusal(
                bench.write(graph_model("(float[2] x) => (float[2] y) { x = Relu(x) y = Neg(x) }")))
            .starts_with("has two values named 'x'"));
  CHECK(bench.refusal(
            bench.write(graph_model("(float[2] x, float[2] x) => (float[2] y) { y = Neg(x) }"))) ==
        "has two inputs named 'x'");
  CHECK(bench.refusal(bench.write(graph_model(
            "(float[2] x) => (float[2] y) { a = Add(x, b) b = Relu(a) y = Neg(b) }"))) ==
        "has a cycle: the node Add 'a' depends on itself");
  CHECK(bench.refusal(bench.write(graph_model("(float[2] x) => (float[2] y) { y = Add(x, z) }"))) ==
        "is damaged: the node Add 'y' uses 'z', which nothing makes");
  CHECK(bench.refusal(bench.write(graph_model("(float[2] x) => (float[2] z) { y = Relu(x) }"))) ==
        "is damaged: nothing makes its output 'z'");
  pb::ModelProto twice = read_model("gen_repeat_cnn.onnx");
  *twice.mutable_graph()->add_initializer() = twice.graph().initializer(0);
  CHECK(bench.refusal(bench.write(twice)) == "has two initializers named 'stem.w'");
}

TEST_CASE("a constant whose data does not fit its shape is refused") {
  OnnxBench bench;
  pb::ModelProto model = read_model("gen_repeat_cnn.onnx");
  model.mutable_graph()->mutable_initializer(0)->set_dims(0, 17);
  CHECK(bench.refusal(bench.write(model)) ==
        "the constant 'stem.w' holds 1728 bytes of data, its shape [17,3,3,3] and type float32 "
        "need 1836");
  model.mutable_graph()->mutable_initializer(0)->set_dims(0, -1);
  CHECK(bench.refusal(bench.write(model)) ==
        "the constant 'stem.w' has the impossible shape [-1,3,3,3]");
  model.mutable_graph()->mutable_initializer(0)->set_data_type(99);
  CHECK(bench.refusal(bench.write(model)).find("the constant 'stem.w' has") == 0);
}

TEST_CASE("nodes in another order than that of computing are sorted, and the user is told") {
  OnnxBench bench;
  const auto analysis = bench.analyze(
      graph_model("(float[2] x) => (float[2] y) { y = Neg(b) b = Relu(a) a = Abs(x) }"));
  REQUIRE(analysis.layers.size() == 3);
  CHECK(analysis.layers[0].id == "Abs_a");
  CHECK(analysis.layers[2].id == "Neg_y");
  REQUIRE(analysis.notes.size() == 1);
  CHECK(analysis.notes[0].find("sorted") != std::string::npos);
  CHECK(analysis.layers[0].outputs[0].dims == std::vector<std::int64_t>{2});
}

TEST_CASE("external data is read from the model's folder and enters the model's digest") {
  OnnxBench bench;
  bench.write(std::string(100, 'a'), "weights.bin");
  const auto first = bench.analyze(external_model("weights.bin", 36, 64));
  REQUIRE(first.files.size() == 2);
  CHECK(first.files[1].path == "weights.bin");
  CHECK(first.files[1].bytes == 100);
  bench.write(std::string(36, 'a') + std::string(64, 'b'), "weights.bin");
  const auto second = bench.analyze(external_model("weights.bin", 36, 64));
  CHECK(first.model_digest != second.model_digest);
  CHECK(first.layers[0].signature != second.layers[0].signature);
  CHECK(first.layers[0].loose_signature == second.layers[0].loose_signature);
  CHECK(bench.module(second.layers[0].module).graph().initializer(0).raw_data() ==
        std::string(64, 'b'));
}

TEST_CASE("external data that is missing, short or outside the model's folder is refused") {
  OnnxBench bench;
  CHECK(bench.refusal(bench.write(external_model("weights.bin", 0, 64))) ==
        "its external data file 'weights.bin' is missing; it must lie beside the model");
  bench.write(std::string(60, 'a'), "weights.bin");
  CHECK(bench.refusal(bench.write(external_model("weights.bin", 0, 64)))
            .starts_with("its external data file 'weights.bin' is too short"));
  CHECK(bench.refusal(bench.write(external_model("weights.bin", 0, 60)))
            .find("has 60 bytes of external data") != std::string::npos);
  for (const char* place : {"../weights.bin", "/etc/passwd", "a/../../weights.bin"}) {
    CHECK(bench.refusal(bench.write(external_model(place, 0, 64)))
              .find("lies outside the model's folder") != std::string::npos);
  }
  std::filesystem::create_symlink("/etc", bench.folder / "link");
  CHECK(bench.refusal(bench.write(external_model("link/passwd", 0, 64)))
            .find("is a link to outside") != std::string::npos);
  CHECK(bench.refusal(bench.write(external_model("", 0, 64))) ==
        "has external data without a file name");
  // A pipe of that name must not hold the reader up.
  REQUIRE(::mkfifo((bench.folder / "pipe").c_str(), 0600) == 0);
  CHECK(bench.refusal(bench.write(external_model("pipe", 0, 64))).find("is not a regular file") !=
        std::string::npos);
}

TEST_CASE("a constant may come in any of ONNX's fields and gives the same layer") {
  OnnxBench bench;
  const auto with = [&](auto fill) {
    pb::ModelProto model = graph_model("(float[2] x) => (float[2] y) { y = Add(x, w) }");
    pb::TensorProto& tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name("w");
    tensor.set_data_type(pb::TensorProto::FLOAT);
    tensor.add_dims(2);
    fill(tensor);
    return bench.analyze(model).layers.at(0).signature;
  };
  const float values[2] = {1.5F, -2.0F};
  const auto raw =
      with([&](pb::TensorProto& tensor) { tensor.set_raw_data(values, sizeof values); });
  const auto typed = with([&](pb::TensorProto& tensor) {
    tensor.add_float_data(values[0]);
    tensor.add_float_data(values[1]);
  });
  CHECK(raw == typed);
  const auto node = bench.analyze(graph_model(
      "(float[2] x) => (float[2] y) { w = Constant<value_floats = [1.5, -2.0]>() y = Add(x, w) }"));
  CHECK(node.layers.at(0).signature == raw);
}
