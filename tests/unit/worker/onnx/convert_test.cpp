#include "worker/onnx/convert.h"

#include <onnx/checker.h>

#include <cmath>
#include <limits>
#include <map>

#include "tests/unit/worker/onnx/bench.h"

using namespace layerfarm;
using namespace layerfarm::test;

namespace {

constexpr int kFloat = pb::TensorProto::FLOAT;
constexpr int kBf16 = pb::TensorProto::BFLOAT16;
constexpr int kInt64 = pb::TensorProto::INT64;
constexpr int kInt32 = pb::TensorProto::INT32;

struct ConvertBench : OnnxBench {
  base::Result<lf::LoadedModel> try_convert(const pb::ModelProto& model, domain::Conversion asked,
                                            const lf::Dims& dims = {}) const {
    auto loaded = lf::load_model(write(model));
    INFO((loaded ? std::string() : loaded.error().text()));
    REQUIRE(loaded);
    if (auto done = lf::convert_types(*loaded, asked, dims); !done) return base::fail(done.error());
    return loaded;
  }
  lf::LoadedModel convert(const pb::ModelProto& model, domain::Conversion asked,
                          const lf::Dims& dims = {}) const {
    auto converted = try_convert(model, asked, dims);
    INFO((converted ? std::string() : converted.error().text()));
    REQUIRE(converted);
    return std::move(*converted);
  }
  lf::LoadedModel to_bf16(const pb::ModelProto& model) const {
    return convert(model, {.bf16 = true});
  }
  lf::LoadedModel to_int32(const pb::ModelProto& model) const {
    return convert(model, {.int32 = true});
  }
  std::string refusal(const pb::ModelProto& model, domain::Conversion asked) const {
    const auto converted = try_convert(model, asked);
    REQUIRE_FALSE(converted);
    return converted.error().text();
  }
};

int elem(const pb::ValueInfoProto& value) { return value.type().tensor_type().elem_type(); }

/// "Op(inputs) -> outputs" of each node, in order.
std::vector<std::string> lines(const pb::GraphProto& graph) {
  std::vector<std::string> out;
  for (const pb::NodeProto& node : graph.node()) {
    std::string line = node.op_type() + "(";
    for (int i = 0; i < node.input_size(); ++i) line += (i > 0 ? "," : "") + node.input(i);
    line += ")";
    for (int i = 0; i < node.output_size(); ++i) line += (i > 0 ? "," : " ") + node.output(i);
    out.push_back(line);
  }
  return out;
}
std::vector<std::string> lines(const lf::LoadedModel& model) { return lines(model.proto.graph()); }

std::map<std::string, int> constants(const lf::LoadedModel& model) {
  std::map<std::string, int> out;
  for (const auto& [name, value] : model.initializers)
    out[name] = static_cast<int>(value.type.dtype);
  return out;
}

using Lines = std::vector<std::string>;
using Types = std::map<std::string, int>;

}  // namespace

TEST_CASE("every float tensor becomes bfloat16, constants under a name of their own") {
  const ConvertBench bench;
  const auto model = bench.to_bf16(
      graph_model("(float[1,4] x) => (float[1,4] y) <float[4] w = {1.0, 1.00390625, 1.01171875, "
                  "-3.0e38}> { c = Constant<value_float = 2.0>() h = Mul(x, w) y = Add(h, c) }"));
  CHECK(lines(model) == Lines{"Mul(x,w_bf16) h", "Add(h,c_folded_bf16) y"});
  CHECK(constants(model) == Types{{"w_bf16", kBf16}, {"c_folded_bf16", kBf16}});
  CHECK(elem(model.proto.graph().input(0)) == kBf16);
  CHECK(elem(model.proto.graph().output(0)) == kBf16);
  CHECK(lf::opset_version(model.proto, "") == 22);
  // Ties go to the even neighbour.
  const std::string bytes(model.initializers.at("w_bf16").bytes);
  CHECK(bytes.substr(0, 6) == std::string("\x80\x3f\x80\x3f\x82\x3f", 6));
  REQUIRE(model.proto.graph().initializer_size() == 2);
  CHECK(model.proto.graph().initializer(0).name() == "w_bf16");
  CHECK(model.notes.back() ==
        "[BF16] 2 constants and 3 values became bfloat16, 0 casts were added");
}

