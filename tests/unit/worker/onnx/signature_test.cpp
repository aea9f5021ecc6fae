// What a signature holds and what it does not (design.md, section 1), as properties over random
// changes.
#include <rapidcheck.h>

#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "shared/domain/keys.h"
#include "tests/unit/worker/onnx/bench.h"

using namespace layerfarm;
using namespace layerfarm::test;

namespace {

/// Models with bodies, functions, constants of several kinds, optional inputs and several results.
std::vector<pb::ModelProto> sample_models() {
  std::vector<pb::ModelProto> out = {read_model("gen_odd.onnx"), read_model("macs.onnx")};
  out.push_back(graph_model(R"((float[2,3] x, int64 n, bool c) => (float[2,3] y, float[k,2,3] trace)
    <float[3] scale = {1.5, 2.5, 3.5}, int64[2] shape = {3, 2}, float[1] low = {-1.0}> {
    a = Mul(x, scale)
    b = Clip(a, low)
    r = Reshape(b, shape)
    t = Transpose<perm = [1, 0]>(r)
    y, trace = Loop(n, c, t) <body = body (int64 i, bool go, float[2,3] state) => (bool more, float[2,3] next, float[2,3] seen) {
      more = Identity(go)
      next = Add(state, x)
      seen = Mul(next, scale)
    }>
  })"));
  out.push_back(parse_model(R"(
    <ir_version: 8, opset_import: ["" : 17, "own" : 1]>
    agraph (float[2,3] x) => (float[2,3] y) <float[3] w = {1.0, 2.0, 3.0}> { h = own.twice<alpha = 0.5>(x, w)  y = Softmax<axis = 1>(h) }
    <domain: "own", opset_import: ["" : 17, "own" : 1]>
    twice <alpha> (a, b) => (z) { p = own.inner(a)  q = LeakyRelu<alpha: float = @alpha>(p)  z = Add(q, b) }
    <domain: "own", opset_import: ["" : 17]>
    inner (a) => (z) { z = Add(a, a) }
  )"));
  return out;
}

/// Gives every name of a value or node another one, the same for the same name, never one name for
/// two.
class Renaming {
 public:
  explicit Renaming(std::function<std::string()> fresh) : fresh_(std::move(fresh)) {}

  void apply(pb::ModelProto& model) {
    graph(*model.mutable_graph());
    for (pb::FunctionProto& function : *model.mutable_functions()) {
      for (std::string& name : *function.mutable_input()) rename(name);
      for (std::string& name : *function.mutable_output()) rename(name);
      for (pb::NodeProto& inner : *function.mutable_node()) node(inner);
      function.set_doc_string("changed");
    }
    model.set_producer_name("somebody else");
    model.set_doc_string("changed");
    auto& property = *model.add_metadata_props();
    property.set_key("key");
    property.set_value("value");
  }

 private:
  void rename(std::string& name) {
    if (name.empty()) return;
    const auto [entry, fresh] = names_.emplace(name, "");
    if (fresh) entry->second = fresh_() + std::to_string(names_.size());
    name = entry->second;
  }
  void node(pb::NodeProto& node) {
    rename(*node.mutable_name());
    node.set_doc_string("changed");
    for (std::string& name : *node.mutable_input()) rename(name);
    for (std::string& name : *node.mutable_output()) rename(name);
    std::reverse(node.mutable_attribute()->pointer_begin(),
                 node.mutable_attribute()->pointer_end());  // their order means nothing
    for (pb::AttributeProto& attribute : *node.mutable_attribute()) {
      attribute.set_doc_string("changed");
      if (attribute.has_g()) graph(*attribute.mutable_g());
      if (attribute.has_t()) attribute.mutable_t()->set_name(fresh_());
    }
  }
  void graph(pb::GraphProto& graph) {
    graph.set_name(fresh_());
    graph.set_doc_string("changed");
    for (auto* list : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()}) {
      for (pb::ValueInfoProto& info : *list) {
        rename(*info.mutable_name());
        if (!info.type().has_tensor_type() || !info.type().tensor_type().has_shape()) continue;
        for (auto& dim :
             *info.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
          if (dim.has_dim_param()) dim.set_dim_param(dim.dim_param() + "'");
        }
      }
    }
    for (pb::TensorProto& tensor : *graph.mutable_initializer()) rename(*tensor.mutable_name());
    for (pb::NodeProto& inner : *graph.mutable_node()) node(inner);
  }

  std::function<std::string()> fresh_;
  std::map<std::string, std::string> names_;
};

const domain::Layer& only_layer(const domain::ModelAnalysis& analysis) {
  REQUIRE(analysis.layers.size() == 1);
  return analysis.layers[0];
}

domain::Layer layer_of(const OnnxBench& bench, const pb::ModelProto& model) {
  return only_layer(bench.analyze(model));
}

/// One-layer models with something of every kind to change.
std::vector<pb::ModelProto> one_layer_models() {
  return {
      graph_model("(float[1,3,8,8] x) => (float[1,4,8,8] y) <float[4,3,3,3] w = {" +
                  [] {
                    std::string values;
                    for (int i = 0; i < 108; ++i)
                      values += (i == 0 ? "" : ",") + std::to_string(i) + ".5";
                    return values;
                  }() +
                  "}> { y = Conv<kernel_shape = [3,3], pads = [1,1,1,1], auto_pad = \"NOTSET\", "
                  "group = 1>(x, w) }"),
      graph_model("(float[2,3] x) => (float[2,3] y) <float[3] scale = {1.0,2.0,3.0}, float[3] bias "
                  "= {0.5,0.25,0.125}> { y = LayerNormalization<epsilon = 0.001, axis = -1>(x, "
                  "scale, bias) }"),
      graph_model(
          "(float[4,3] x) => (float[2,3] y) <int64[2] i = {1, 3}> { y = Gather<axis = 0>(x, i) }"),
      graph_model(R"((bool c, float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> {
        y = If(c) <then_branch = a () => (float[2] t) { t = Add(x, w) }, else_branch = b () => (float[2] e) { e = LeakyRelu<alpha = 0.25>(x) }>
      })"),
  };
}

/// Changes one thing that a result may depend on; says what, or nothing where this model has no
/// such thing.
std::string change(pb::ModelProto& model, int kind) {
  pb::GraphProto& graph = *model.mutable_graph();
  pb::NodeProto& node = *graph.mutable_node(0);
  const int which = node.attribute_size() > 0 ? *rc::gen::inRange(0, node.attribute_size()) : -1;
  switch (kind) {
    case 0: {  // an attribute's value
      if (which < 0) return {};
      pb::AttributeProto& attribute = *node.mutable_attribute(which);
      if (attribute.has_i()) attribute.set_i(attribute.i() + 1);
      if (attribute.has_f()) attribute.set_f(attribute.f() * 2);
      if (attribute.has_s()) attribute.set_s(attribute.s() + "x");
      if (attribute.ints_size() > 0)
        attribute.set_ints(attribute.ints_size() - 1, attribute.ints(0) + 1);
      if (attribute.has_g()) attribute.mutable_g()->mutable_node(0)->set_op_type("Sub");
      return "attribute " + attribute.name();
    }
    case 1: {  // a weight, in one bit
      if (graph.initializer_size() == 0) return {};
      pb::TensorProto& tensor =
          *graph.mutable_initializer(*rc::gen::inRange(0, graph.initializer_size()));
      auto value = lf::read_constant(tensor);
      REQUIRE(value);
      base::Bytes bytes(value->bytes);
      bytes[static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(bytes.size())))] ^=
          static_cast<char>(1 << *rc::gen::inRange(0, 8));
      tensor.clear_float_data();
      tensor.clear_int64_data();
      tensor.set_raw_data(bytes);
      return "weight " + tensor.name();
    }
    case 2: {  // a dim of an input
      auto& shape = *graph.mutable_input(graph.input_size() - 1)
                         ->mutable_type()
                         ->mutable_tensor_type()
                         ->mutable_shape();
      shape.mutable_dim(0)->set_dim_value(shape.dim(0).dim_value() + 1);
      graph.mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
      return "shape of an input";
    }
    case 3: {  // the element type of an input
      graph.mutable_input(graph.input_size() - 1)
          ->mutable_type()
          ->mutable_tensor_type()
          ->set_elem_type(pb::TensorProto::DOUBLE);
      return "type of an input";
    }
    case 4:
      model.mutable_opset_import(0)->set_version(model.opset_import(0).version() + 1);
      return "opset";
    case 5:
      node.set_op_type(node.op_type() + "X");
      return "operator";
    case 6:
      node.set_domain("com.microsoft");
      return "domain";
    case 7: {
      pb::AttributeProto& attribute = *node.add_attribute();
      attribute.set_name("extra");
      attribute.set_type(pb::AttributeProto::INT);
      attribute.set_i(1);
      return "one more attribute";
    }
    default: {
      if (node.input_size() < 2) return {};
      node.mutable_input()->SwapElements(0, 1);
      return "order of inputs";
    }
  }
}

}  // namespace

