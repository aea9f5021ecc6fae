#include "worker/onnx/analyze.h"

#include <set>

#include "tests/unit/worker/onnx/bench.h"

using namespace layerfarm;
using namespace layerfarm::test;
using domain::DType;
using Ints = std::vector<std::int64_t>;

TEST_CASE("every node but constants becomes a layer with the id of its first output") {
  OnnxBench bench;
  const auto analysis = bench.analyze(read_model("gen_odd.onnx"));
  std::vector<std::string> ids;
  for (const domain::Layer& layer : analysis.layers) {
    ids.push_back(layer.id);
    CHECK(layer.problem.empty());
    CHECK(layer.orig_index == ids.size() - 1);
  }
  CHECK(ids == std::vector<std::string>{"MatMul_mm::0", "Add_层 1", "Split_it's", "Clip_<clip>",
                                        "Sqrt_dead end", "Equal_cond?", "If_picked",
                                        "Concat_joined", "Add_out/😀"});
  // An initializer that is also an input is a constant.
  CHECK(analysis.layers[1].input_names == std::vector<std::string>{"mm::0"});
  CHECK(analysis.layers[1].node_name == "add \"quoted\"");
  // Results that nobody uses stay.
  CHECK(analysis.layers[2].output_names == std::vector<std::string>{"it's", "b\\c"});
  CHECK(analysis.layers[4].output_names == std::vector<std::string>{"dead end"});
  // What only the branches read is an input.
  CHECK(analysis.layers[6].input_names == std::vector<std::string>{"cond?", "层 1"});
}

