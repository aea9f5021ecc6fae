#include "coordinator/report/rejudge.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "coordinator/report/edit.h"
#include "coordinator/report/report_state.h"

using namespace layerfarm;
using namespace layerfarm::coordinator::report;

namespace {

base::Bytes bytes_of(const auto& values) {
  base::Bytes out(values.size() * sizeof(values[0]), 0);
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

/// What one executor gave, as raw outputs beside their references.
struct Run {
  std::vector<std::pair<std::vector<float>, std::vector<float>>> floats;  ///< expected, actual
  std::vector<std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>>> integers;

  [[nodiscard]] CaseResult judged(const domain::Tolerance& tolerance) const {
    std::vector<domain::Comparison> outputs;
    const auto add = [&](domain::DType type, const auto& pair) {
      const domain::TensorType shape{type, {static_cast<std::int64_t>(pair.first.size())}};
      outputs.push_back(
          domain::compare(shape, bytes_of(pair.first), shape, bytes_of(pair.second), tolerance));
    };
    for (const auto& pair : floats) add(domain::DType::Float32, pair);
    for (const auto& pair : integers) add(domain::DType::Int32, pair);
    const auto judgement = domain::judge(outputs, outputs.size(), tolerance);
    REQUIRE(judgement);
    return case_result(*judgement, outputs, tolerance);
  }
};

ReportPlan plan_of(const domain::Tolerance& tolerance) {
  ReportPlan plan;
  plan.model_name = "m";
  plan.chip.name = "chip";
  for (const char* name : {"a", "b"})
    plan.chip.executors.push_back({.name = name, .tolerance = tolerance});
  plan.layers.push_back({.id = "Conv_c", .node_name = "n", .node_index = 0, .location = "3:1"});
  plan.settings = json::Object();
  return plan;
}

/// A finished report as discover writes it; `edited` is what a person made of the tolerance before.
std::string discovered(const std::vector<Run>& runs, const domain::Tolerance& chip,
                       const Edit& edited) {
  ReportState state(plan_of(chip));
  domain::Tolerance tolerance = chip;
  if (edited.has_bounds()) {
    json::Value file =
        *json::parse(R"({"ops": {"Conv_c": {"executors": {}}}, "_settings": {}})", "");
    (void)apply_edit(file, {"Conv_c"}, edited);
    (void)state.take_over(file);
    tolerance = state.tolerance(0, 0);
  }
  for (std::size_t i = 0; i < runs.size(); ++i) state.settle(0, i, runs[i].judged(tolerance));
  return state.texts(Phase::Finished).report;
}

json::Value parsed(const std::string& text) {
  const auto value = json::parse(text, "test");
  REQUIRE(value);
  return *value;
}

const json::Value& result_of(const json::Value& report, const std::string& executor) {
  return *report.get("ops")->get("Conv_c")->get("executors")->get(executor);
}

}  // namespace

TEST_CASE("an edited tolerance gives what a discover with it gives, or leaves the result alone") {
  std::size_t whole = 0;
  const auto check = [&] {
    const auto tolerance = rc::gen::element(0.0, 1e-5, 1e-3, 0.01, 0.1, 0.5, 2.0);
    const auto factor = rc::gen::element(1.0F, 1.0F, 1.0005F, 1.01F, 1.05F, 3.0F, std::nanf(""));
    std::vector<Run> runs(2);
    for (Run& run : runs) {
      const int outputs = *rc::gen::inRange(0, 3);
      for (int i = 0; i < outputs; ++i) {
        std::pair<std::vector<float>, std::vector<float>> pair;
        for (int k = 0; k < 4; ++k) {
          pair.first.push_back(static_cast<float>(k + 1));
          pair.second.push_back(static_cast<float>(k + 1) * *factor);
        }
        run.floats.push_back(pair);
      }
      if (outputs == 0 || *rc::gen::inRange(0, 4) == 0)
        run.integers.push_back({{1, 2, 3}, {1, 2, 3 + *rc::gen::inRange(0, 4)}});
    }
    const domain::Tolerance chip{*tolerance, *tolerance, *rc::gen::element(0.0, 0.001)};
    Edit edit;
    if (*rc::gen::arbitrary<bool>()) edit.fp_avg_tol = *tolerance;
    if (!edit.fp_avg_tol || *rc::gen::arbitrary<bool>()) edit.fp_max_tol = *tolerance;
    if (*rc::gen::inRange(0, 4) == 0) edit.fp_abs_tol_frac = *rc::gen::element(0.0, 0.001, 0.1);
    if (*rc::gen::inRange(0, 3) == 0) edit.int_tol = *rc::gen::inRange<std::uint32_t>(0, 4);

    json::Value report = parsed(discovered(runs, chip, {}));
    const json::Value before = report;
    const Rejudged rejudged = apply_edit(report, {"Conv_c"}, edit);
    json::Value wanted = parsed(discovered(runs, chip, edit));
    // Numbers of the old bounds are taken away; those of the new ones a discover brings back.
    for (const char* name : {"a", "b"}) {
      json::Object* result = wanted.object()
                                 ->find("ops")
                                 ->object()
                                 ->find("Conv_c")
                                 ->object()
                                 ->find("executors")
                                 ->object()
                                 ->find(name)
                                 ->object();
      for (const char* key : {"_forgiven", "_required_tolerance"}) {
        if (result_of(report, name).get(key) == nullptr) result->erase(key);
      }
    }
    for (const char* name : {"a", "b"}) {
      const std::string place = std::string("Conv_c on ") + name;
      const bool open =
          std::find(rejudged.open.begin(), rejudged.open.end(), place) != rejudged.open.end();
      RC_ASSERT(result_of(report, name) == result_of(open ? before : wanted, name));
    }
    if (!rejudged.open.empty()) return;
    RC_ASSERT(json::text_of(report) == json::text_of(wanted));
    whole += rejudged.changed.empty() ? 0 : 1;
  };
  // Most edits change no verdict; some do.
  for (int round = 0; round < 30 && whole == 0; ++round) REQUIRE(rc::check(check));
  CHECK(whole > 0);  // verdicts did change
}

TEST_CASE("bounds that are nobody's any more are the chip's again, and verdicts follow") {
  const Run far{{{{1, 2}, {1, 2.1F}}}, {}};
  json::Value report = parsed(discovered({far, far}, {0.01, 0.01}, {}));
  const std::string before = json::text_of(report);
  (void)apply_edit(report, {"Conv_c"}, {.fp_max_tol = 0.1, .int_tol = 0});
  CHECK(result_of(report, "a").get_text("status") == "success");
  CHECK(*result_of(report, "a").get("tolerance_used")->get("int_tol")->integer() == 0);
  // A difference has counts that a report of a success does not hold.
  Rejudged back = apply_edit(report, {"Conv_c"}, {.automatic = {"fp_max_tol", "int_tol"}});
  CHECK(back.open.size() == 2);
  CHECK(report.get("ops")->get("Conv_c")->get("tolerance_used") == nullptr);
  const Run near{{{{1, 2}, {1, 2}}}, {}};
  report = parsed(discovered({near, near}, {0.01, 0.01}, {}));
  const json::Value untouched = report;
  (void)apply_edit(report, {"Conv_c"}, {.fp_max_tol = 0.1, .int_tol = 0});
  back = apply_edit(report, {"Conv_c"}, {.automatic = {"fp_max_tol", "int_tol"}});
  CHECK(back.open.empty());
  CHECK(json::text_of(report) == json::text_of(untouched));
}

TEST_CASE("integers are judged by their own bound at once where the numbers tell") {
  const Run ones{{}, {{{1, 2, 3}, {1, 2, 4}}}};
  const Run far{{}, {{{1, 2, 3}, {1, 2, 6}}}};
  json::Value report = parsed(discovered({ones, far}, {0.01, 0.01}, {}));
  const Rejudged wide = apply_edit(report, {"Conv_c"}, {.int_tol = 3});
  CHECK(wide.changed == std::vector<std::string>{"Conv_c on b: difference -> success"});
  CHECK(wide.open.empty());
  CHECK(result_of(report, "a").get("_off_by_one")->integer() == 1);
  report = parsed(discovered({ones, far}, {0.01, 0.01}, {}));
  const Rejudged strict = apply_edit(report, {"Conv_c"}, {.int_tol = 0});
  CHECK(strict.open == std::vector<std::string>{"Conv_c on a", "Conv_c on b"});
}

TEST_CASE("a recommendation that is nobody's any more is the rule's") {
  const Run far{{{{1, 2}, {1, 2.1F}}}, {}};
  const Run near{{{{1, 2}, {1, 2}}}, {}};
  json::Value report = parsed(discovered({far, near}, {0.01, 0.01}, {}));
  const std::string before = json::text_of(report);
  (void)apply_edit(report, {"Conv_c"}, {.executor = "a"});
  CHECK(report.get("ops")->get("Conv_c")->get("_edited")->flag() == true);
  (void)apply_edit(report, {"Conv_c"}, {.executor = "Auto"});
  CHECK(json::text_of(report) == before);
  // Quantized pooling has none on purpose.
  json::Value pooling = parsed(R"({"_executors": ["a"], "_settings": {"quantize": {}}, "ops": {
    "MaxPool_p": {"executors": {"a": {"status": "success"}}, "recommended_executor": "a", "_edited": true}}})");
  (void)apply_edit(pooling, {"MaxPool_p"}, {.executor = "auto"});
  CHECK(pooling.get("ops")->get("MaxPool_p")->get("recommended_executor")->is_null());
  CHECK(pooling.get("ops")->get("MaxPool_p")->get("_edited") == nullptr);
  // A chip may call an executor so.
  json::Value named = parsed(R"({"_executors": ["a", "auto"], "ops": {
    "Conv_c": {"executors": {"a": {"status": "success"}}, "recommended_executor": "a"}}})");
  (void)apply_edit(named, {"Conv_c"}, {.executor = "auto"});
  CHECK(named.get("ops")->get("Conv_c")->get_text("recommended_executor") == "auto");
  CHECK(named.get("ops")->get("Conv_c")->get("_edited")->flag() == true);
}

