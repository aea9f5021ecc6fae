#include "coordinator/report/compare.h"

#include <doctest/doctest.h>

#include <limits>

using namespace layerfarm;
using namespace layerfarm::coordinator::report;

namespace {

json::Value parsed(const std::string& text) {
  const auto value = json::parse(text, "test");
  REQUIRE_MESSAGE(value, value.error().text());
  return *value;
}

Differences compared(const std::string& a, const std::string& b, double threshold = 10) {
  const auto out = compare(parsed(a), parsed(b), threshold);
  REQUIRE_MESSAGE(out, out.error().text());
  return *out;
}

/// A report of one layer with one timed success on nss.
std::string timed(const std::string& ms) {
  return R"({"ops": {"Conv_a": {"executors": {"nss": {"status": "success", "timing": {"runtime_ms": )" +
         ms + R"(, "runs": 1}}}, "recommended_executor": "nss"}}})";
}

const std::string kOld = R"({"ops": {
  "Conv_a": {"executors": {"nss": {"status": "success"}, "css": {"status": "error"}}, "recommended_executor": "nss"},
  "Relu_b": {"executors": {"nss": {"status": "error"}}, "recommended_executor": null},
  "Add_c": {"executors": {}, "recommended_executor": null}}, "model_name": "m"})";
const std::string kNew = R"({"ops": {
  "Mul_d": {"executors": {}},
  "Conv_a": {"executors": {"nss": {"status": "difference"}, "host": {"status": "success"}}, "recommended_executor": "host"},
  "Relu_b": {"executors": {"nss": {"status": "error"}}, "recommended_executor": "null"}}, "model_name": "m"})";

}  // namespace

TEST_CASE("flips, recommendations, results and layers of one side alone are told apart") {
  const Differences out = compared(kOld, kNew);
  REQUIRE(out.verdicts.size() == 1);
  CHECK(out.verdicts[0].layer_id == "Conv_a");
  CHECK(out.verdicts[0].executor == "nss");
  CHECK(out.verdicts[0].a == "success");
  CHECK(out.verdicts[0].b == "difference");
  REQUIRE(out.tested_once.size() == 2);
  CHECK(out.tested_once[0].executor == "css");
  CHECK(out.tested_once[0].b.empty());
  CHECK(out.tested_once[1].executor == "host");
  CHECK(out.tested_once[1].a.empty());
  // null, and the text that older tools wrote for it, are one.
  REQUIRE(out.choices.size() == 1);
  CHECK(*out.choices[0].a == "nss");
  CHECK(*out.choices[0].b == "host");
  CHECK(out.only_in_a == std::vector<std::string>{"Add_c"});
  CHECK(out.only_in_b == std::vector<std::string>{"Mul_d"});
  CHECK(out.compared == 2);
  CHECK(out.count() == 6);
}

TEST_CASE("a file and itself are the same, whatever is in it") {
  for (const std::string& file : {kOld, kNew, timed("NaN"), std::string(R"({"ops": {}})")}) {
    CHECK(compared(file, file).count() == 0);
  }
}

TEST_CASE("the order of layers and executors says nothing") {
  CHECK(
      compared(
          R"({"ops": {"A_a": {"executors": {"nss": {"status": "success"}, "css": {"status": "error"}}}, "B_b": {}}})",
          R"({"ops": {"B_b": {}, "A_a": {"executors": {"css": {"status": "error"}, "nss": {"status": "success"}}}}})")
          .count() == 0);
}

TEST_CASE("a run time counts beyond the threshold, not at it, in both directions") {
  CHECK(compared(timed("1.0"), timed("1.1")).timings.empty());
  CHECK(compared(timed("1.0"), timed("0.9")).timings.empty());
  const Differences slower = compared(timed("1.0"), timed("1.101"));
  REQUIRE(slower.timings.size() == 1);
  CHECK(slower.timings[0].percent == doctest::Approx(10.1));
  CHECK(compared(timed("1.0"), timed("0.899")).timings[0].percent == doctest::Approx(-10.1));
  CHECK(compared(timed("1.0"), timed("1.101"), 50).count() == 0);
  CHECK(compared(timed("1.0"), timed("1.001"), 0).timings.size() == 1);
  CHECK(compared(timed("0"), timed("0")).count() == 0);
  CHECK(compared(timed("0"), timed("1")).timings[0].percent ==
        std::numeric_limits<double>::infinity());
}

