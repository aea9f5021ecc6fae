#include "coordinator/report/case_result.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace layerfarm;
using namespace layerfarm::coordinator::report;

namespace {

json::Value written(const CaseResult& result, const std::string& reference = "") {
  std::string text;
  write_result(result, reference, text);
  const auto value = json::parse(text, "result");
  REQUIRE(value);
  // Indented for its place in a report: the members at 10 spaces, the closing brace at 8.
  CHECK(text.find("{\n          \"status\"") == 0);
  CHECK(text.substr(text.size() - 10) == "\n        }");
  return *value;
}

domain::Comparison floats(double max_rel, double required, std::uint64_t total, double cosine) {
  domain::Comparison out;
  out.dtype = domain::DType::Float32;
  out.total = total;
  out.max_rel = max_rel;
  out.mean_rel = max_rel / 2;
  out.required_max_tol = required;
  out.cosine = cosine;
  out.worst_index = 17;
  return out;
}

}  // namespace

TEST_CASE("a difference always has the three lines of numbers, from the comparison itself") {
  domain::Judgement judgement;
  judgement.status = domain::Status::Difference;
  judgement.reason = "3/512 exceed fp_max_tol 0.01";
  judgement.max_rel_diff = 0.047619;
  judgement.max_abs_diff = 1.5;
  judgement.num_diffs = 3;
  judgement.total = 512;
  const std::vector<domain::Comparison> outputs = {floats(0.02, 0.02, 256, 0.99),
                                                   floats(0.047619, 0.047619, 256, 0.98)};
  const CaseResult result = case_result(judgement, outputs, {0.01, 0.02, 0});
  CHECK(failure_summary(result) ==
        "Max relative difference: 0.047619\nMax absolute difference: 1.5\nNumber of differences: 3 "
        "out of 512 [0.59%]");
  CHECK(json::python_text(written(result)) ==
        "{'status': 'difference', 'tolerance_used': {'fp_avg_tol': 0.01, 'fp_max_tol': 0.02}, "
        "'max_diff': {'max_rel_diff': 0.047619, "
        "'max_abs_diff': 1.5}, 'failure_report': {'type': 'accuracy_failure', 'summary': 'Max "
        "relative difference: 0.047619\\nMax "
        "absolute difference: 1.5\\nNumber of differences: 3 out of 512 [0.59%]'}, '_reason': "
        "'3/512 exceed fp_max_tol 0.01', "
        "'_num_diffs': 3, '_num_elements': 512, '_mean_rel_diff': 0.01690475, "
        "'_required_tolerance': 0.047619, '_cosine': 0.98, "
        "'_worst_output': 1, '_worst_index': 17}");
}

TEST_CASE("what passes though it is off is counted in keys of ours, where there is some") {
  domain::Judgement judgement;
  judgement.status = domain::Status::Success;
  judgement.total = 8;
  domain::Comparison small = floats(0.5, 0, 4, 1);
  small.counted_at = {0.01, 0.01, 0.02};
  small.rel_histogram[10] = 3;
  small.max_rel_above[0] = 0.1;
  small.num_forgiven = 3;
  domain::Comparison index;
  index.dtype = domain::DType::Int64;
  index.total = 4;
  index.num_off_by_one = 2;
  domain::Tolerance tolerance{0.01, 0.01, 0.02};
  tolerance.int_tol = 5;
  const json::Value result = written(case_result(judgement, {small, index}, tolerance));
  CHECK(result.get("_forgiven")->integer() == 3);
  CHECK(result.get("_num_integers")->integer() == 4);
  CHECK(result.get("_off_by_one")->integer() == 2);
  CHECK(json::python_text(*result.get("tolerance_used")) ==
        "{'fp_avg_tol': 0.01, 'fp_max_tol': 0.01, 'fp_abs_tol_frac': 0.02, 'int_tol': 5}");
  index.num_off_by_one = 0;
  small.num_forgiven = 0;
  small.rel_histogram[10] = 0;
  small.max_rel_above[0] = 0;
  const json::Value clean = written(case_result(judgement, {small, index}, {0.01, 0.01, 0.02}));
  CHECK(clean.get("_forgiven") == nullptr);
  CHECK(clean.get("_off_by_one") == nullptr);
  // What is not known is not there.
  small.num_forgiven.reset();
  small.max_rel_above[0] = 0.1;
  CHECK_FALSE(case_result(judgement, {small}, {0.01, 0.013, 0.02}).numbers->forgiven);
}