TEST_CASE("renaming tensors, nodes, dims and graphs keeps signatures and modules") {
  const std::vector<pb::ModelProto> models = sample_models();
  OnnxBench bench;
  CHECK(rc::check([&] {
    pb::ModelProto model = models[*rc::gen::inRange<std::size_t>(0, models.size())];
    const auto before = bench.analyze(model);
    Renaming([] { return *rc::gen::nonEmpty(rc::gen::string<std::string>()); }).apply(model);
    const auto after = bench.analyze(model);
    RC_ASSERT(before.layers.size() == after.layers.size());
    for (std::size_t i = 0; i < before.layers.size(); ++i) {
      RC_LOG() << before.layers[i].id << "\n";
      RC_ASSERT(before.layers[i].signature == after.layers[i].signature);
      RC_ASSERT(before.layers[i].loose_signature == after.layers[i].loose_signature);
      RC_ASSERT(before.layers[i].module == after.layers[i].module);
      RC_ASSERT(before.layers[i].inputs == after.layers[i].inputs);
    }
  }));
}

TEST_CASE("changing any attribute, dtype, shape, weight, operator or opset changes the signature") {
  const std::vector<pb::ModelProto> models = one_layer_models();
  OnnxBench bench;
  std::set<std::string> changed;
  CHECK(rc::check([&] {
    pb::ModelProto model = models[*rc::gen::inRange<std::size_t>(0, models.size())];
    const domain::Layer before = layer_of(bench, model);
    const int kind = *rc::gen::inRange(0, 9);
    const std::string what = change(model, kind);
    RC_PRE(!what.empty());
    const domain::Layer after = layer_of(bench, model);
    RC_LOG() << what << '\n';
    RC_ASSERT(before.signature != after.signature);
    const bool only_floats = kind == 1 && what != "weight i";
    RC_ASSERT((before.loose_signature == after.loose_signature) == only_floats);
    changed.insert(what);
  }));
  CHECK(changed.size() >= 12);  // the generator reached most kinds
}

