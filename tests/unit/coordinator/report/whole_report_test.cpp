#include "coordinator/report/whole_report.h"

#include <doctest/doctest.h>

#include <cstring>

#include "coordinator/report/edit.h"
#include "shared/domain/comparison.h"

using namespace layerfarm;
using namespace layerfarm::coordinator::report;

namespace {

domain::Comparison compared(std::vector<float> expected, std::vector<float> actual) {
  const auto raw = [](const std::vector<float>& values) {
    std::string out(values.size() * 4, '\0');
    std::memcpy(out.data(), values.data(), out.size());
    return out;
  };
  const domain::TensorType type{domain::DType::Float32,
                                {static_cast<std::int64_t>(expected.size())}};
  return domain::compare(type, raw(expected), type, raw(actual), {});
}

/// Three segments; the second gives a wrong value, and the model too.
domain::Outcome an_outcome() {
  domain::Outcome out;
  out.stage = domain::Stage::Whole;
  out.ending = domain::Ending::Done;
  out.whole.emplace();
  out.whole->outputs = {compared({1, 2, 4, 8}, {1, 2, 4, 9})};
  out.whole->expected_outputs = 1;
  out.whole->bytes_crossed = 48;
  out.whole->segments = {{.executor = "nss",
                          .operators = 2,
                          .results = {"a"},
                          .boundary = {compared({1}, {1})},
                          .run_us = 1,
                          .note = ""},
                         {.executor = "host",
                          .operators = 1,
                          .results = {"b"},
                          .boundary = {compared({1}, {2})},
                          .run_us = 1,
                          .note = ""},
                         {.executor = "nss",
                          .operators = 1,
                          .results = {"y"},
                          .boundary = {compared({1, 2, 4, 8}, {1, 2, 4, 9})},
                          .run_us = 1,
                          .note = ""}};
  return out;
}

const char* const kReport = R"({
  "version": "1.1",
  "ops": {
    "Conv_c": {
      "executors": {"nss": {"status": "success"}},
      "mlir_location": "5:10",
      "recommended_executor": "nss"
    }
  },
  "model_name": "m",
  "mine": 1,
  "discovery_report": {},
  "has_critical_failures": true,
  "final_report_text": "old"
})";

}  // namespace

TEST_CASE("switches, crossings, boundaries and the first segment that goes wrong are said") {
  const auto result = judge_whole(an_outcome(), {});
  REQUIRE(result);
  CHECK(result->status == domain::Status::Difference);
  CHECK(switches(result->run) == 2);
  CHECK(first_wrong(*result) == 1);
  CHECK(whole_lines("m", *result) ==
        "Full model comparison failed: 1/4 exceed fp_max_tol 0.01\n"
        "Full model m: 3 segment(s), 2 switch(es), 48 byte(s) crossed\n"
        "  Segment 1 (nss, 2 operator(s)) gives a: success\n"
        "  Segment 2 (host, 1 operator(s)) gives b: difference (1/1 exceed fp_max_tol 0.01)\n"
        "  Segment 3 (nss, 1 operator(s)) gives y: difference (1/4 exceed fp_max_tol 0.01)\n"
        "The first segment that goes wrong is 2 (host)");
  CHECK(failed_run_line(*result) ==
        "Run finished with a failing whole model: 1/4 exceed fp_max_tol 0.01");
}

TEST_CASE("right outputs after a wrong boundary are no pass") {
  domain::Outcome outcome = an_outcome();
  outcome.whole->outputs = {compared({1, 2}, {1, 2})};
  const auto result = judge_whole(outcome, {});
  REQUIRE(result);
  CHECK_FALSE(passed(*result));
  CHECK(whole_lines("m", *result)
            .find("Full model m: passed at the outputs, but segment 2 (host) goes wrong\n") == 0);
  const json::Value whole = whole_json(*result);
  CHECK(whole.get_text("status") == "success");
  CHECK(whole.get("first_wrong_segment")->integer() == 1);
  CHECK(failed_run_line(*result) ==
        "Run finished with a failing whole model: passed at the outputs, but segment 2 (host) goes "
        "wrong");
  outcome.whole->segments[1].boundary = {compared({1}, {1})};
  outcome.whole->segments[2].boundary = {compared({1}, {1})};
  CHECK(passed(*judge_whole(outcome, {})));
}