TEST_CASE("a time that only one of them has is no change of time") {
  const std::string untimed =
      R"({"ops": {"Conv_a": {"executors": {"nss": {"status": "success"}}, "recommended_executor": "nss"}}})";
  CHECK(compared(timed("1.0"), untimed).count() == 0);
  CHECK(compared(timed("NaN"), timed("1.0")).count() == 0);
}

TEST_CASE("reports of TFLite models are compared by their ids") {
  const Differences out = compared(
      R"({"ops": {"CONV_2D_0": {"executors": {"nss": {"status": "success"}}, "_node_index": 0},
          "DEQUANTIZE_1": {"executors": {"nss": {"status": "unknown"}}}}})",
      R"({"ops": {"CONV_2D_0": {"executors": {"nss": {"status": "error"}}, "_node_index": 0},
          "DEQUANTIZE_1": {"executors": {}}}})");
  REQUIRE(out.verdicts.size() == 1);
  CHECK(out.verdicts[0].layer_id == "CONV_2D_0");
  CHECK(out.count() == 1);  // "unknown" is no verdict
}

TEST_CASE("executors that a chip of ours has are compared too") {
  const Differences out = compared(
      R"({"_executors": ["htp"], "ops": {"A_a": {"executors": {"htp": {"status": "success"}}}}})",
      R"({"_executors": ["htp"], "ops": {"A_a": {"executors": {"htp": {"status": "error"}}}}})");
  REQUIRE(out.verdicts.size() == 1);
  CHECK(out.verdicts[0].executor == "htp");
}

TEST_CASE("compiler files are compared by location") {
  const Differences out = compared(
      R"({"op_assignments": {"1:1": {"executor": "nss"}, "2:1": {"executor": "css"}, "3:1": {"executor": "css"}}})",
      R"({"op_assignments": {"2:1": {"executor": "host"}, "3:1": {"executor": "css"}, "4:1": {"executor": "nss"}}})");
  CHECK(out.kind == FileKind::Compiler);
  REQUIRE(out.choices.size() == 1);
  CHECK(out.choices[0].layer_id == "2:1");
  CHECK(*out.choices[0].b == "host");
  CHECK(out.only_in_a == std::vector<std::string>{"1:1"});
  CHECK(out.only_in_b == std::vector<std::string>{"4:1"});
}

TEST_CASE("what cannot be compared is refused with the reason") {
  const auto why = [](const std::string& a, const std::string& b) {
    const auto out = compare(parsed(a), parsed(b), 10);
    REQUIRE_FALSE(out);
    return out.error().text();
  };
  CHECK(why(kOld, R"({"op_assignments": {}})") ==
        "A is a report and B a compiler file: name two files of one kind");
  CHECK(why(R"({"op_assignments": {}})", kOld) ==
        "A is a compiler file and B a report: name two files of one kind");
  CHECK(why(kOld, R"({"version": "1.1"})").find("B is neither a report") == 0);
}

TEST_CASE("another model, chip or setting is a note and no difference") {
  const Differences out = compared(
      R"({"ops": {}, "model_name": "m", "_chip": "SM8550", "_settings": {"dims": {}}})",
      R"({"ops": {}, "model_name": "n", "_chip": "SM8650", "_settings": {"dims": {"n": 4}}})");
  CHECK(out.count() == 0);
  REQUIRE(out.notes.size() == 3);
  CHECK(out.notes[0] == "models differ: m (A), n (B)");
  CHECK(out.notes[1] == "chips differ: SM8550 (A), SM8650 (B)");
  CHECK(out.notes[2] == "settings differ (A there, B here): dims: {} there, {'n': 4} here");
}

