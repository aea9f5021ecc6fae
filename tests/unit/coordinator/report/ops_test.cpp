#include "coordinator/report/ops.h"

#include <doctest/doctest.h>

using namespace layerfarm;
using namespace layerfarm::coordinator::report;

namespace {

json::Value parsed(const std::string& text) {
  const auto value = json::parse(text, "test");
  REQUIRE_MESSAGE(value, value.error().text());
  return *value;
}

const std::vector<std::string> kClassic = {"nss", "css", "host"};

/// An entry with these statuses ("" = not tested) and recommendation (JSON text).
json::Value entry(const std::vector<std::string>& statuses, const std::string& recommended,
                  const std::string& more = "") {
  std::string executors;
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    if (statuses[i].empty()) continue;
    executors += (executors.empty() ? "" : ",") +
                 ("\"" + kClassic[i] + "\": {\"status\": \"" + statuses[i] + "\"}");
  }
  return parsed("{\"executors\": {" + executors + "}, \"recommended_executor\": " + recommended +
                more + "}");
}

}  // namespace

TEST_CASE(
    "priority recommends the first success, else the first difference, for all 4^3 statuses") {
  const std::string kinds[] = {"", "success", "difference", "error"};
  for (const std::string& nss : kinds) {
    for (const std::string& css : kinds) {
      for (const std::string& host : kinds) {
        std::vector<Candidate> candidates;
        const std::string statuses[] = {nss, css, host};
        std::optional<std::string> expected;
        for (const char* wanted : {"success", "difference"}) {
          for (std::size_t i = 0; i < 3 && !expected; ++i) {
            if (statuses[i] == wanted) expected = kClassic[i];
          }
        }
        for (std::size_t i = 0; i < 3; ++i) {
          if (!statuses[i].empty()) candidates.push_back({kClassic[i], statuses[i], std::nullopt});
        }
        CHECK(recommend(candidates, Rule::Priority) == expected);
        CHECK(recommend(candidates, Rule::Timing) == expected);  // nothing is timed: falls back
      }
    }
  }
}

TEST_CASE(
    "timing recommends the quickest timed success; ties keep priority; a success beats any "
    "difference") {
  const auto choice = [](std::vector<Candidate> candidates) {
    return recommend(candidates, Rule::Timing).value_or("none");
  };
  CHECK(choice({{"nss", "success", 3.0}, {"css", "success", 1.0}, {"host", "success", 2.0}}) ==
        "css");
  CHECK(choice({{"nss", "success", 2.0}, {"css", "success", 2.0}}) == "nss");
  CHECK(choice({{"nss", "success", std::nullopt}, {"css", "success", 9.0}}) == "css");
  CHECK(choice({{"nss", "difference", 0.1}, {"host", "success", std::nullopt}}) == "host");
  CHECK(choice({{"nss", "difference", 4.0}, {"css", "difference", 2.0}, {"host", "error", 1.0}}) ==
        "css");
  CHECK(choice({{"nss", "error", 1.0}}) == "none");
}

TEST_CASE("a recommendation that no rule gives is a hand edit, so is a marked one") {
  const auto edited = [](const json::Value& value, const std::string& id = "Conv_a") {
    return HandEdits(parsed("{}")).is_one(id, value);
  };
  CHECK_FALSE(edited(entry({"success", "success", ""}, "\"nss\"")));
  CHECK(edited(entry({"success", "success", ""}, "\"css\"")));
  CHECK(edited(entry({"success", "success", ""}, "\"nss\"", ", \"_edited\": true")));
  CHECK_FALSE(edited(entry({"success", "success", ""}, "\"nss\"", ", \"_edited\": false")));
  CHECK(edited(entry({"success", "", ""}, "null")));
  CHECK(edited(entry({"success", "", ""}, "\"null\"")));
  CHECK_FALSE(edited(entry({"error", "", "error"}, "null")));
  CHECK_FALSE(edited(entry({"success", "", ""}, "null"), "MaxPool_p"));
  CHECK_FALSE(edited(parsed(R"({"executors": {"nss": {"status": "success"}}})")));
  CHECK_FALSE(edited(parsed(R"({"executors": {}, "recommended_executor": null})")));
  const std::string timed =
      R"({"executors": {"nss": {"status": "success", "timing": {"runtime_ms": 2}},
      "css": {"status": "success", "timing": {"runtime_ms": 1.5}}}, "recommended_executor": )";
  CHECK_FALSE(edited(parsed(timed + "\"css\"}")));
  CHECK_FALSE(edited(parsed(timed + "\"nss\"}")));
  CHECK(edited(parsed(timed + "\"host\"}")));
  // What the original's timing rule gave: a timed difference before an untimed success.
  CHECK_FALSE(edited(parsed(R"({"executors": {"nss": {"status": "success"},
      "css": {"status": "difference", "timing": {"runtime_ms": 1}}}, "recommended_executor": "css"})")));
}