TEST_CASE("a run within the tolerance passes") {
  domain::Outcome outcome = an_outcome();
  outcome.whole->outputs = {compared({1}, {1})};
  outcome.whole->segments.resize(1);
  outcome.whole->segments[0].boundary.clear();
  const auto result = judge_whole(outcome, {});
  REQUIRE(result);
  CHECK(result->status == domain::Status::Success);
  CHECK(result->boundaries.empty());
  CHECK(whole_lines("m", *result) ==
        "Full model m: comparison passed\n"
        "Full model m: 1 segment(s), 0 switch(es), 48 byte(s) crossed");
  CHECK(failed_run_line(*result).empty());
  CHECK(last_run_text(whole_json(*result)) == "passed");
}

TEST_CASE("a run that came to nothing says the step and why, and has no numbers") {
  domain::Outcome outcome;
  outcome.stage = domain::Stage::Whole;
  outcome.ending = domain::Ending::Refused;
  outcome.diagnostic = {.where = "compile", .cause = "refused", .text = "no\nmore", .raw = {}};
  CHECK(whole_lines("m", *judge_whole(outcome, {})) == "Full model setup failed: no");
  outcome.ending = domain::Ending::Crashed;
  outcome.diagnostic = {.where = "run", .cause = "crashed: SIGSEGV", .text = "gone", .raw = {}};
  const auto crashed = judge_whole(outcome, {});
  CHECK(whole_lines("m", *crashed) == "Full model run failed: crashed: SIGSEGV: gone");
  CHECK(crashed->status == domain::Status::Error);
  CHECK_FALSE(whole_model(*crashed));
  CHECK(failed_run_line(*crashed) ==
        "Run finished with a failing whole model: run failed: crashed: SIGSEGV: gone");
}

TEST_CASE("numbers that do not tell the counts at this tolerance decide nothing") {
  domain::Outcome outcome = an_outcome();
  outcome.whole->outputs = {compared({8, 10}, {9, 12})};  // 0.059 and 0.091, in one bin
  CHECK_FALSE(judge_whole(outcome, {.fp_avg_tol = 0.07, .fp_max_tol = 0.07}));
  CHECK(judge_whole(outcome, {.fp_avg_tol = 0.05, .fp_max_tol = 0.05}));
}

TEST_CASE("the report gets the result, block 5 and fresh lines, and keeps what is not ours") {
  json::Value report = *json::parse(kReport, "test");
  put_whole_result(report, {{"Conv_c", "7:10"}, {"Other", "8:10"}}, *judge_whole(an_outcome(), {}));
  CHECK(report.get("ops")->get("Conv_c")->get_text("mlir_location") == "7:10");
  CHECK(report.get("ops")->object()->size() == 1);
  CHECK(report.get("mine")->integer() == 1);
  const std::string text(report.get_text("final_report_text"));
  CHECK(text.find("--- Full Model Comparison ---\n  Max relative difference: ") !=
        std::string::npos);
  CHECK(text.find("  Max absolute difference: 1.0\n  Number of differences: 1 out of 4 [25.00%]\n\n"
                  "Per-Layer Status:") != std::string::npos);
  CHECK(report.get("has_critical_failures")->flag() == false);
  CHECK(report.get("discovery_report")->get("summary")->get("total_layers")->integer() == 1);
  const json::Value& whole = *report.get("_whole_model");
  CHECK(whole.get_text("status") == "difference");
  CHECK(whole.get("switches")->integer() == 2);
  CHECK(whole.get("bytes_crossed")->integer() == 48);
  CHECK(whole.get("first_wrong_segment")->integer() == 1);
  CHECK(whole.get("segments")->array()->at(1).get_text("status") == "difference");
  // Once more gives the same bytes.
  const std::string once = json::text_of(report);
  put_whole_result(report, {{"Conv_c", "7:10"}}, *judge_whole(an_outcome(), {}));
  CHECK(json::text_of(report) == once);
}

TEST_CASE("an edit takes the whole model's result with it: it is of another assignment") {
  json::Value report = *json::parse(kReport, "test");
  put_whole_result(report, {}, *judge_whole(an_outcome(), {}));
  apply_edit(report, {"Conv_c"}, {.executor = "host", .fp_avg_tol = {}, .fp_max_tol = {}});
  CHECK(report.get("_whole_model") == nullptr);
  CHECK(report.get_text("final_report_text").find("Full Model") == std::string_view::npos);
}