TEST_CASE("a difference within the new bound is a success, and what follows from it is renewed") {
  const Run far{{{{1, 2}, {1, 2.1F}}}, {}};
  const Run near{{{{1, 2}, {1, 2}}}, {}};
  json::Value report = parsed(discovered({far, near}, {0.01, 0.01}, {}));
  CHECK(report.get("ops")->get("Conv_c")->get_text("recommended_executor") == "b");
  const Rejudged rejudged = apply_edit(report, {"Conv_c"}, {.fp_max_tol = 0.1});
  CHECK(rejudged.changed == std::vector<std::string>{"Conv_c on a: difference -> success"});
  CHECK(rejudged.recommendations == std::vector<std::string>{"Conv_c: b -> a"});
  CHECK(rejudged.open.empty());
  const json::Value& entry = *report.get("ops")->get("Conv_c");
  CHECK(entry.get_text("recommended_executor") == "a");
  CHECK(entry.get("_edited") == nullptr);
  CHECK(report.get("_assignments")->get("Conv_c")->get_text("executor") == "a");
  CHECK(result_of(report, "a").get("failure_report") == nullptr);
  CHECK(result_of(report, "a").get("_num_diffs")->integer() == 1);
  CHECK(json::python_text(*report.get("discovery_report")->get("summary")->get("status_counts")) ==
        "{'success': 2, 'difference': 0, 'error': 0}");
  CHECK(rejudged_lines(rejudged) ==
        "1 verdict(s) changed by the tolerance: Conv_c on a: difference -> success\n"
        "1 recommendation(s) follow: Conv_c: b -> a\n");
}