TEST_CASE("ids that would be equal are made different, without taking another layer's") {
  OnnxBench bench;
  const auto analysis = bench.analyze(parse_model(R"(
    <ir_version: 8, opset_import: ["" : 17, "d" : 1]>
    agraph (float[2] x) => (float[2] c) { b_c = d.A(x)  c = d.A_b(b_c)  c_2 = d.A_b(c) })"));
  REQUIRE(analysis.layers.size() == 3);
  std::set<std::string> ids;
  for (const domain::Layer& layer : analysis.layers) ids.insert(layer.id);
  CHECK(ids == std::set<std::string>{"A_b_c", "A_b_c_3", "A_b_c_2"});
  CHECK(analysis.layers[2].id == "A_b_c_2");
}

TEST_CASE(
    "layers of equal form share signature and module; layers that differ in float weights share "
    "the loose signature") {
  OnnxBench bench;
  const auto analysis = bench.analyze(read_model("gen_repeat_cnn.onnx"));
  CHECK(analysis.layers.size() == 36);
  std::set<base::Digest> exact;
  std::set<base::Digest> loose;
  for (const domain::Layer& layer : analysis.layers) {
    exact.insert(layer.signature);
    loose.insert(layer.loose_signature);
  }
  // Blocks 2, 4 and 6 are the same in everything.
  CHECK(exact.size() == 15);
  CHECK(loose.size() == 8);
  CHECK(layer_named(analysis, "Conv_b2.c1").module == layer_named(analysis, "Conv_b4.c1").module);
  CHECK(layer_named(analysis, "Conv_b1.c1").signature !=
        layer_named(analysis, "Conv_b2.c1").signature);
  CHECK(layer_named(analysis, "Conv_b1.c1").loose_signature ==
        layer_named(analysis, "Conv_b2.c1").loose_signature);
}

TEST_CASE("dynamic dims are what was asked for, else 1, and a name that no input has is told") {
  OnnxBench bench;
  const auto model = read_model("gen_tiny_transformer.onnx");
  const auto alone = bench.analyze(model);
  CHECK(layer_named(alone, "Gather_emb").outputs[0].dims == Ints{1, 1, 32});
  const auto sized = bench.analyze(model, {{"length", 7}, {"batch", 2}, {"typo", 3}});
  CHECK(layer_named(sized, "Gather_emb").outputs[0].dims == Ints{2, 7, 32});
  CHECK(sized.layers.back().outputs[0].dims == Ints{2, 32});
  REQUIRE(sized.notes.size() == 1);
  CHECK(sized.notes[0].find("'typo'") != std::string::npos);
}

TEST_CASE("analyzing twice gives the same result, whatever the threads do") {
  OnnxBench bench;
  const auto model = read_model("gen_repeat_cnn.onnx");
  CHECK(bench.analyze(model) == bench.analyze(model));
}

TEST_CASE("layers that cannot be tested say why and harm no other layer") {
  OnnxBench bench;
  pb::ModelProto model = graph_model(
      "(float[2] x, float[2] s) => (float[2] y) { q = SequenceConstruct(x, s) z = SequenceAt(q, i) "
      "y = Relu(x) i = Constant<value_int = 0>() t = own.Thing(x) u = Neg(t) w = Cast<to = 8>(x) "
      "}");
  auto& import = *model.add_opset_import();
  import.set_domain("own");
  import.set_version(1);
  const auto analysis = bench.analyze(model);
  CHECK(layer_named(analysis, "SequenceConstruct_q").problem ==
        "output 'q' is a sequence of float32 tensors; only tensors can be fed and compared");
  CHECK(layer_named(analysis, "SequenceAt_z").problem ==
        "input 'q' is a sequence of float32 tensors; only tensors can be fed and compared");
  CHECK(layer_named(analysis, "Thing_t").problem == "the type of output 't' is unknown");
  CHECK(layer_named(analysis, "Neg_u").problem == "the type of input 't' is unknown");
  CHECK(layer_named(analysis, "Cast_w").problem ==
        "output 'w' has the element type string, which cannot be fed and compared");
  CHECK(layer_named(analysis, "Relu_y").problem.empty());
  pb::ModelProto huge = graph_model("(float[2] x) => (float[2] y) { y = Relu(x) }");
  huge.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_value(std::int64_t{1} << 40);
  huge.mutable_graph()->mutable_output(0)->clear_type();
  CHECK(bench.analyze(huge).layers[0].problem == "input 'x' has a shape of more than 2 GiB");
}

TEST_CASE("shapes that inference leaves open are asked for, and the answer completes the layers") {
  OnnxBench bench;
  const auto file = bench.write(graph_model(
      R"((float[2,8] x, int64[1] k) => (float[a,b] y) { v, i = TopK(x, k) y = Relu(v) })"));
  lf::AnalyzeOptions options{.request = {.model_path = file.string(), .dims = {}},
                             .blobs = bench.blobs,
                             .shapes_answer = {},
                             .shapes_folder = bench.folder};
  const auto asked = lf::analyze(options);
  REQUIRE(asked);
  REQUIRE_FALSE(asked->shapes_request.empty());
  CHECK(asked->shapes_request.find(R"("op":"shapes")") != std::string::npos);
  CHECK(asked->shapes_request.find(R"("name":"k","dtype":7,"dims":[1],"lo":1.0,"hi":2.0)") !=
        std::string::npos);
  CHECK(std::filesystem::exists(bench.folder / "model.onnx"));

  options.shapes_answer =
      R"({"ok":true,"values":[{"name":"v","dtype":1,"dims":[2,3]},{"name":"i","dtype":7,"dims":[2,3]},{"name":"y","dtype":1,"dims":[2,3]},
    {"name":"x","dtype":11,"dims":[9]},{"name":3},{"name":"v","dtype":1,"dims":[-1]}]})";
  const auto answered = lf::analyze(options);
  REQUIRE(answered);
  const auto& topk = layer_named(answered->analysis, "TopK_v");
  CHECK(topk.problem.empty());
  CHECK(topk.outputs[1] == domain::TensorType{DType::Int64, {2, 3}});
  CHECK(topk.inputs[1].values == std::vector<double>{3});  // k fits the shape that was seen
  CHECK(layer_named(answered->analysis, "Relu_y").inputs[0].type.dims == Ints{2, 3});
  CHECK(topk.inputs[0].type ==
        domain::TensorType{DType::Float32, {2, 8}});  // what is known is not overruled

  options.shapes_answer = R"({"ok":false,"where":"run","text":"boom\nmore"})";
  const auto failed = lf::analyze(options);
  REQUIRE(failed);
  CHECK(layer_named(failed->analysis, "Relu_y").problem == "the shape of input 'v' is unknown");
  CHECK(
      failed->analysis.notes.back() ==
      "the shapes that ONNX's inference leaves open could not be found by running the model: boom");
}

