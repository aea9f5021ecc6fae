#include "coordinator/app/layer_facts.h"

#include <doctest/doctest.h>

using namespace layerfarm;
using coordinator::app::layer_facts;

namespace {

domain::ModelAnalysis model() {
  domain::ModelAnalysis out;
  for (const char* op : {"Conv", "Relu", "Add"}) {
    domain::Layer layer;
    layer.op_type = op;
    layer.id = std::string(op) + "_y";
    layer.orig_index = static_cast<std::uint32_t>(out.layers.size());
    layer.node_index = out.operators++;
    out.layers.push_back(layer);
    out.locations.push_back({static_cast<std::uint32_t>(10 + out.layers.size()), 5, op});
  }
  return out;
}

}  // namespace

TEST_CASE("the k-th layer is at the k-th operator") {
  const auto facts = layer_facts(model(), {});
  CHECK(facts.warning.empty());
  CHECK(facts.layers[0].location == "11:5");
  CHECK(facts.layers[2].location == "13:5");
  CHECK(facts.layers[2].node_index == 2);
}

TEST_CASE("a layer stands at its own operator, and one without has no line") {
  auto analysis = model();
  analysis.layers.erase(analysis.layers.begin());
  analysis.layers[1].node_index.reset();
  const auto facts = layer_facts(analysis, {});
  CHECK(facts.warning.empty());
  CHECK(facts.layers[0].location == "12:5");
  CHECK(facts.layers[1].location == "Add");
  CHECK(!facts.layers[1].node_index);
}

TEST_CASE("another operator at the place means no line, for that layer alone") {
  auto analysis = model();
  analysis.locations[1].op_type = "Clip";
  const auto facts = layer_facts(analysis, {});
  CHECK(facts.layers[0].location == "11:5");
  CHECK(facts.layers[1].location == "Relu");
  CHECK(facts.warning.find("1 layers") != std::string::npos);
}

TEST_CASE("another number of operators, or a failed import, means no lines at all") {
  auto analysis = model();
  analysis.locations.pop_back();
  CHECK(layer_facts(analysis, {}).layers[0].location == "Conv");
  CHECK(layer_facts(analysis, {}).warning.find("2 operators") != std::string::npos);
  analysis.locations.clear();
  analysis.location_problem = "import failed: no such operator";
  CHECK(layer_facts(analysis, {}).warning.find("no such operator") != std::string::npos);
}

TEST_CASE("op types to be skipped are compared without regard to case") {
  const auto facts = layer_facts(model(), {"RELU"});
  CHECK(!facts.layers[0].skipped);
  CHECK(facts.layers[1].skipped);
}

TEST_CASE("an entry names the results that are not compared") {
  auto analysis = model();
  analysis.layers[1].output_names = {"y", "mask"};
  analysis.layers[1].open_outputs = {1};
  const auto facts = layer_facts(analysis, {});
  CHECK(facts.layers[0].marks.empty());
  REQUIRE(facts.layers[1].marks.size() == 1);
  CHECK(facts.layers[1].marks[0].first == "_not_compared");
  const auto* names = facts.layers[1].marks[0].second.array();
  REQUIRE(names != nullptr);
  REQUIRE(names->size() == 1);
  CHECK(*names->front().text() == "mask");
}

TEST_CASE("a layer that stays in float, and one that is fused away, say so") {
  auto analysis = model();
  analysis.layers[0].quantized = true;
  analysis.layers[1].quantized = false;
  analysis.layers[1].quantize_note = "left in float";
  analysis.layers[1].node_index.reset();
  analysis.layers[2].node_index = 1;
  analysis.locations.erase(analysis.locations.begin() + 1);
  analysis.operators = 2;
  const auto marks_of = [&](std::size_t place) {
    const auto facts = layer_facts(analysis, {});
    std::string out;
    for (const auto& [key, value] : facts.layers[place].marks)
      out += key + "=" + coordinator::report::json::python_text(value) + " ";
    return out;
  };
  CHECK(marks_of(0).empty());
  CHECK(marks_of(1) == "_quantized=False _quantize_note='left in float' _fused=True ");
  CHECK(marks_of(2).empty());
  CHECK(layer_facts(analysis, {}).layers[1].location == "Relu");
  // As many operators as layers: none is fused, but this one is somewhere else.
  analysis.locations.push_back({20, 5, "Relu"});
  ++analysis.operators;
  CHECK(marks_of(1) == "_quantized=False _quantize_note='left in float' _moved=True ");
  // Without an import nobody knows.
  analysis.location_problem = "no import";
  CHECK(marks_of(1) == "_quantized=False _quantize_note='left in float' ");
}
