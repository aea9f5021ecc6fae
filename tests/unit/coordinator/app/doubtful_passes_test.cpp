#include "coordinator/app/doubtful_passes.h"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "tests/support/coordinator/planning.h"

using namespace layerfarm;
using namespace layerfarm::coordinator;

namespace {

/// A case that passed with these outputs, as its report shows it.
struct Passed {
  plan::CaseSettled settled;
  report::CaseResult result;

  explicit Passed(std::vector<domain::Comparison> outputs,
                  const domain::Tolerance& tolerance = {}) {
    auto outcome = std::make_shared<domain::Outcome>();
    outcome->executed.emplace();
    outcome->executed->outputs = outputs;
    settled.outcome = outcome;
    domain::Judgement judgement;
    judgement.status = domain::Status::Success;
    for (const domain::Comparison& output : outputs) judgement.total += output.total;
    result = report::case_result(judgement, outputs, tolerance);
  }
};

domain::Comparison integers(domain::DType type, std::uint64_t off_by_one) {
  domain::Comparison out;
  out.dtype = type;
  out.total = 10;
  out.max_abs = off_by_one > 0 ? 1 : 0;
  out.num_off_by_one = off_by_one;
  return out;
}

domain::Comparison hiding() {
  domain::Comparison out;
  out.dtype = domain::DType::Float32;
  out.total = 100;
  out.counted_at = {0.01, 0.01, 0.02};
  out.num_small = 40;
  out.num_forgiven = 30;
  out.max_rel_above[0] = 0.5;
  return out;
}

}  // namespace

TEST_CASE("an index that is off by one is doubtful, a quantized value is not") {
  const auto of = [](const std::string& op, domain::DType type, bool quantized = false) {
    domain::Layer layer = test::layer(op + "_y", "k");
    if (quantized) layer.quantized = true;
    const Passed one({integers(type, 3)});
    return app::doubt_of(layer, one.settled, one.result, {}).off_by_one;
  };
  for (const char* op : {"ArgMax", "ArgMin", "TopK", "NonZero", "Shape", "Cast", "Add"})
    CHECK(of(op, domain::DType::Int64) == "3 of 10");
  CHECK(of("ArgMax", domain::DType::Int32) == "3 of 10");
  CHECK(of("Add", domain::DType::Int8).empty());
  CHECK(of("QuantizeLinear", domain::DType::UInt16).empty());
  CHECK(of("MatMulInteger", domain::DType::Int32).empty());
  CHECK(of("QLinearConv", domain::DType::Int32).empty());
  CHECK(of("Add", domain::DType::Int32, /*quantized=*/true).empty());
  const Passed exact({integers(domain::DType::Int64, 0)});
  CHECK(app::doubt_of(test::layer("ArgMax_y", "k"), exact.settled, exact.result, {})
            .off_by_one.empty());
}

TEST_CASE("small elements that only the greatest one excuses are doubtful, where they are many") {
  const domain::Layer layer = test::layer("Add_s", "k");
  const domain::Tolerance tolerance{0.01, 0.01, 0.02};
  const Passed hides({hiding()}, tolerance);
  CHECK(app::doubt_of(layer, hides.settled, hides.result, {}).forgiven == "30 of 100");
  domain::Comparison few = hiding();
  few.num_forgiven = 3;
  const Passed noise({few}, tolerance);
  CHECK(app::doubt_of(layer, noise.settled, noise.result, {}).forgiven.empty());
  // A difference says enough.
  Passed wrong({hiding()}, tolerance);
  wrong.result.status = domain::Status::Difference;
  CHECK(app::doubt_of(layer, wrong.settled, wrong.result, {}).forgiven.empty());
}

TEST_CASE("a person who has set the bound is not asked again") {
  const domain::Layer layer = test::layer("ArgMax_y", "k");
  const Passed both({hiding(), integers(domain::DType::Int64, 3)}, {0.01, 0.01, 0.02});
  domain::ToleranceEdit edit;
  edit.fp_abs_tol_frac = 0.02;
  edit.int_tol = 1;
  const app::Doubt doubt = app::doubt_of(layer, both.settled, both.result, edit);
  CHECK(doubt.forgiven.empty());
  CHECK(doubt.off_by_one.empty());
}

TEST_CASE("each kind is one line with all its layers, and a later result replaces an earlier one") {
  app::DoubtfulPasses passes;
  passes.note(1, 0, "Add_s on htp", {"30 of 100", ""});
  passes.note(2, 0, "ArgMax_y on htp", {"", "3 of 10"});
  passes.note(0, 1, "Sub_d on host", {"9 of 10", ""});
  const std::vector<std::string> lines = passes.lines("net.onnx: ");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("[Tolerance] net.onnx: 2 result(s) are a success only because "));
  CHECK(lines[0].ends_with(": Sub_d on host (9 of 10), Add_s on htp (30 of 100)"));
  CHECK(lines[0].find("--tolerance-abs-frac 0") != std::string::npos);
  CHECK(lines[1].starts_with("[Tolerance] net.onnx: 1 result(s) are a success with integers off"));
  CHECK(lines[1].ends_with(": ArgMax_y on htp (3 of 10)"));
  CHECK(lines[1].find("--tolerance-int 0") != std::string::npos);
  passes.note(1, 0, "Add_s on htp", {});
  passes.note(0, 1, "Sub_d on host", {});
  CHECK(passes.lines("").size() == 1);
}