TEST_CASE("a layer's shapes are not half from the file and half from a run that contradicts it") {
  OnnxBench bench;
  // As CenterCropPad written out: what is fed decides the shapes of p and y, the file declares y's.
  const auto file = bench.write(graph_model(R"((float[9,4] x, int64[4] pads, int64[2] to) =>
      (float[5,4] y, float[5,4] z) { p = Pad(x, pads)  s = Shape(p)  from = Sub(s, to)  y = Slice(p, from, s)
      z = Relu(y) })"));
  lf::AnalyzeOptions options{.request = {.model_path = file.string(), .dims = {}},
                             .blobs = bench.blobs,
                             .shapes_answer = {},
                             .shapes_folder = bench.folder / "run"};
  std::filesystem::create_directory(bench.folder / "run");
  const auto asked = lf::analyze(options);
  REQUIRE(asked);
  REQUIRE_FALSE(asked->shapes_request.empty());
  // The run is asked for what is declared too.
  pb::ModelProto model;
  REQUIRE(model.ParseFromString(*base::read_file(bench.folder / "run" / "model.onnx")));
  std::set<std::string> outputs;
  for (const auto& output : model.graph().output()) outputs.insert(output.name());
  CHECK(outputs == std::set<std::string>{"p", "y", "z"});

  const auto answered = [&](const std::string& y) {
    options.shapes_answer =
        R"({"ok":true,"values":[{"name":"p","dtype":1,"dims":[9,4]},{"name":"y","dtype":1,"dims":)" +
        y + R"(},{"name":"z","dtype":1,"dims":)" + y + "}]}";
    const auto answer = lf::analyze(options);
    REQUIRE(answer);
    return answer->analysis;
  };
  // What the run shows goes for both operators, though only the first meets what it alone shows.
  const auto other = answered("[7,4]");
  CHECK(layer_named(other, "Slice_y").problem.empty());
  CHECK(layer_named(other, "Slice_y").outputs[0].dims == Ints{7, 4});
  CHECK(layer_named(other, "Relu_z").inputs[0].type.dims == Ints{7, 4});
  CHECK(layer_named(other, "Relu_z").outputs[0].dims == Ints{7, 4});
  CHECK(other.notes.back() ==
        "the shapes of 1 values were found by running the model; those of 2 that meet them are as "
        "in that run, not as the file declares them");
  // To test operators with nothing would prove nothing.
  const auto apart = answered("[0,4]");
  CHECK(layer_named(apart, "Slice_y").problem ==
        "the shape of output 'y' is [5,4] by the model file, but [0,4] in the run that shows the "
        "shape of input 'p'");
  CHECK(layer_named(apart, "Pad_p").problem.empty());
  // All of this one's are from the file.
  CHECK(layer_named(apart, "Relu_z").problem.empty());
  const auto together = answered("[5,4]");
  CHECK(layer_named(together, "Slice_y").problem.empty());
  CHECK(layer_named(together, "Slice_y").inputs[0].type.dims == Ints{9, 4});
}

TEST_CASE("what the file declares helps where inference knows nothing of an operator") {
  OnnxBench bench;
  pb::ModelProto model = parse_model(R"(
    <ir_version: 8, opset_import: ["" : 17, "own" : 1]>
    agraph (float[batch,4] x) => (float[batch,8] y) <float[batch,8] t> { t = own.Thing(x)  y = Relu(t) })");
  const auto analysis = bench.analyze(model, {{"batch", 5}});
  CHECK(layer_named(analysis, "Thing_t").problem.empty());
  CHECK(layer_named(analysis, "Relu_y").outputs[0].dims == Ints{5, 8});
}

TEST_CASE("constants above 64 KiB are files beside the module, equal ones once") {
  OnnxBench bench;
  const auto analysis = bench.analyze(graph_model(R"((float[1,200] x) => (float[1,200] y) {
    s = Constant<value_ints = [200, 200]>()
    w = ConstantOfShape<value = float[1] {0.5}>(s)
    h = MatMul(x, w)
    y = MatMul(h, w)
  })"));
  const auto& layer = layer_named(analysis, "MatMul_h");
  REQUIRE(layer.module.data.size() == 1);
  CHECK(layer.module.data[0].bytes == 160000);
  CHECK(layer.module.data[0].name == layer.module.data[0].blob.hex());
  const auto bytes = bench.blobs.get(layer.module.data[0].blob);
  REQUIRE(bytes);
  CHECK(bytes->substr(0, 4) == std::string("\0\0\0\x3f", 4));
  CHECK(layer.module == layer_named(analysis, "MatMul_y").module);
  const auto module = bench.module(layer.module);
  CHECK(module.graph().initializer(0).data_location() == pb::TensorProto::EXTERNAL);
  CHECK(module.graph().initializer(0).external_data(0).value() == layer.module.data[0].name);
}

TEST_CASE("shapes that depend on what is fed are left open in the module") {
  OnnxBench bench;
  const auto analysis =
      bench.analyze(graph_model("(float[2,3] x) => (int64[2,5] y) { y = NonZero(x) }"));
  const auto module = bench.module(analysis.layers[0].module);
  const auto& shape = module.graph().output(0).type().tensor_type().shape();
  REQUIRE(shape.dim_size() == 2);
  CHECK_FALSE(shape.dim(1).has_dim_value());
}

TEST_CASE("the ONNX library says its version") {
  CHECK(lf::onnx_version().find('.') != std::string::npos);
}