TEST_CASE(
    "a renaming that changes the drawing order keeps the signature and changes the prepare key") {
  OnnxBench bench;
  const domain::Layer ab =
      layer_of(bench, graph_model("(float[2] a, float[2] b) => (float[2] y) { y = Sub(a, b) }"));
  const domain::Layer zb =
      layer_of(bench, graph_model("(float[2] z, float[2] b) => (float[2] y) { y = Sub(z, b) }"));
  const domain::Layer cd =
      layer_of(bench, graph_model("(float[2] d, float[2] c) => (float[2] y) { y = Sub(c, d) }"));
  CHECK(ab.signature == zb.signature);
  CHECK(ab.draw_order == std::vector<std::uint32_t>{0, 1});
  CHECK(zb.draw_order == std::vector<std::uint32_t>{1, 0});
  const domain::InputSet inputs;
  const domain::ToolIdentity engine{.version = "1", .files = {}, .cpu = {}};
  CHECK(domain::prepare_key(ab, inputs, engine) != domain::prepare_key(zb, inputs, engine));
  CHECK(domain::prepare_key(ab, inputs, engine) == domain::prepare_key(cd, inputs, engine));
}

TEST_CASE("an input that is used twice is one input") {
  OnnxBench bench;
  const domain::Layer twice =
      layer_of(bench, graph_model("(float[2] a) => (float[2] y) { y = Mul(a, a) }"));
  const domain::Layer two =
      layer_of(bench, graph_model("(float[2] a, float[2] b) => (float[2] y) { y = Mul(a, b) }"));
  CHECK(twice.inputs.size() == 1);
  CHECK(twice.signature != two.signature);
}

