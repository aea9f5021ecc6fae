#include "shared/domain/whole_request.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>

using namespace layerfarm;
using namespace layerfarm::domain;
using base::digest_of;

namespace {

struct Whole {
  WholeRequest request;
  ModelAnalysis model;
  InputSet inputs;
  ChipSpec chip;
  ToolIdentity tool{"3.13.0", digest_of("tool"), "avx2"};
  ToolIdentity reference{"1.32.0", digest_of("reference"), "avx2"};

  Whole() {
    for (const char* name : {"s1", "s2", "whole", "probed"}) {
      Layer& layer = model.layers.emplace_back();
      layer.signature = digest_of(name);
      layer.input_names = {"x"};
      layer.output_names = {"y"};
    }
    model.segments = {{"e0", 1, {}}, {"e1", 1, {}}};
    for (const char* name : {"e0", "e1"}) chip.executors.emplace_back().name = name;
  }
  [[nodiscard]] base::Digest key() const {
    return whole_key(request, model, inputs, chip, tool, reference);
  }
};

}  // namespace

TEST_CASE(
    "the reference is the model, or with boundaries the model with what leaves its segments") {
  Whole whole;
  CHECK(reference_layer(whole.model, false) == &whole.model.layers[2]);
  CHECK(reference_layer(whole.model, true) == &whole.model.layers[3]);
  whole.model.segments.pop_back();
  whole.model.layers.resize(2);
  CHECK(reference_layer(whole.model, true) == &whole.model.layers[1]);
  whole.model.segments.clear();
  CHECK(reference_layer(whole.model, false) == nullptr);
}

TEST_CASE("whatever changes a whole run changes its key, each in its own way") {
  const std::vector<std::function<void(Whole&)>> changes = {
      [](Whole& w) { w.request.check_boundaries = true; },
      [](Whole& w) { w.request.executors = {"e0"}; },
      [](Whole& w) { w.request.executors = {"e1"}; },
      [](Whole& w) { w.model.layers[0].signature = digest_of("other"); },
      [](Whole& w) { w.model.layers[2].signature = digest_of("other"); },
      [](Whole& w) { w.model.layers[1].input_names = {"z"}; },
      [](Whole& w) { w.model.segments[0].executor = "e1"; },
      [](Whole& w) { w.inputs.seed = 7; },
      [](Whole& w) { w.chip.options["a"] = "b"; },
      [](Whole& w) { w.chip.hw_type = "board"; },
      [](Whole& w) { w.chip.executors[0].options["a"] = "b"; },
      [](Whole& w) { w.tool.version = "4"; },
      [](Whole& w) { w.reference.version = "2"; }};
  std::set<std::string> seen = {Whole().key().hex()};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Whole whole;
    changes[i](whole);
    CAPTURE(i);
    CHECK(seen.insert(whole.key().hex()).second);
  }
}

TEST_CASE("where the analysis lies and how its segments are called for people is in no key") {
  Whole whole;
  whole.request.analysis = digest_of("blob");
  whole.model.layers[0].id = "segment 1";
  CHECK(whole.key() == Whole().key());
}