TEST_CASE("a recommendation that a person chose stays when its layer is judged again") {
  const Run far{{{{1, 2}, {1, 2.1F}}}, {}};
  json::Value report = parsed(discovered({far, far}, {0.01, 0.01}, {}));
  (void)apply_edit(report, {"Conv_c"}, {.executor = "b"});
  const Rejudged rejudged = apply_edit(report, {"Conv_c"}, {.fp_max_tol = 0.1});
  CHECK(rejudged.changed.size() == 2);
  CHECK(rejudged.recommendations.empty());
  CHECK(report.get("ops")->get("Conv_c")->get_text("recommended_executor") == "b");
}

TEST_CASE("pooling that a quantized model fuses gets no recommendation by an edited tolerance") {
  json::Value report = parsed(R"({"_executors": ["a", "b"], "_settings": {"quantize": {}}, "ops": {
    "MaxPool_p": {"executors": {
      "a": {"status": "difference", "_reason": "1/2 exceed fp_max_tol 0.01", "_required_tolerance": 0.05,
        "tolerance_used": {"fp_avg_tol": 0.01, "fp_max_tol": 0.01}},
      "b": {"status": "success", "_required_tolerance": 0.0, "tolerance_used": {"fp_avg_tol": 0.01, "fp_max_tol": 0.01}}},
      "recommended_executor": null}}})");
  const Rejudged rejudged = apply_edit(report, {"MaxPool_p"}, {.fp_max_tol = 0.1});
  CHECK(rejudged.changed.size() == 1);
  CHECK(rejudged.recommendations.empty());
  CHECK(report.get("ops")->get("MaxPool_p")->get("recommended_executor")->is_null());
}

