#include "coordinator/report/view_text.h"

#include <doctest/doctest.h>

using namespace layerfarm::coordinator::report;

namespace {
json::Value parsed(const std::string& text) {
  const auto value = json::parse(text, "test");
  REQUIRE_MESSAGE(value, value.error().text());
  return *value;
}
const std::string kRule(80, '=');
}  // namespace

TEST_CASE("the summary shows what the closing keys state") {
  const json::Value report =
      parsed(R"({"default_tolerance": {"fp_avg_tol": 0.01, "fp_max_tol": 1e-05},
    "ops": {"Conv_a": {"executors": {"nss": {"status": "success"}}, "recommended_executor": "nss"}}, "model_name": "m",
    "discovery_report": {"summary": {"total_layers": 1, "status_counts": {"success": 7, "difference": 0, "error": 0},
      "timing_summary": {"nss": {"avg_ms": 1.5, "min_ms": 1, "max_ms": 2.0, "samples": 2}}},
      "critical_failures": [{"layer_id": "Loop_tail", "node_index": null}, {"layer_id": "X_x", "node_index": 3}]}})");
  CHECK(view_summary(report, Colour::No) ==
        kRule + "\nMODEL: m\n" + kRule +
            "\n\nSTATUS COUNTS:\n  success: 7\n  difference: 0\n  error: 0\n\nTIMING SUMMARY "
            "(average runtime):\n  NSS: 1.5ms (min: 1ms, "
            "max: 2.0ms, samples: 2)\n\nCRITICAL FAILURES (all executors error): 2\n  - Loop_tail "
            "(node: None)\n  - X_x (node: 3)\n\n"
            "Per-Layer Status:\n  Layer   NSS          CSS          HOST         Recommended\n" +
            std::string(6 + 61, '-') +
            "\n  Conv_a  success      -            -            nss\n\nDEFAULT TOLERANCE:\n  "
            "fp_avg_tol: 0.01\n" +
            "  fp_max_tol: 1e-05\n\n" + kRule + "\n");
}

TEST_CASE("the summary says at its head how the last run of the whole model went") {
  const auto shown = [](const std::string& whole) {
    return view_summary(parsed(R"({"ops": {}, "_whole_model": )" + whole + "}"), Colour::No);
  };
  const std::string head = kRule + "\n\nLAST RUN OF THE WHOLE MODEL: ";
  const auto has = [&](const std::string& whole, const std::string& text) {
    return shown(whole).find(head + text + "\n\nSTATUS COUNTS:") != std::string::npos;
  };
  CHECK(has(R"({"status": "success"})", "passed"));
  CHECK(has(R"({"status": "difference", "reason": "1/4 exceed"})", "1/4 exceed"));
  CHECK(has(R"({"status": "difference"})", "difference"));
  CHECK(has(R"({"status": "error", "failure": "run failed: gone"})", "run failed: gone"));
  CHECK(has(
      R"({"status": "success", "first_wrong_segment": 1, "segments": [{}, {"executor": "css"}]})",
      "passed at the outputs, but segment 2 (css) goes wrong"));
  CHECK(has(R"({"status": "success", "first_wrong_segment": 7})",
            "passed at the outputs, but segment 8 (?) goes wrong"));
}

TEST_CASE("a report that says little is shown as it is") {
  CHECK(view_summary(parsed("{}"), Colour::No) ==
        kRule + "\nMODEL: unknown\n" + kRule +
            "\n\nSTATUS COUNTS:\n\nCRITICAL FAILURES (all executors error): 0\n\nPer-Layer "
            "Status:\n  (no layers)\n\nDEFAULT "
            "TOLERANCE:\n\n" +
            kRule + "\n");
}

TEST_CASE(
    "reports of ours add evidence and unsettled cases; critical layers of an unfinished one are "
    "counted from ops") {
  const json::Value report = parsed(
      R"({"ops": {"Conv_a": {"executors": {"htp": {"status": "error"}}, "_node_index": 2}}, "_chip": "SM8550",
    "_executors": ["htp", "host"], "_evidence": {"htp": "emulator", "host": "hardware"},
    "_unsettled": {"Conv_a": {"host": "worker lost 3 times"}, "Bad": 3}})");
  const std::string text = view_summary(report, Colour::No);
  CHECK(text.find("\nCRITICAL FAILURES (all executors error): 1\n  - Conv_a (node: 2)\n") !=
        std::string::npos);
  CHECK(
      text.find("\nUNSETTLED (no verdict; run again):\n  Conv_a on HOST: worker lost 3 times\n") !=
      std::string::npos);
  CHECK(text.find("\nEVIDENCE:\n  htp: emulator\n  host: hardware\n") != std::string::npos);
  CHECK(is_unfinished(report));
  CHECK_FALSE(is_unfinished(parsed("{}")));
}