TEST_CASE("times compare where all executors are of one kind") {
  domain::ChipSpec chip;
  CHECK(times_compare(chip));
  chip.executors = {{.name = "htp", .evidence = domain::Evidence::Emulator},
                    {.name = "host", .evidence = domain::Evidence::Hardware}};
  CHECK_FALSE(times_compare(chip));
  chip.executors[1].evidence = domain::Evidence::Emulator;
  CHECK(times_compare(chip));
}

TEST_CASE("pooling without a recommendation is an edit where nothing is quantized") {
  const json::Value pooling = entry({"success", "", ""}, "null");
  CHECK(HandEdits(parsed(R"({"_settings": {}})")).is_one("MaxPool_p", pooling));
  CHECK_FALSE(HandEdits(parsed(R"({"_settings": {"quantize": {}}})")).is_one("MaxPool_p", pooling));
  CHECK_FALSE(HandEdits(parsed("{}")).is_one("MaxPool_p", pooling));
}

TEST_CASE("which recommendation a rule gives goes by the priority that the report was made with") {
  const json::Value value = parsed(
      R"({"executors": {"a": {"status": "success"}, "b": {"status": "success"}, "old": {"status": "success"}},
      "recommended_executor": "b"})");
  CHECK(HandEdits(parsed(R"({"_executors": ["a", "b"]})")).is_one("Conv_a", value));
  CHECK_FALSE(HandEdits(parsed(R"({"_executors": ["b", "a"]})")).is_one("Conv_a", value));
  // An executor that the chip lost is recommended by no rule.
  const json::Value gone = parsed(
      R"({"executors": {"a": {"status": "error"}, "old": {"status": "success"}}, "recommended_executor": null})");
  CHECK_FALSE(
      HandEdits(parsed(R"({"_executors": ["a", "b"], "ops": {"x": {"executors": {"old": {}}}}})"))
          .is_one("Conv_a", gone));
}

TEST_CASE("columns are the report's executors, else nss, css, host, then others found") {
  CHECK(executors_of(parsed("{}")) == kClassic);
  CHECK(executors_of(parsed(R"({"ops": {"a": {"executors": {"htp": {}, "nss": {}}}, "b": {}}})")) ==
        std::vector<std::string>{"nss", "css", "host", "htp"});
  CHECK(
      executors_of(parsed(
          R"({"_executors": ["htp", "host", "htp", 3], "ops": {"a": {"executors": {"old": {}}}}})")) ==
      std::vector<std::string>{"htp", "host", "old"});
  CHECK(executors_of(parsed(R"({"_executors": []})")) == kClassic);
}

TEST_CASE(
    "an op type is the id's part before the first underscore, or before the number for TFLite "
    "ids") {
  CHECK(op_type_of("Conv_conv_1_out") == "Conv");
  CHECK(op_type_of("CONV_2D_0") == "CONV_2D");
  CHECK(op_type_of("DEQUANTIZE_12") == "DEQUANTIZE");
  CHECK(op_type_of("LSTM_Y") == "LSTM");
  CHECK(op_type_of("LSTM_7") == "LSTM");
  CHECK(op_type_of("Relu") == "Relu");
  CHECK(op_type_of("") == "");
}

TEST_CASE("a report without a chip is the original's where only nss, css and host were tested") {
  const auto chip = [](std::vector<std::string> executors) {
    domain::ChipSpec out;
    for (const std::string& name : executors) out.executors.emplace_back().name = name;
    return out;
  };
  const domain::ChipSpec qnn = chip({"htp", "host"});
  const domain::ChipSpec torq = chip({"nss", "css", "host"});
  const auto told = [](const std::string& text, const domain::ChipSpec& ours) {
    return chip_of(*json::parse(text, "test"), ours);
  };
  const std::string original =
      R"({"ops": {"Conv_a": {"executors": {"nss": {}, "host": {}}}, "Relu_b": {}}})";
  CHECK(told(original, qnn) == "SL2610");
  CHECK(told(original, torq) == "");
  CHECK(told(R"({"_chip": "c", "ops": {"Conv_a": {"executors": {"nss": {}}}}})", qnn) == "c");
  CHECK(told(R"({"ops": {"Conv_a": {"executors": {"host": {}, "htp": {}}}}})", qnn) == "");
  CHECK(told(R"({"ops": {"Conv_a": {"executors": {"host": {}}}}})", qnn) == "");
  CHECK(told(R"({"ops": {"Conv_a": {"executors": {}}}})", qnn) == "");
  CHECK(told("{}", qnn) == "");
}