TEST_CASE("the text has a block for each kind of difference that there is") {
  CHECK(compare_text(compared(kOld, kNew), {"old.json", "new.json"}) ==
        "A: old.json\nB: new.json\n"
        "\nVerdicts that changed: 1\n  Conv_a on NSS: success -> difference\n"
        "\nTested in one of them only: 2\n  Conv_a on CSS: error -> -\n  Conv_a on HOST: - -> "
        "success\n"
        "\nRecommendations that changed: 1\n  Conv_a: nss -> host\n"
        "\nLayers only in A: 1\n  Add_c\n"
        "\nLayers only in B: 1\n  Mul_d\n"
        "\n6 difference(s); 2 layer(s) in both\n");
  CHECK(compare_text(compared(timed("1.0"), timed("1.5"), 12.5), {"a", "b"}) ==
        "A: a\nB: b\n\nRun times that changed by more than 12.5 %: 1\n  Conv_a on NSS: 1.0 ms -> "
        "1.5 ms (+50.0 %)\n\n1 difference(s); 1 layer(s) in both\n");
  CHECK(compare_text(compared(kOld, kOld), {"a", "a"}) ==
        "A: a\nB: a\n\nNo difference: 3 layer(s)\n");
}

TEST_CASE("the JSON says the same, keys in a fixed order") {
  const json::Value out = compare_json(compared(kOld, kNew), {"old.json", "new.json"});
  std::vector<std::string> keys;
  for (const json::Member& member : *out.object()) keys.push_back(member.key);
  CHECK(keys == std::vector<std::string>{"a", "b", "kind", "same", "compared", "notes",
                                         "time_threshold_percent", "verdicts", "tested_once",
                                         "timings", "recommendations", "only_in_a", "only_in_b"});
  CHECK(out.get("same")->flag() == false);
  const json::Value& verdict = out.get("verdicts")->array()->front();
  CHECK(verdict.get_text("layer_id") == "Conv_a");
  CHECK(verdict.get_text("b") == "difference");
  CHECK(out.get("tested_once")->array()->front().get("b")->is_null());
  const json::Value compiler =
      compare_json(compared(R"({"op_assignments": {"1:1": {"executor": "nss"}}})",
                            R"({"op_assignments": {"1:1": {"executor": "css"}}})"),
                   {"a", "b"});
  CHECK(compiler.get_text("kind") == "compiler");
  CHECK(compiler.get("assignments")->array()->front().get_text("location") == "1:1");
}

TEST_CASE("verdicts under other tolerances are noted, and are no difference of their own") {
  const auto report = [](const std::string& nss, const std::string& layer) {
    return R"({"ops": {"Conv_a": {"executors": {})" + layer +
           R"(}, "Relu_b": {}}, "_default_tolerances": {"nss": {"fp_max_tol": )" + nss +
           R"(}, "css": {"fp_max_tol": 0.5}}})";
  };
  const std::string edited = R"(, "tolerance_used": {"fp_max_tol": 0.25})";
  const Differences out = compared(report("0.01", ""), report("0.02", edited));
  CHECK(out.count() == 0);
  CHECK(out.notes ==
        std::vector<std::string>{
            "tolerances of NSS differ: {'fp_max_tol': 0.01} (A), {'fp_max_tol': 0.02} (B)",
            "edited tolerances differ in 1 layer(s): Conv_a"});
  CHECK(compared(report("0.01", edited), report("0.01", edited)).notes.empty());
  const std::string old = R"({"ops": {}, "default_tolerance": {"fp_max_tol": 0.01}})";
  const std::string other = R"({"ops": {}, "default_tolerance": {"fp_max_tol": 0.1}})";
  CHECK(compared(old, other).notes ==
        std::vector<std::string>{
            "tolerances differ: {'fp_max_tol': 0.01} (A), {'fp_max_tol': 0.1} (B)"});
}
