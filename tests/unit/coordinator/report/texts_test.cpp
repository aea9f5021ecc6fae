#include "coordinator/report/texts.h"

#include <doctest/doctest.h>

using namespace layerfarm::coordinator::report;

namespace {

Op op(const std::string& id, std::int64_t place,
      std::vector<std::pair<std::string, std::string>> results,
      std::optional<std::string> recommended) {
  Op out;
  out.id = id;
  out.orig_index = place;
  for (auto& [executor, status] : results)
    out.results.push_back({executor, status, std::nullopt, {}});
  out.recommended = std::move(recommended);
  return out;
}

json::Value failure(const std::string& summary) {
  json::Object out;
  out.set("type", "error");
  out.set("summary", summary);
  return out;
}

const std::vector<std::string> kClassic = {"nss", "css", "host"};

}  // namespace

TEST_CASE("the table of the three sample rows") {
  const std::vector<Op> ops = {
      op("Conv_c1", 0, {{"nss", "success"}}, "nss"),
      op("Softmax_probs", 1, {{"nss", "error"}, {"css", "difference"}, {"host", "success"}},
         "host"),
      op("Loop_tail", 2, {{"nss", "error"}, {"css", "error"}, {"host", "error"}}, std::nullopt)};
  CHECK(layer_table(overview(ops, kClassic, RowOrder::OrigIndex), Colour::No) ==
        "Per-Layer Status:\n"
        "  Layer          NSS          CSS          HOST         Recommended\n"
        "--------------------------------------------------------------------------\n"
        "  Conv_c1        success      -            -            nss\n"
        "  Softmax_probs  error        difference   success      host\n"
        "  Loop_tail      error        error        error        -");
}

TEST_CASE("a table without rows says so") {
  CHECK(layer_table(overview({}, kClassic, RowOrder::OrigIndex), Colour::No) ==
        "Per-Layer Status:\n  (no layers)");
}

TEST_CASE("names in a column are cut with a mark, and each is another") {
  CHECK(column_names({"abcdef", "abcdefg", "xbcdefg"}, 6) ==
        std::vector<std::string>{"abcdef", "abcde\u2026", "xbcde\u2026"});
  // Equal beginnings: the ends tell.
  CHECK(column_names({"abcdefgh1", "abcdefgh2", "abc"}, 6) ==
        std::vector<std::string>{"abc\u2026h1", "abc\u2026h2", "abc"});
  // Equal at both ends: a number.
  CHECK(column_names({"abcde1xyz", "abcde2xyz", "abcde3xyz"}, 6) ==
        std::vector<std::string>{"abc\u2026yz", "abc\u2026\u20262", "abc\u2026\u20263"});
  CHECK(column_names({"\u00e9\u00e9\u00e9\u00e9"}, 3) ==
        std::vector<std::string>{"\u00e9\u00e9\u2026"});
}

TEST_CASE("a name with line ends and control codes stays on its line, wherever it stands") {
  CHECK(one_line("a\nb\tc\x1b[31m\r\x7f\u00e9") == "a\\nb\\tc\\x1b[31m\\x0d\\x7f\u00e9");
  const std::vector<Op> ops = {op("Add_x\ny", 0, {{"cpu", "error"}}, std::nullopt)};
  const Overview all = overview(ops, {"cpu"}, RowOrder::OrigIndex);
  CHECK(layer_table(all, Colour::No).find("\n  Add_x\\ny  error        -") != std::string::npos);
  CHECK(final_report_text("m\nn", all, std::nullopt).find("\n  - Add_x\\ny (node: ") !=
        std::string::npos);
  CHECK(final_report_text("m\nn", all, std::nullopt).find("Model: m\\nn\n") != std::string::npos);
  CHECK(first_ten({"a\nb", "c"}) == "a\\nb, c");
}

TEST_CASE("short ids leave the heading as wide as its word, long ones are cut at 60 characters") {
  const std::vector<Op> narrow = {op("a", 0, {}, std::nullopt)};
  CHECK(layer_table(overview(narrow, {"cpu"}, RowOrder::OrigIndex), Colour::No) ==
        "Per-Layer Status:\n  Layer  CPU          Recommended\n" + std::string(1 + 12 + 25, '-') +
            "\n  a  -            -");
  const std::vector<Op> wide = {op("X_" + std::string(80, 'x'), 0, {}, "cpu")};
  const std::string table = layer_table(overview(wide, {"cpu"}, RowOrder::OrigIndex), Colour::No);
  CHECK(table.find("\n  X_" + std::string(57, 'x') + "\u2026  -            cpu") !=
        std::string::npos);
  CHECK(table.find("\n" + std::string(60 + 12 + 25, '-') + "\n") != std::string::npos);
}