TEST_CASE("one layer shows every executor with what is known of it") {
  const json::Value report = parsed(R"({"ops": {"Conv_a": {"executors": {
     "nss": {"status": "difference", "tolerance_used": {"fp_avg_tol": 0.01, "fp_max_tol": 0.01}, "max_diff": {"max_rel_diff": 0.5},
             "failure_report": {"type": "accuracy_failure", "summary": "Max relative difference: 0.5\nMax absolute difference: 123456789\nNumber of differences: 3"},
             "timing": {"runtime_ms": 4.125, "runs": 3}},
     "css": {"status": "success", "timing": {"runtime_ms": 1.0, "runs": 1}, "_cosine": 0.99, "_evidence": "stand-in"}},
     "_node_index": 4, "recommended_executor": "css"}, "B_b": {}}})");
  const auto text = view_layer(report, "Conv_a");
  REQUIRE(text);
  CHECK(*text == "\nLAYER: Conv_a\n" + kRule +
                     "\n\nNode Index: 4\nMLIR Location: N/A\nRecommended Executor: css\n\nExecutor "
                     "Results:\n\n  [NSS]: difference (4.125ms)\n    "
                     "Max Diff: {'max_rel_diff': 0.5}\n    Type: accuracy_failure\n    Summary: "
                     "Max relative difference: 0.5\nMax absolute "
                     "difference: 123456789\nNumber...\n    Tolerance: {'fp_avg_tol': 0.01, "
                     "'fp_max_tol': 0.01}\n    Runtime: 4.125ms\n    Runs: "
                     "3\n\n  [CSS]: success (1.0ms)\n    Runtime: 1.0ms\n    Evidence: stand-in\n  "
                     "  _cosine: 0.99\n\n  [HOST]: unknown\n");
  CHECK_FALSE(view_layer(report, "conv_a"));
  CHECK_FALSE(view_layer(parsed("{}"), "Conv_a"));
  // What a person or the run marked the layer with.
  const json::Value marked = parsed(R"({"ops": {"Relu_r": {"executors": {}, "_orig_index": 3,
    "recommended_executor": "host", "_edited": true, "_quantized": false, "_reason": "int8 input"}}})");
  CHECK(view_layer(marked, "Relu_r")
            ->find("Recommended Executor: host\n_edited: True\n_quantized: False\n_reason: int8 "
                   "input\n\nExecutor Results:\n") != std::string::npos);
  CHECK(view_layer(report, "B_b")
            ->find("Node Index: N/A\nMLIR Location: N/A\nRecommended Executor: None\n") !=
        std::string::npos);
}

TEST_CASE("a failed run shows what the tool said") {
  const auto text = view_layer(
      parsed(R"({"ops": {"Conv_a": {"executors": {"nss": {"status": "error", "failure_report":
        {"type": "error", "summary": "ToolError: Test execution failed", "_where": "run", "_text": "bad shape\nmore"}}}}}})"),
      "Conv_a");
  REQUIRE(text);
  CHECK(text->find("    Summary: ToolError: Test execution failed\n    Reason: bad shape\n") !=
        std::string::npos);
}

TEST_CASE("a time that is none is not shown as one") {
  const json::Value report = parsed(
      R"({"ops": {"Conv_a": {"executors": {
        "nss": {"status": "success", "timing": {"runtime_ms": null, "runs": 3}},
        "css": {"status": "success", "timing": {"runtime_ms": NaN}}}}},
      "discovery_report": {"summary": {"timing_summary": {"nss": {"avg_ms": null, "min_ms": 1.5, "samples": 1}}}}})");
  const auto layer = view_layer(report, "Conv_a");
  REQUIRE(layer);
  CHECK(layer->find("  [NSS]: success\n    Runs: 3\n") != std::string::npos);
  CHECK(layer->find("  [CSS]: success\n") != std::string::npos);
  CHECK(layer->find("Runtime") == std::string::npos);
  CHECK(view_summary(report, Colour::No).find("  NSS: N/A (min: 1.5ms, max: N/A, samples: 1)\n") !=
        std::string::npos);
}

TEST_CASE("evidence of the report is shown with each result") {
  const json::Value report = parsed(R"({"_executors": ["htp"], "_evidence": {"htp": "emulator"},
    "ops": {"A_a": {"executors": {"htp": {"status": "success"}}}}})");
  CHECK(view_layer(report, "A_a")->find("  [HTP]: success\n    Evidence: emulator\n") !=
        std::string::npos);
}

TEST_CASE(
    "a compiler file is shown with its distribution and its lines in the order of their texts") {
  const json::Value file = parsed(
      R"({"op_assignments": {"9:1": {"executor": "host"}, "10:1": {"executor": "nss"}, "8:1": {"executor": "htp"}}, "model_name": "m"})");
  CHECK(view_compiler(file) ==
        std::string(60, '=') + "\nMODEL: m  (compiler format)\n" + std::string(60, '=') +
            "\n\nTotal assignments: 3\n\nExecutor distribution:\n  NSS: 1\n  HOST: 1\n  HTP: "
            "1\n\nAssignments:\n  10:1 \xE2\x86\x92 nss\n  8:1 "
            "\xE2\x86\x92 htp\n  9:1 \xE2\x86\x92 host\n\n");
  CHECK(view_compiler(parsed(R"({"op_assignments": {}})")) ==
        std::string(60, '=') + "\nMODEL: unknown  (compiler format)\n" + std::string(60, '=') +
            "\n\nTotal assignments: 0\n");
}

TEST_CASE("at most ten layers are named") {
  std::string ops;
  for (int i = 0; i < 12; ++i) ops += (i ? ",\"L" : "\"L") + std::to_string(i) + "\": {}";
  CHECK(some_layers(parsed("{\"ops\": {" + ops + "}}")) ==
        "L0, L1, L2, L3, L4, L5, L6, L7, L8, L9...");
  CHECK(some_layers(parsed(R"({"ops": {"a": {}, "b": {}}})")) == "a, b");
  CHECK(some_layers(parsed("{}")).empty());
}