TEST_CASE("a constant that bfloat16 cannot hold is refused by name") {
  const ConvertBench bench;
  const auto refusal = [&](const std::string& number) {
    pb::ModelProto model =
        graph_model("(float[2] x) => (float[2] y) <float[2] w = {0.0, 1.0}> { y = Mul(x, w) }");
    model.mutable_graph()->mutable_initializer(0)->set_float_data(1, std::stof(number));
    return bench.refusal(model, {.bf16 = true});
  };
  for (const char* number : {"3.4028e38", "-3.39e38", "inf", "nan"}) {
    INFO(number);
    const std::string why = refusal(number);
    CHECK(why.starts_with("cannot be converted to bfloat16: element 1 of the constant 'w' is "));
    CHECK(why.find('\n') == std::string::npos);
  }
  pb::ModelProto model =
      graph_model("(float[2] x) => (float[2] y) <float[2] w = {0.0, 1.0}> { y = Mul(x, w) }");
  model.mutable_graph()->mutable_initializer(0)->set_float_data(1, 3.3895e38F);
  CHECK(bench.try_convert(model, {.bf16 = true}));
}

TEST_CASE("an operator that knows no bfloat16 keeps float behind casts") {
  const ConvertBench bench;
  const auto model = bench.to_bf16(graph_model(
      "(float[1,8] x) => (float[1,2] top, float[1,2] z) <int64[1] k = {2}> { h = Relu(x) top, at = "
      "TopK(h, k) other, unused = TopK(h, k) z = Abs(other) }"));
  CHECK(lines(model) == Lines{"Relu(x) h", "Cast(h) h_fp32", "TopK(h_fp32,k) top_fp32,at",
                              "Cast(top_fp32) top", "TopK(h_fp32,k) other,unused",
                              "Cast(other) other_bf16", "Abs(other_bf16) z"});
  CHECK(elem(model.proto.graph().output(0)) == kBf16);
  const auto& nodes = model.proto.graph().node();
  CHECK(nodes[1].attribute(0).i() == kFloat);
  CHECK(nodes[3].attribute(0).i() == kBf16);
}

TEST_CASE("attributes that name float name bfloat16") {
  const ConvertBench bench;
  const auto model = bench.to_bf16(graph_model(
      "(int64[4] i, float[1,4] x) => (float[4] a, float[2] b, float[2] c, float[1,4] d, float[1,4] "
      "e) <int64[1] s = {2}, float[4] g = {1,1,1,1}> { a = Cast<to = 1>(i) b = ConstantOfShape(s) "
      "c = ConstantOfShape<value = float[1] {3.0}>(s) d = RandomNormalLike<dtype = 1>(x) e = "
      "LayerNormalization<axis = -1>(x, g) }"));
  const auto& nodes = model.proto.graph().node();
  REQUIRE(nodes.size() == 5);
  CHECK(nodes[0].attribute(0).i() == kBf16);
  CHECK(lf::find_attribute(nodes[1], "value")->t().data_type() == kBf16);
  CHECK(lf::find_attribute(nodes[2], "value")->t().raw_data() == std::string("\x40\x40", 2));
  CHECK(lf::int_attribute(nodes[3], "dtype", 0) == kBf16);
  CHECK(lf::int_attribute(nodes[4], "stash_type", 0) == kBf16);
  for (const auto& output : model.proto.graph().output()) CHECK(elem(output) == kBf16);
  CHECK(elem(model.proto.graph().input(0)) == kInt64);
}

TEST_CASE("Resize keeps the scales exact") {
  const ConvertBench bench;
  const auto model = bench.to_bf16(graph_model(
      "(float[1,1,2,2] x) => (float[1,1,4,4] y, float[4] z) <float[4] scales = {1,1,2,2}> { y = "
      "Resize(x, , scales) z = Relu(scales) }"));
  CHECK(lines(model) == Lines{"Resize(x,,scales) y", "Relu(scales_bf16) z"});
  CHECK(constants(model) == Types{{"scales", kFloat}, {"scales_bf16", kBf16}});
}

TEST_CASE("bodies are converted with what they capture") {
  const ConvertBench bench;
  const auto model = bench.to_bf16(graph_model(
      "(float[4] x, bool on) => (float[4] y) <float[4] w = {1,2,3,4}, int64[1] k = {4}> { h, at = "
      "TopK(x, k) y = If(on) <then_branch = t () => (float[4] a) { c = Constant<value = float[1] "
      "{0.5}>() b = Mul(h, w) a = Add(b, c) }, else_branch = e () => (float[4] d) { d = "
      "Identity(h) }> }"));
  const auto& node = model.proto.graph().node(3);
  REQUIRE(node.op_type() == "If");
  const pb::GraphProto& then_branch = lf::find_attribute(node, "then_branch")->g();
  CHECK(lines(then_branch) == Lines{"Mul(h_bf16,w_bf16) b", "Add(b,c_folded_bf16) a"});
  CHECK(then_branch.initializer(0).name() == "c_folded_bf16");
  CHECK(then_branch.initializer(0).data_type() == kBf16);
  CHECK(elem(then_branch.output(0)) == kBf16);
  CHECK(lines(lf::find_attribute(node, "else_branch")->g()) == Lines{"Identity(h_bf16) d"});
}