TEST_CASE("colours touch status words only, and padding is that of the plain word") {
  const std::vector<Op> ops = {op("Add_success", 0, {{"cpu", "success"}, {"old", "error"}}, "cpu")};
  const std::string table =
      layer_table(overview(ops, {"cpu", "old", "new"}, RowOrder::OrigIndex), Colour::Yes);
  CHECK(table.find("  Add_success  \033[32msuccess\033[0m      \033[31merror\033[0m        -       "
                   "     cpu") != std::string::npos);
}

TEST_CASE("columns line up for ids beyond ASCII") {
  const std::vector<Op> ops = {op("Conv_\xC3\xA9", 0, {}, "cpu"), op("Conv_ee", 1, {}, "cpu")};
  const std::string table = layer_table(overview(ops, {"cpu"}, RowOrder::OrigIndex), Colour::No);
  CHECK(table.find("\n  Conv_\xC3\xA9   -") != std::string::npos);
  CHECK(table.find("\n  Conv_ee  -") != std::string::npos);
}

TEST_CASE("final_report_text lists critical layers and whole-model numbers") {
  std::vector<Op> ops = {op("Loop_tail", 0, {{"nss", "error"}}, std::nullopt),
                         op("Loop_head", 1, {{"nss", "error"}}, std::nullopt)};
  ops[1].node_index = 4;
  const Overview all = overview(ops, kClassic, RowOrder::OrigIndex);
  const std::string text = final_report_text("m", all, WholeModel{std::nullopt, 0.5, std::nullopt});
  CHECK(
      text.find(
          "CRITICAL: 2 layer(s) with ALL executors ERRORS\n\n  - Loop_tail (node: None)\n  - "
          "Loop_head (node: 4)\n\n"
          "--- Full Model Comparison ---\n  Max absolute difference: 0.5\n\nPer-Layer Status:\n") !=
      std::string::npos);
  CHECK(text.find("FINAL EXECUTOR DISCOVERY REPORT\n\nModel: m\nTotal layers tested: 2\n\nStatus "
                  "Summary:\n  success: 0\n") == 0);
  CHECK(text.back() != '\n');
}

TEST_CASE("the report at the end spells out critical layers") {
  std::vector<Op> ops = {op("Loop_tail", 0, {{"nss", "error"}, {"host", "error"}}, std::nullopt)};
  ops[0].results[0].failure_report = failure("Fixture/setup failed: no\nway");
  ops[0].location = "3:4";
  const Overview all = overview(ops, kClassic, RowOrder::OrigIndex);
  const std::string text = end_report(
      {"m", "out/r.json", &all, WholeModel{0.25, std::nullopt, std::nullopt}}, Colour::No);
  CHECK(text.find("\n\n" + std::string(80, '=') + "\nFINAL EXECUTOR DISCOVERY REPORT\n" +
                  std::string(80, '=') +
                  "\n\nModel: m\nTotal layers tested: 1\nOutput file: out/r.json\n\n--- Status "
                  "Summary ---\nStatus Summary:\n") == 0);
  CHECK(text.find("\n\nCRITICAL FAILURES: 1 layers with ALL executors ERRORS\n\n") !=
        std::string::npos);
  CHECK(text.find("\n\n  1. Layer: Loop_tail\n     Node index: None\n     MLIR location: 3:4\n     "
                  "Full MLIR location: 3:4\n"
                  "     Executor errors:\n       - NSS: error - Fixture/setup failed: no\nway\n    "
                  "   - HOST: error - \n"
                  "\n--- Full Model Comparison ---\n  Max relative difference: 0.25\n\n--- "
                  "Per-Layer Detailed Status ---\n") != std::string::npos);
  CHECK(text.substr(text.size() - 2) == "\n\n");
}

TEST_CASE("status counts are coloured at the end of a run on a terminal") {
  const std::vector<Op> ops = {op("A_a", 0, {{"nss", "success"}}, "nss")};
  const Overview all = overview(ops, kClassic, RowOrder::OrigIndex);
  CHECK(end_report({"m", "r", &all, std::nullopt}, Colour::Yes)
            .find("  \033[32msuccess\033[0m: 1\n  \033[33mdifference\033[0m: 0\n") !=
        std::string::npos);
}

TEST_CASE("nothing is printed when there is nothing to report") {
  const Overview none = overview({}, kClassic, RowOrder::OrigIndex);
  CHECK(end_report({"m", "r", &none, std::nullopt}, Colour::No).empty());
  CHECK_FALSE(end_report({"m", "r", &none, WholeModel{}}, Colour::No).empty());
}