TEST_CASE("what the report does not tell is left to the next discover, and said") {
  const Run near{{{{1, 2}, {1, 2.002F}}}, {}};
  json::Value report = parsed(discovered({near}, {0.01, 0.01}, {}));
  const json::Value before = result_of(report, "a");
  const Rejudged rejudged = apply_edit(report, {"Conv_c"}, {.fp_max_tol = 1e-5});
  CHECK(rejudged.open == std::vector<std::string>{"Conv_c on a"});
  CHECK(result_of(report, "a") == before);
  CHECK(rejudged_lines(rejudged).find("until the next discover") != std::string::npos);
  // Reports of torq-gen-config hold no numbers of what passed.
  json::Value theirs = parsed(
      R"({"ops": {"Conv_c": {"executors": {"nss": {"status": "success", "tolerance_used": {"fp_avg_tol": 0.01,
      "fp_max_tol": 0.01}}, "css": {"status": "error", "tolerance_used": {"fp_avg_tol": 0.01, "fp_max_tol": 0.01}},
      "host": {"status": "success"}}, "recommended_executor": "nss"}}})");
  const Rejudged other = apply_edit(theirs, {"Conv_c"}, {.fp_max_tol = 0.5});
  CHECK(other.open == std::vector<std::string>{"Conv_c on nss", "Conv_c on host"});
  CHECK(*result_of(theirs, "css").get("tolerance_used")->get("fp_max_tol")->number() == 0.5);
}

TEST_CASE("a verdict of several repeats is left to the next discover") {
  const Run far{{{{1, 2}, {1, 2.1F}}}, {}};
  json::Value report = parsed(discovered({far}, {0.01, 0.01}, {}));
  report.object()->set("_settings", parsed(R"({"inputs": {"seed": 1234, "repeats": 3}})"));
  const json::Value before = result_of(report, "a");
  CHECK(apply_edit(report, {"Conv_c"}, {.fp_max_tol = 0.1}).open.size() == 1);
  CHECK(result_of(report, "a") == before);
}

TEST_CASE("the recommendation follows the rule that the report was made by") {
  json::Value report = parsed(R"({"_chip": "c", "_executors": ["a", "b"], "ops": {
    "Add_x": {"executors": {"a": {"status": "success", "timing": {"runtime_ms": 2}}, "b": {"status": "success",
      "timing": {"runtime_ms": 1}}}, "recommended_executor": "b"},
    "Conv_c": {"executors": {"a": {"status": "success", "timing": {"runtime_ms": 2}, "_required_tolerance": 0.0,
      "tolerance_used": {"fp_avg_tol": 0.01, "fp_max_tol": 0.01}},
      "b": {"status": "difference", "timing": {"runtime_ms": 1}, "_reason": "1/2 exceed fp_max_tol 0.01",
      "_required_tolerance": 0.05, "tolerance_used": {"fp_avg_tol": 0.01, "fp_max_tol": 0.01}}},
      "recommended_executor": "a"}}})");
  const Rejudged rejudged = apply_edit(report, {"Conv_c"}, {.fp_max_tol = 0.1});
  CHECK(rejudged.recommendations == std::vector<std::string>{"Conv_c: a -> b"});
}