TEST_CASE("a model that is bfloat16 already passes through") {
  const ConvertBench bench;
  const auto model = bench.to_bf16(
      graph_model("(bfloat16[1,4] x) => (bfloat16[1,4] y) { h = Relu(x) y = Mul(h, h) }", 22));
  CHECK(lines(model) == Lines{"Relu(x) h", "Mul(h,h) y"});
  CHECK(elem(model.proto.graph().output(0)) == kBf16);
}

TEST_CASE("the first dim is one unless it is named") {
  const ConvertBench bench;
  const auto text = graph_model("(float[batch,n] x) => (float[batch,n] y) { y = Relu(x) }");
  const auto model = bench.convert(text, {.bf16 = true});
  for (const auto* value : {&model.proto.graph().input(0), &model.proto.graph().output(0)}) {
    CHECK(value->type().tensor_type().shape().dim(0).dim_value() == 1);
    CHECK(value->type().tensor_type().shape().dim(1).dim_param() == "n");
  }
  const auto named = bench.convert(text, {.bf16 = true}, {{"batch", 3}});
  CHECK(named.proto.graph().input(0).type().tensor_type().shape().dim(0).dim_param() == "batch");
  const auto integers = bench.convert(text, {.int32 = true});
  CHECK(integers.proto.graph().input(0).type().tensor_type().shape().dim(0).dim_param() == "batch");
}

TEST_CASE("64-bit integers become 32-bit ones where nothing demands 64 bits") {
  const ConvertBench bench;
  const auto model = bench.to_int32(graph_model(
      "(int64[2] i, int64[2] s, float[4,6] x) => (float[2,6] y, float[N,M] r, int64[2] z, int64[4] "
      "c) <int64[2] two = {2, -9223372036854775808}> { y = Gather<axis = 0>(x, i) r = Reshape(x, "
      "s) z = Mul(i, two) c = Cast<to = 7>(q) q = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]>() "
      "}"));
  Types types;
  for (const auto& value : model.proto.graph().input()) types[value.name()] = elem(value);
  for (const auto& value : model.proto.graph().output()) types[value.name()] = elem(value);
  CHECK(types == Types{{"i", kInt32},
                       {"s", kInt64},
                       {"x", kFloat},
                       {"y", kFloat},
                       {"r", kFloat},
                       {"z", kInt32},
                       {"c", kInt32}});
  CHECK(constants(model) == Types{{"two_int32", kInt32}, {"q_folded", kFloat}});
  CHECK(model.initializers.at("two_int32").integers() ==
        std::vector<std::int64_t>{2, std::numeric_limits<std::int32_t>::min()});
}

TEST_CASE("what shares its type with a demanded edge stays, and nothing is cast") {
  const ConvertBench bench;
  // The shape comes through Gather and Concat, whose other inputs are a constant and an input.
  const auto model = bench.to_int32(graph_model(
      "(float[2,3] x, int64[1] n) => (float[N,M] y, float[2,1] t) <int64[1] at = {0}, int64[2] "
      "from = {0, 0}, int64[2] to = {9223372036854775807, 1}> { s = Shape(x) g = Gather(s, at) c = "
      "Concat<axis = 0>(g, n) y = Reshape(x, c) t = Slice(x, from, to) }"));
  CHECK(lines(model) == Lines{"Shape(x) s", "Gather(s,at_int32) g", "Concat(g,n) c",
                              "Reshape(x,c) y", "Slice(x,from,to) t"});
  CHECK(elem(model.proto.graph().input(1)) == kInt64);
  CHECK(constants(model) == Types{{"at_int32", kInt32}, {"from", kInt64}, {"to", kInt64}});
}

TEST_CASE("a constant that is used both ways is there in both") {
  const ConvertBench bench;
  const auto model = bench.to_int32(graph_model(
      "(float[2,3] x, int64[2] i) => (float[N,M] y, int64[2] z) <int64[2] k = {3, 2}> { y = "
      "Reshape(x, k) z = Add(i, k) }"));
  CHECK(lines(model) == Lines{"Reshape(x,k) y", "Add(i,k_int32) z"});
  CHECK(constants(model) == Types{{"k", kInt64}, {"k_int32", kInt32}});
}

TEST_CASE("an integer constant outside 32 bits is refused by name") {
  const ConvertBench bench;
  const auto why = bench.refusal(
      graph_model(
          "(int64[2] i) => (int64[2] z) <int64[2] big = {1, 2147483648}> { z = Add(i, big) }"),
      {.int32 = true});
  CHECK(
      why.starts_with("cannot be converted to 32-bit integers: element 1 of the constant 'big' "
                      "is 2147483648, which int32 cannot hold"));
}