TEST_CASE("the placement summary counts layers, MACs and time per executor and groups refusals") {
  std::vector<Op> ops = {op("Conv_a", 0, {{"htp", "success"}, {"host", "success"}}, "htp"),
                         op("Conv_b", 1, {{"htp", "success"}, {"host", "success"}}, "htp"),
                         op("Gather_c", 2, {{"htp", "error"}, {"host", "success"}}, "host"),
                         op("Gather_d", 3, {{"htp", "error"}, {"host", "error"}}, std::nullopt)};
  ops[0].results[0].runtime_ms = 1.5;
  ops[2].results[1].runtime_ms = 0.25;
  ops[2].results[0].failure_report = failure("Fixture/setup failed: MEM_ALLOC, Code: 1002\nmore");
  ops[3].results[0].failure_report = failure("Fixture/setup failed: MEM_ALLOC, Code: 1002\nother");
  ops[3].results[1].failure_report = failure(
      "Fixture/setup failed: Error invoking t (code 1)\nDiagnostics:\n5:1: error: not lowered\n");
  PlacementFacts facts;
  facts.chip = "SM8550";
  facts.evidence = {{"htp", "emulator"}, {"host", "hardware"}};
  facts.same_engine = {"host"};
  facts.reference = "onnxruntime 1.32.0";
  facts.tools = {{"onnxruntime", "1.32.0"}, {"qnn", "2.7.0"}};
  facts.fresh = 5;
  facts.stored = 3;
  facts.timed = 2;
  facts.unsettled = 1;
  facts.macs = {{"Conv_a", 300}, {"Conv_b", 100}};
  CHECK(placement_summary(ops, {"htp", "host"}, facts) ==
        "--- Placement on SM8550 ---\n"
        "  HTP: 2 layer(s), 400 MACs (100%), 1.5 ms (1 timed)\n"
        "  HOST: 1 layer(s), 0 MACs (0%), 0.25 ms\n"
        "  no executor: 1 layer(s), 0 MACs (0%)\n"
        "Refused:\n"
        "  Gather on HTP (2 layer(s)): MEM_ALLOC, Code: 1002\n"
        "  Gather on HOST (1 layer(s)): not lowered\n"
        "Evidence: HTP emulator, HOST hardware (same engine as the reference)\n"
        "Reference: onnxruntime 1.32.0\n"
        "Tools: onnxruntime 1.32.0, qnn 2.7.0\n"
        "Results: 5 fresh, 3 from the store, 2 timed, 1 unsettled\n");
}

TEST_CASE("the reason of a failed run is what the tool said, after how it ended") {
  const auto reason = [](const std::string& summary, const std::string& text) {
    json::Object report;
    report.set("summary", summary);
    if (!text.empty()) report.set("_text", text);
    return reason_line(std::move(report));
  };
  const std::string kRun = ": Test execution failed";
  CHECK(reason("ToolError" + kRun, "bad shape\nmore") == "bad shape");
  CHECK(reason("crashed: SIGSEGV" + kRun, "gone") == "crashed: SIGSEGV: gone");
  CHECK(reason("exit code 4" + kRun, "exit code 4") == "exit code 4");
  CHECK(reason("ToolError" + kRun, "") == "ToolError" + kRun);  // older reports say no more
  CHECK(reason("ToolError" + kRun, "at it\nx.mlir:1:1: error: not lowered") == "not lowered");
  CHECK(reason("Fixture/setup failed: ValueError: axis\nTraceback (most recent call last):\n    "
               "raise ValueError(\"error: axis\")",
               "") == "ValueError: axis");
  Op failed = op("Add_a", 0, {{"cpu", "error"}}, std::nullopt);
  failed.results[0].failure_report = failure("ToolError" + kRun);
  failed.results[0].failure_report.object()->set("_text", "bad shape\nmore");
  CHECK(placement_summary({failed}, {"cpu"}, {}).find("  Add on CPU (1 layer(s)): bad shape\n") !=
        std::string::npos);
  const std::vector<Op> one = {failed};
  const Overview all = overview(one, {"cpu"}, RowOrder::OrigIndex);
  CHECK(end_report({"m", "r.json", &all, std::nullopt}, Colour::No)
            .find("- CPU: error - ToolError: Test execution failed (bad shape)\n") !=
        std::string::npos);
}

TEST_CASE("many kinds of refusal are cut with a count") {
  std::vector<Op> ops;
  for (int i = 0; i < 25; ++i)
    ops.push_back(op("Op" + std::to_string(i) + "_x", i, {{"cpu", "error"}}, std::nullopt));
  CHECK(placement_summary(ops, {"cpu"}, {}).find("  ... and 5 more\n") != std::string::npos);
}

TEST_CASE("upper case is that of letters only") { CHECK(upper("cpu-noopt2") == "CPU-NOOPT2"); }
