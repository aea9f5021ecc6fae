#include "coordinator/report/edit.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace layerfarm::coordinator::report;

namespace {

json::Value sample() {
  const auto value = json::parse(R"({"default_tolerance": {"fp_avg_tol": 0.01}, "ops": {
    "Conv_1": {"executors": {"nss": {"status": "success"}}, "_node_index": 1, "recommended_executor": "nss", "mine": 1},
    "Conv_12": {"executors": {"css": {"status": "success"}}, "_node_index": 0, "recommended_executor": "css", "tolerance_used": {"fp_max_tol": 0.5}},
    "Relu_r": {"executors": {}, "recommended_executor": null}}, "model_name": "m", "other": [1]})",
                                 "sample");
  REQUIRE(value);
  return *value;
}

using Ids = std::vector<std::string>;

}  // namespace

TEST_CASE("an exact id beats a part of one; ALL, patterns and parts select more") {
  const json::Value report = sample();
  CHECK(select_layers(report, "conv_1") == Ids{"Conv_1"});
  CHECK(select_layers(report, "Conv") == Ids{"Conv_1", "Conv_12"});
  CHECK(select_layers(report, "all") == Ids{"Conv_1", "Conv_12", "Relu_r"});
  CHECK(select_layers(report, "CONV_*") == Ids{"Conv_1", "Conv_12"});
  CHECK(select_layers(report, "conv_1?") == Ids{"Conv_12"});
  CHECK(select_layers(report, "nothing").empty());
  CHECK(select_layers(report, "x*").empty());
  CHECK(select_layers(json::Value(), "all").empty());
}

TEST_CASE("patterns match as in a shell") {
  CHECK(matches_pattern("abc", "a*c"));
  CHECK(matches_pattern("abcbc", "a*bc"));
  CHECK(matches_pattern("", "*"));
  CHECK(matches_pattern("a[1]", "a[[]1]"));
  CHECK(matches_pattern("a5", "a[0-9]"));
  CHECK(matches_pattern("ax", "a[!0-9]"));
  CHECK(matches_pattern("a]", "a[]]"));
  CHECK(matches_pattern("a[", "a["));
  CHECK(matches_pattern("abc", "??c"));
  CHECK_FALSE(matches_pattern("a5", "a[!0-9]"));
  CHECK_FALSE(matches_pattern("abc", "ab"));
  CHECK_FALSE(matches_pattern("ab", "abc"));
  CHECK_FALSE(matches_pattern("abd", "a*c"));
}

TEST_CASE("an executor must be one of the report's, a tolerance a number from 0 on") {
  const json::Value report = sample();
  CHECK(check_edit(report, {.executor = "host"}));
  CHECK(check_edit(report, {.executor = "HOST"})->executor == "host");
  CHECK(check_edit(report, {.executor = "null"})->executor == "null");
  const auto wrong = check_edit(report, {.executor = "nsss"});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().text() ==
        "'nsss' is no executor of this report's chip; choose one of nss, css, host, null or auto");
  // What is tested in an old entry only is no executor of the chip.
  const auto gone = check_edit(
      *json::parse(
          R"({"_chip": "SM8550", "_executors": ["htp", "host"], "ops": {"x": {"executors": {"old": {}}}}})",
          "gone"),
      {.executor = "old"});
  REQUIRE_FALSE(gone);
  CHECK(gone.error().text() ==
        "'old' is no executor of chip SM8550; choose one of htp, host, null or auto");
  CHECK_FALSE(check_edit(report, {.fp_avg_tol = -1.0}));
  CHECK_FALSE(check_edit(report, {.fp_max_tol = std::nan("")}));
  CHECK(check_edit(report, {.fp_avg_tol = 0.0}));
}

TEST_CASE("an edited recommendation is marked, the text is made anew, all else stays") {
  json::Value report = sample();
  apply_edit(report, {"Conv_1", "Relu_r"}, {.executor = "host"});
  const json::Value& entry = *report.get("ops")->get("Conv_1");
  CHECK(entry.get_text("recommended_executor") == "host");
  CHECK(entry.get("_edited")->flag() == true);
  CHECK(entry.get("mine")->integer() == 1);
  CHECK(report.get("other") != nullptr);
  CHECK(report.get_text("final_report_text")
            .find("\n  Conv_1   success      -            -            host\n") !=
        std::string::npos);
  CHECK(report.get("discovery_report") == nullptr);
}

TEST_CASE("null is stored as JSON null") {
  json::Value report = sample();
  apply_edit(report, {"Conv_1"}, {.executor = "null"});
  CHECK(report.get("ops")->get("Conv_1")->get("recommended_executor")->is_null());
}