TEST_CASE("values that a loop carries change together or not at all") {
  const ConvertBench bench;
  const auto loop = [&](const std::string& last) {
    return bench.to_int32(graph_model(
        "(int64[1] a, float[2,3] x) => (int64[1] b, float[N,M] y) <int64 m = {2}, bool go = {1}, "
        "int64[2] s = {3, 2}> { b = Loop(m, go, a) <body = body (int64 n, bool c, int64[1] v) => "
        "(bool d, int64[1] w) { d = Identity(c) one = Constant<value_ints = [1]>() w = Add(v, one) "
        "}> " +
        last + " }"));
  };
  const auto free = loop("y = Reshape(x, s)");
  CHECK(elem(free.proto.graph().input(0)) == kInt32);
  const pb::GraphProto& body = lf::find_attribute(free.proto.graph().node(0), "body")->g();
  CHECK(elem(body.input(0)) == kInt64);
  CHECK(elem(body.input(2)) == kInt32);
  CHECK(elem(body.output(1)) == kInt32);
  CHECK(body.initializer(0).name() == "one_folded_int32");
  const auto bound = loop("y = Expand(x, b)");
  CHECK(elem(bound.proto.graph().input(0)) == kInt64);
  CHECK(elem(lf::find_attribute(bound.proto.graph().node(0), "body")->g().output(1)) == kInt64);
}

TEST_CASE("both conversions go one after the other") {
  const ConvertBench bench;
  const auto model = bench.convert(
      graph_model("(int64[2] i, float[4,6] x) => (float[2,6] y) { y = Gather<axis = 0>(x, i) }"),
      {.bf16 = true, .int32 = true});
  CHECK(elem(model.proto.graph().input(0)) == kInt32);
  CHECK(elem(model.proto.graph().input(1)) == kBf16);
  REQUIRE(model.notes.size() >= 2);
  CHECK(model.notes[model.notes.size() - 2].starts_with("[BF16] "));
  CHECK(model.notes.back() ==
        "[INT32] 0 constants and 1 values became 32-bit integers, 0 casts were added");
}

TEST_CASE("constants held apart from the model are converted too, and the layers use them") {
  const ConvertBench bench;
  pb::ModelProto model =
      graph_model("(float[1,300] x) => (float[1,300] y) { h = Relu(x) y = MatMul(h, w) }", 13);
  pb::TensorProto& weight = *model.mutable_graph()->add_initializer();
  weight.set_name("w");
  weight.set_data_type(kFloat);
  weight.add_dims(300);
  weight.add_dims(300);
  weight.mutable_raw_data()->assign(300 * 300 * 4, '\0');
  const auto outline = bench.folder / "outline.onnx";
  const auto answer = bench.try_analyze(
      {.model_path = bench.write(model).string(), .convert = {.bf16 = true}}, outline);
  INFO((answer ? std::string() : answer.error().text()));
  REQUIRE(answer);
  const auto& layer = layer_named(answer->analysis, "MatMul_y");
  REQUIRE(layer.module.data.size() == 1);
  CHECK(layer.module.data[0].bytes == 300 * 300 * 2);
  CHECK(layer.inputs.at(0).type.dtype == domain::DType::BFloat16);
  CHECK(layer.wide_module.has_value());
  // The outline has every operator and none of the large values.
  pb::ModelProto written;
  REQUIRE(written.ParseFromString(*base::read_file(outline)));
  CHECK(lines(written.graph()) == Lines{"Relu(x) h", "MatMul(h,w_bf16) y"});
  CHECK(written.ByteSizeLong() < 2000);

  const auto saved = bench.folder / "deep" / "er" / "saved.onnx";
  REQUIRE(lf::save_converted(
      {.model_path = (bench.folder / "model.onnx").string(), .convert = {.bf16 = true}}, saved));
  REQUIRE(written.ParseFromString(*base::read_file(saved)));
  CHECK(written.graph().initializer(0).raw_data().size() == 300 * 300 * 2);
  pb::checker::check_model(written, /*full_check=*/true);
}

TEST_CASE("the models of the tests convert") {
  const ConvertBench bench;
  for (const char* name :
       {"gen_odd.onnx", "gen_repeat_cnn.onnx", "gen_tiny_transformer.onnx", "macs.onnx",
        "mobilenet_edge_qdq_int8.onnx", "basic_pitch.onnx", "bert_toy.onnx"}) {
    INFO(name);
    for (const domain::Conversion asked :
         {domain::Conversion{.bf16 = true}, domain::Conversion{.int32 = true},
          domain::Conversion{.bf16 = true, .int32 = true}}) {
      auto loaded = lf::load_model(std::filesystem::path(kTestsFolder) / "data" / "models" / name);
      REQUIRE(loaded);
      const auto done = lf::convert_types(*loaded, asked, {});
      INFO((done ? std::string() : done.error().text()));
      CHECK(done);
    }
  }
}