TEST_CASE(
    "optional inputs left out at the end are the same as none there, in the middle they keep their "
    "place") {
  OnnxBench bench;
  const std::string weights = " <float[1] m = {2.0}> ";
  const auto with = [&](const std::string& inputs) {
    return layer_of(bench, graph_model("(float[2] x) => (float[2] y)" + weights + "{ y = Clip(" +
                                       inputs + ") }"))
        .signature;
  };
  CHECK(with("x, m") == with("x, m, \"\""));
  CHECK(with("x, m") != with("x, \"\", m"));
}

TEST_CASE("a module names nothing but places and carries neither documents nor the producer") {
  OnnxBench bench;
  for (pb::ModelProto model : sample_models()) {
    Renaming([] { return std::string("tell-tale-"); }).apply(model);
    for (const domain::Layer& layer : bench.analyze(model).layers) {
      const auto module = bench.module(layer.module);
      const std::string bytes = module.SerializeAsString();
      CHECK(bytes.find("tell-tale-") == std::string::npos);
      CHECK(bytes.find("changed") == std::string::npos);
      CHECK(bytes.find("somebody") == std::string::npos);
      CHECK(module.ir_version() >= 4);
      CHECK(module.graph().value_info_size() == 0);
    }
  }
}

TEST_CASE("functions and the operator sets they need travel with the layer, others do not") {
  OnnxBench bench;
  const auto analysis = bench.analyze(sample_models().back());
  const auto call = bench.module(layer_named(analysis, "twice_h").module);
  CHECK(call.functions_size() == 2);
  CHECK(call.opset_import_size() == 2);
  const auto softmax = bench.module(layer_named(analysis, "Softmax_y").module);
  CHECK(softmax.functions_size() == 0);
  CHECK(softmax.opset_import_size() == 1);
}

TEST_CASE("the loose signature leaves out integers that stand for floats, and keeps all others") {
  OnnxBench bench;
  const auto loose = [&](const std::string& text) {
    return bench.analyze(
        parse_model("<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> " + text));
  };
  const auto same = [&](const std::string& before, const std::string& after) {
    const auto a = loose(before);
    const auto b = loose(after);
    REQUIRE(a.layers.size() == 1);
    REQUIRE(b.layers.size() == 1);
    CHECK(a.layers[0].signature != b.layers[0].signature);
    return a.layers[0].loose_signature == b.layers[0].loose_signature;
  };
  const auto dequantized = [](const std::string& weights, const std::string& zero) {
    return "g () => (float[2] y) <int8[2] w = {" + weights + "}, float s = {0.5}, int8 z = {" +
           zero + "}> { y = DequantizeLinear(w, s, z) }";
  };
  CHECK(same(dequantized("1, 2", "0"), dequantized("3, 4", "0")));
  CHECK(same(dequantized("1, 2", "0"), dequantized("1, 2", "7")));
  const auto convolved = [](const std::string& weights, const std::string& bias) {
    return "g (uint8[1,1,2,2] x) => (uint8[1,1,2,2] y) <int8[1,1,1,1] w = {" + weights +
           "}, int32[1] b = {" + bias +
           "}, float s = {0.5}, uint8 zx = {3}, int8 zw = {0}> { y = QLinearConv(x, s, zx, w, s, "
           "zw, s, zx, b) }";
  };
  CHECK(same(convolved("5", "100"), convolved("6", "-100")));
  // Table of an operator that only moves integers, places, axes.
  const auto gathered = [](const std::string& table, const std::string& place) {
    return "g () => (int8[1] y) <int8[2] t = {" + table + "}, int64[1] i = {" + place +
           "}> { y = Gather(t, i) }";
  };
  CHECK_FALSE(same(gathered("1, 2", "0"), gathered("1, 3", "0")));
  CHECK_FALSE(same(gathered("1, 2", "0"), gathered("1, 2", "1")));
  const auto chosen = [](const std::string& mask) {
    return "g (uint8[2] a, uint8[2] b) => (uint8[2] y) <bool[2] m = {" + mask +
           "}, float s = {0.5}, uint8 z = {3}> { y = com.microsoft.QLinearWhere(m, a, s, z, b, s, "
           "z, s, z) }";
  };
  CHECK_FALSE(same(chosen("1, 0"), chosen("0, 1")));
}
