#include "worker/toolchain/operator_map.h"

#include <doctest/doctest.h>

#include <random>

using namespace layerfarm;
using worker::toolchain::align;
using worker::toolchain::compute_operators;
using worker::toolchain::float_op_type;
using worker::toolchain::place_layers;

namespace {

using Types = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

Pairs pairs(const Types& layers, const Types& operators) {
  Pairs out;
  const auto places = align(layers, operators);
  REQUIRE(places.size() == layers.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i]) out.emplace_back(i, *places[i]);
  }
  return out;
}

/// By its definition, for short lists.
std::size_t longest(const Types& a, std::size_t i, const Types& b, std::size_t j) {
  if (i == a.size() || j == b.size()) return 0;
  if (a[i] == b[j]) return 1 + longest(a, i + 1, b, j + 1);
  return std::max(longest(a, i + 1, b, j), longest(a, i, b, j + 1));
}

domain::Layer layer(const std::string& op_type) {
  domain::Layer out;
  out.id = op_type + "_x";
  out.op_type = op_type;
  out.node_index = 99;
  return out;
}

}  // namespace

TEST_CASE("a layer that was fused away has no place, the others have theirs (spec section 25, 8)") {
  CHECK(pairs({"Conv", "Relu", "Conv", "Add"}, {"Conv", "Conv", "Add"}) ==
        Pairs{{0, 0}, {2, 1}, {3, 2}});
}

TEST_CASE("a tie pairs what comes last, and leaves out the layer first") {
  CHECK(pairs({"Relu", "Relu"}, {"Relu"}) == Pairs{{1, 0}});
  CHECK(pairs({"Relu"}, {"Relu", "Relu"}) == Pairs{{0, 1}});
  // Either of the two could be paired; the walk leaves out the layer `Add`, not the operator.
  CHECK(pairs({"Mul", "Add"}, {"Add", "Mul"}) == Pairs{{0, 1}});
}

TEST_CASE("lists of nothing in common, and empty ones, pair nothing") {
  CHECK(pairs({"Conv"}, {"Relu"}).empty());
  CHECK(pairs({}, {"Relu"}).empty());
  CHECK(pairs({"Conv"}, {}).empty());
}

TEST_CASE("pairs are of one type, grow on both sides, and are as many as there can be") {
  std::mt19937 random(4);
  const Types letters = {"Conv", "Relu", "Add"};
  for (int round = 0; round < 300; ++round) {
    Types a(random() % 9);
    Types b(random() % 9);
    for (std::string& text : a) text = letters[random() % 3];
    for (std::string& text : b) text = letters[random() % 3];
    const Pairs found = pairs(a, b);
    CHECK(found.size() == longest(a, 0, b, 0));
    for (std::size_t k = 0; k < found.size(); ++k) {
      CHECK(a[found[k].first] == b[found[k].second]);
      if (k > 0) CHECK(found[k - 1].second < found[k].second);
    }
  }
}

TEST_CASE("quantized operators stand for float ones, also those of other domains") {
  for (const char* name : {"Conv", "Add", "Mul", "MatMul", "AveragePool", "GlobalAveragePool",
                           "Sigmoid", "Softmax", "LeakyRelu", "Concat", "Where"}) {
    CHECK(float_op_type("QLinear" + std::string(name)) == name);
    CHECK(float_op_type(name) == name);
  }
  CHECK(float_op_type("ConvInteger") == "Conv");
  CHECK(float_op_type("MatMulInteger") == "MatMul");
  CHECK(float_op_type("QGemm") == "Gemm");
  CHECK(float_op_type("QLinear") == "QLinear");
}

TEST_CASE("conversions do not count as operators") {
  const auto found = compute_operators({{5, 3, "QuantizeLinear"},
                                        {6, 3, "QLinearConv"},
                                        {7, 3, "DequantizeLinear"},
                                        {8, 3, "Relu"}});
  CHECK(found == std::vector<domain::SourceLocation>{{6, 3, "Conv"}, {8, 3, "Relu"}});
}

TEST_CASE("layers get their places in the quantized module, and no two the same") {
  domain::ModelAnalysis analysis;
  for (const char* op : {"Conv", "Relu", "Conv", "Relu", "Gemm"})
    analysis.layers.push_back(layer(op));
  analysis.operators = 5;
  CHECK(place_layers({{4, 1, "QuantizeLinear"},
                      {5, 1, "QLinearConv"},
                      {6, 1, "QLinearConv"},
                      {7, 1, "QGemm"},
                      {8, 1, "DequantizeLinear"}},
                     {}, analysis) == 3);
  CHECK(analysis.operators == 3);
  REQUIRE(analysis.locations.size() == 3);
  CHECK(analysis.locations[1] == domain::SourceLocation{6, 1, "Conv"});
  CHECK(analysis.layers[0].node_index == 0);
  CHECK_FALSE(analysis.layers[1].node_index);
  CHECK(analysis.layers[2].node_index == 1);
  CHECK_FALSE(analysis.layers[3].node_index);
  CHECK(analysis.layers[4].node_index == 2);
}

TEST_CASE("models of thousands of layers are aligned in little time and memory") {
  Types layers;
  for (int i = 0; i < 4000; ++i) layers.emplace_back(i % 2 == 0 ? "Conv" : "Relu");
  const Types operators(2000, "Conv");
  CHECK(pairs(layers, operators).size() == 2000);
}

TEST_CASE("names tell which operator is a layer's, in whatever order they come") {
  domain::ModelAnalysis analysis;
  const auto add = [&](const std::string& op, const std::string& node, const std::string& result) {
    domain::Layer one = layer(op);
    one.node_name = node;
    one.output_names = {result};
    analysis.layers.push_back(one);
  };
  const auto places = [&] {
    std::vector<int> out;
    for (const domain::Layer& one : analysis.layers)
      out.push_back(one.node_index ? static_cast<int>(*one.node_index) : -1);
    return out;
  };
  // A block whose shortcut comes last in the float model, and second after the quantizer's sorting.
  add("Conv", "a", "a_out");
  add("Relu", "r", "r_out");
  add("Conv", "b", "b_out");
  add("Conv", "", "short");
  add("Add", "", "sum");
  const std::vector<domain::SourceLocation> module = {
      {1, 1, "Conv"}, {2, 1, "Conv"}, {3, 1, "Conv"}, {4, 1, "Add"}};
  CHECK(place_layers(
            module,
            {{"a", "r_out"}, {"", "short"}, {"b", "b_out"}, {"", "sum_QuantizeLinear_Input"}},
            analysis) == 4);
  CHECK(places() == std::vector<int>{0, -1, 2, 1, 3});
  // In operator form names have other endings; where one is lost, order decides among what is left.
  CHECK(place_layers(module,
                     {{"a_quant", "r_out_quantized"},
                      {"", "short_quantized"},
                      {"b_quant", "b_out_quantized"},
                      {"", "?"}},
                     analysis) == 4);
  CHECK(places() == std::vector<int>{0, -1, 2, 1, 3});
  // A name of another op type's layer, one that two have, or a list of another length, say nothing.
  CHECK(place_layers(module, {{"r", ""}, {"a", ""}, {"a", ""}, {"", ""}}, analysis) == 4);
  CHECK(places() == std::vector<int>{0, -1, 1, 2, 3});
  CHECK(place_layers(module, {{"b", ""}, {"a", ""}}, analysis) == 4);
  CHECK(places() == std::vector<int>{0, -1, 1, 2, 3});
}