TEST_CASE("the bounds of a tolerance are read as they are written") {
  domain::Tolerance tolerance{0.5, 0.25, 0.125};
  tolerance.int_tol = 0;
  const json::Value text = tolerance_json(tolerance);
  CHECK(bounds_in(&text).over({}) == tolerance);
  CHECK(bounds_in(nullptr).empty());
  const json::Value odd = *json::parse(R"({"int_tol": -1, "fp_max_tol": "x"})", "odd");
  CHECK(bounds_in(&odd).empty());
}

TEST_CASE(
    "numbers that nothing has read n/a, and what they cannot say is said in a line of its own") {
  domain::Judgement judgement;
  judgement.status = domain::Status::Difference;
  judgement.reason = "number of outputs differ: 1 vs 2";
  CHECK(failure_summary(case_result(judgement, {}, {})) ==
        "Max relative difference: n/a\nMax absolute difference: n/a\nNumber of differences: 0 out "
        "of 0 [0.00%]\nnumber of outputs "
        "differ: 1 vs 2");
  judgement.reason = "4/8 boolean differences";
  CHECK(failure_summary(case_result(judgement, {}, {})).find("boolean") == std::string::npos);
}

TEST_CASE("a difference that is not a number is left out of the numbers and said in the summary") {
  domain::Judgement judgement;
  judgement.status = domain::Status::Difference;
  judgement.reason = "NaN positions differ";
  judgement.max_rel_diff = std::nan("");
  judgement.max_abs_diff = 2.0;
  const CaseResult result = case_result(judgement, {}, {});
  CHECK(failure_summary(result).find("Max relative difference: nan") == 0);
  CHECK(failure_summary(result).find("NaN positions differ") != std::string::npos);
  const json::Value value = written(result);
  CHECK(json::python_text(*value.get("max_diff")) == "{'max_abs_diff': 2.0}");
}

TEST_CASE(
    "the worst output is the one with the greatest difference; integers go by their absolute one") {
  domain::Comparison whole;
  whole.dtype = domain::DType::Int32;
  whole.total = 4;
  whole.max_abs = 9;
  whole.worst_index = 2;
  domain::Comparison small = whole;
  small.max_abs = 1;
  small.worst_index = 1;
  const std::vector<domain::Comparison> integers = {small, whole};
  domain::Judgement judgement;
  judgement.status = domain::Status::Success;
  const CaseResult result = case_result(judgement, integers, {});
  CHECK(result.numbers->worst_output == 1);
  CHECK(result.numbers->worst_index == 2);
  CHECK_FALSE(result.numbers->mean_rel_diff);
  const std::vector<domain::Comparison> mixed = {whole, floats(0.5, 0.5, 4, 1)};
  CHECK(case_result(judgement, mixed, {}).numbers->worst_output == 1);
  const std::vector<domain::Comparison> other_way = {floats(0.5, 0.5, 4, 1), whole};
  CHECK(case_result(judgement, other_way, {}).numbers->worst_output == 0);
}

TEST_CASE("a failed setup is told with the diagnostic, a failed run with its class") {
  const CaseResult refused =
      case_result(domain::Diagnostic{"compile", "refused", "no such op\nline 2", {}}, {});
  CHECK(refused.status == domain::Status::Error);
  CHECK(failure_summary(refused) == "Fixture/setup failed: no such op\nline 2");
  const CaseResult crashed =
      case_result(domain::Diagnostic{"compile", "crashed: SIGSEGV", "stack", {}}, {});
  CHECK(failure_summary(crashed) == "Fixture/setup failed: crashed: SIGSEGV\nstack");
  CHECK(failure_summary(case_result(domain::Diagnostic{"", "timed out after 240 s", "", {}}, {})) ==
        "Fixture/setup failed: timed out after 240 s");
  const CaseResult run =
      case_result(domain::Diagnostic{"run", "crashed: SIGABRT", "assertion", {}}, {});
  CHECK(failure_summary(run) == "crashed: SIGABRT: Test execution failed");
  CHECK(json::python_text(*written(run).get("failure_report")) ==
        "{'type': 'error', 'summary': 'crashed: SIGABRT: Test execution failed', '_where': 'run', "
        "'_text': 'assertion'}");
  CHECK(failure_summary(case_result(domain::Diagnostic{"run", "refused", "", {}}, {})) ==
        "ToolError: Test execution failed");
  CHECK(json::python_text(*written(refused).get("failure_report")) ==
        "{'type': 'error', 'summary': 'Fixture/setup failed: no such op\\nline 2', '_where': "
        "'compile'}");
}