TEST_CASE("counts, critical layers and rows come from ops alone") {
  const json::Value report = parsed(R"({"ops": {
    "Late_x": {"executors": {"nss": {"status": "error", "failure_report": {"type": "error", "summary": "no"}}}, "_orig_index": 2, "mlir_location": "3:1"},
    "Conv_a": {"executors": {"nss": {"status": "error"}, "css": {"status": "success", "timing": {"runtime_ms": 1.23449}}}, "_orig_index": 0, "_node_index": 7, "recommended_executor": "css"},
    "Relu_b": {"executors": {"css": {"status": "difference"}, "host": {"status": "unknown"}}, "_orig_index": 1, "recommended_executor": "null"},
    "Skip_c": {"executors": {}, "recommended_executor": null}
  }})");
  const Overview all = overview(ops_of(report), executors_of(report), RowOrder::OrigIndex);
  CHECK(all.summary.total_layers == 3);
  CHECK(all.summary.success == 1);
  CHECK(all.summary.difference == 1);
  CHECK(all.summary.error == 2);
  CHECK(all.summary.executors[1].first_working == 1);
  REQUIRE(all.summary.executors[1].timing);
  CHECK(all.summary.executors[1].timing->avg_ms == 1.234);
  CHECK(all.summary.executors[1].timing->samples == 1);
  REQUIRE(all.critical.size() == 1);
  CHECK(all.critical[0].layer_id == "Late_x");
  REQUIRE(all.rows.size() == 4);
  CHECK(all.rows[0].layer_id == "Conv_a");
  CHECK(all.rows[0].statuses == std::vector<std::string>{"error", "success", "-"});
  CHECK(all.rows[0].recommended == "css");
  CHECK(all.rows[1].statuses[2] == "-");
  CHECK(all.rows[1].recommended == "-");
  CHECK(all.rows[3].layer_id == "Skip_c");
  // By node index only the one that has one is placed; the rest keep the file's order.
  const Overview by_node = overview(ops_of(report), executors_of(report), RowOrder::NodeIndex);
  CHECK(by_node.rows[0].layer_id == "Conv_a");
  CHECK(by_node.rows[1].layer_id == "Late_x");

  const json::Value out = discovery_report(all);
  CHECK(json::python_text(out) ==
        "{'summary': {'total_layers': 3, 'status_counts': {'success': 1, 'difference': 1, 'error': "
        "2}, 'executor_counts': {'nss': 0, "
        "'css': 1, 'host': 0}, 'timing_summary': {'css': {'avg_ms': 1.234, 'min_ms': 1.234, "
        "'max_ms': 1.234, 'samples': 1}}}, "
        "'critical_failures': [{'layer_id': 'Late_x', 'error_details': {'nss': {'status': 'error', "
        "'report': {'type': 'error', "
        "'summary': 'no'}}}, 'node_index': None, 'mlir_location': '3:1'}]}");
}

TEST_CASE("timing is averaged over layers and keeps least and greatest") {
  const json::Value report = parsed(R"({"ops": {
    "A_a": {"executors": {"nss": {"status": "success", "timing": {"runtime_ms": 1.0}}}},
    "B_b": {"executors": {"nss": {"status": "difference", "timing": {"runtime_ms": 2.0005}}}}}})");
  const Overview all = overview(ops_of(report), {"nss"}, RowOrder::OrigIndex);
  REQUIRE(all.summary.executors[0].timing);
  CHECK(all.summary.executors[0].timing->avg_ms == 1.5);
  CHECK(all.summary.executors[0].timing->max_ms == round3(2.0005));
  CHECK(all.summary.executors[0].timing->min_ms == 1.0);
  CHECK(all.critical.empty());
}

TEST_CASE("entries of another model come last whatever their old indices were") {
  const json::Value report = parsed(R"({"ops": {
    "Gone_g": {"executors": {}, "_orig_index": 0, "_node_index": 0, "_not_in_model": true},
    "Conv_a": {"executors": {}, "_orig_index": 5, "_node_index": 5}}})");
  CHECK(overview(ops_of(report), {"nss"}, RowOrder::OrigIndex).rows.back().layer_id == "Gone_g");
  CHECK(overview(ops_of(report), {"nss"}, RowOrder::NodeIndex).rows.back().layer_id == "Gone_g");
}

TEST_CASE("a recommendation may be missing, null, empty or the text null: none of them is one") {
  CHECK_FALSE(recommendation_in(parsed("{}")));
  CHECK_FALSE(recommendation_in(parsed(R"({"recommended_executor": null})")));
  CHECK_FALSE(recommendation_in(parsed(R"({"recommended_executor": ""})")));
  CHECK_FALSE(recommendation_in(parsed(R"({"recommended_executor": "null"})")));
  CHECK(recommendation_in(parsed(R"({"recommended_executor": "css"})")) == "css");
}

TEST_CASE("rounding to three decimals goes by the exact value") {
  CHECK(round3(1.0005) == 1.0);  // the double lies below
  CHECK(round3(0.0625) == 0.062);
  CHECK(round3(2.5) == 2.5);
}