TEST_CASE("a tolerance edit keeps the other bound") {
  json::Value report = sample();
  apply_edit(report, {"Conv_1", "Conv_12"}, {.fp_avg_tol = 0.25});
  CHECK(json::python_text(*report.get("ops")->get("Conv_1")->get("tolerance_used")) ==
        "{'fp_avg_tol': 0.25}");
  CHECK(json::python_text(*report.get("ops")->get("Conv_12")->get("tolerance_used")) ==
        "{'fp_max_tol': 0.5, 'fp_avg_tol': 0.25}");
  CHECK(report.get("ops")->get("Conv_1")->get("_edited") == nullptr);
}

TEST_CASE("the assignments by node follow, and an unfinished run's text is left to the run") {
  json::Value report = sample();
  report.object()->set("_chip", "SM8550");
  json::Object assignments;
  json::Object node;
  node.set("node_name", "n1");
  node.set("executor", "nss");
  assignments.set("Conv_1", node);
  report.object()->set("_assignments", assignments);
  apply_edit(report, {"Conv_1", "Conv_12", "missing"}, {.executor = "host"});
  CHECK(json::python_text(*report.get("_assignments")) ==
        "{'Conv_1': {'node_name': 'n1', 'executor': 'host'}, 'Conv_12': {'executor': 'host'}}");
  apply_edit(report, {"Conv_1"}, {.executor = "null"});
  CHECK(report.get("_assignments")->get("Conv_1")->get("executor")->is_null());
  CHECK(report.get("final_report_text") == nullptr);
}

TEST_CASE("what was changed is said for one layer and for several") {
  json::Value report = sample();
  const Edit edit{.executor = "css", .fp_avg_tol = 0.5};
  apply_edit(report, {"Conv_1"}, edit);
  CHECK(edit_lines(report, {"Conv_1"}, edit, "c.json") ==
        "Updated recommended_executor for 'Conv_1' to 'css'\nUpdated tolerance for 'Conv_1' to "
        "{'fp_avg_tol': 0.5}\nUpdated compiler "
        "JSON: c.json\n");
  CHECK(edit_lines(report, {"Conv_1", "Conv_12"}, edit, "c.json") ==
        "Updated recommended_executor for 2 layer(s) to 'css'\nUpdated tolerance for 2 "
        "layer(s)\nUpdated compiler JSON: c.json\n");
  CHECK(edit_lines(report, {"Conv_1"}, {}, "c.json").find("No changes made") == 0);
}

TEST_CASE("a bound that does nothing to a layer's results is said") {
  const json::Value report = *json::parse(R"({"ops": {
    "ArgMax_i": {"executors": {"a": {"status": "success", "_num_elements": 2, "_num_integers": 2}}},
    "Conv_c": {"executors": {"a": {"status": "success", "_num_elements": 2, "_mean_rel_diff": 0.0}}},
    "Less_b": {"executors": {"a": {"status": "success", "_num_elements": 2}}},
    "Old_o": {"executors": {"a": {"status": "success"}}}}})",
                                          "kinds");
  const std::vector<std::string> all = {"ArgMax_i", "Conv_c", "Less_b", "Old_o"};
  CHECK(idle_bound_lines(report, all, {.fp_max_tol = 0.5, .fp_abs_tol_frac = 0.5}) ==
        "fp_max_tol, fp_abs_tol_frac has no effect on 2 layer(s), since no result of them has "
        "floats: ArgMax_i, Less_b\n");
  CHECK(idle_bound_lines(report, all, {.int_tol = 0}) ==
        "int_tol has no effect on 2 layer(s), since no result of them has integers: Conv_c, "
        "Less_b\n");
  CHECK(idle_bound_lines(report, all, {.executor = "a"}).empty());
}

TEST_CASE("the list can be filtered, and says when nothing fits") {
  const json::Value report = sample();
  const std::string all = list_layers(report, "");
  CHECK(all.find("Per-Layer Status:\n  Layer    NSS ") == 0);
  CHECK(all.find("  Conv_12") < all.find("  Conv_1 "));  // by node index
  CHECK(all.find("\n\nTotal: 3 layer(s)\n") != std::string::npos);
  CHECK(list_layers(report, "RELU").find("\n\nTotal: 1 layer(s) (filtered from 3)\n") !=
        std::string::npos);
  CHECK(list_layers(report, "zzz") ==
        "No layers match 'zzz'.\nAvailable layers: Conv_1, Conv_12, Relu_r\n");
  CHECK(list_layers(json::Value(), "") == "No layers found in config.\n");
}