TEST_CASE("an error without a failure still reads as one") {
  CaseResult result;
  CHECK(failure_summary(result) == "Fixture/setup failed: ");
  result.status = domain::Status::Success;
  CHECK(failure_summary(result).empty());
}

TEST_CASE(
    "long diagnostics are cut after a whole line within 512 characters, else in the middle of "
    "one") {
  CHECK(cut_diagnostic("short") == "short");
  const std::string line(300, 'a');
  CHECK(cut_diagnostic(line + "\n" + line) == line + "\n...");
  CHECK(cut_diagnostic(std::string(600, 'b')) == std::string(512, 'b') + "\n...");
  CHECK(cut_diagnostic(std::string(512, 'b')) == std::string(512, 'b'));
  std::string wide;
  for (int i = 0; i < 600; ++i) wide += "\xC3\xA9";
  CHECK(cut_diagnostic(wide) == wide.substr(0, 1024) + "\n...");
  CHECK(first_line("a\nb") == "a");
  CHECK(first_line("a") == "a");
}

TEST_CASE("timing is the mean with three decimals, beside least, middle and spread") {
  CHECK_FALSE(timing_of({}));
  const auto timing = timing_of({{3000, 1000, 2000, 9000}, "session run"});
  REQUIRE(timing);
  CHECK(timing->runtime_ms == 3.75);
  CHECK(timing->min_ms == 1.0);
  CHECK(timing->median_ms == 2.5);
  CHECK(timing->spread_ms == 8.0);
  CHECK(timing->runs == 4);
  CHECK(timing_of({{1, 5, 3}, ""})->median_ms == 0.003);
}

TEST_CASE("marks of ours are written only where they say something") {
  CaseResult result;
  result.status = domain::Status::Success;
  result.tolerance.fp_abs_tol_frac = 0.001;
  result.evidence = domain::Evidence::StandIn;
  result.reference = "iree 3.13.0 (llvm-cpu)";
  result.same_engine = true;
  result.copied_from = "Conv_a";
  result.flaky = FlakyCounts{2, 1, 0};
  result.note = "raised to opset 17";
  result.compile = CompileCost{12.34567, 16, false};
  result.timing = Timing{1.5, 1.0, 1.4, 0.9, 3, "session run"};
  CHECK(json::python_text(written(result, "onnxruntime 1.32.0")) ==
        "{'status': 'success', 'tolerance_used': {'fp_avg_tol': 0.01, 'fp_max_tol': 0.01, "
        "'fp_abs_tol_frac': 0.001}, 'timing': "
        "{'runtime_ms': 1.5, 'runs': 3, '_what_ms': 'session run', '_min_ms': 1.0, '_median_ms': "
        "1.4, '_spread_ms': 0.9}, '_evidence': "
        "'stand-in', '_reference': 'iree 3.13.0 (llvm-cpu)', '_same_engine': True, '_copied_from': "
        "'Conv_a', '_flaky': {'success': 2, "
        "'difference': 1, 'error': 0}, '_note': 'raised to opset 17', '_compile_ms': 12.346, "
        "'_compile_batch': 16, '_compile_cached': "
        "False}");
  CaseResult plain;
  plain.status = domain::Status::Success;
  plain.reference = "onnxruntime 1.32.0";
  CHECK(json::python_text(written(plain, "onnxruntime 1.32.0")) ==
        "{'status': 'success', 'tolerance_used': {'fp_avg_tol': 0.01, 'fp_max_tol': 0.01}}");
}
