#include "coordinator/report/report_state.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

using namespace layerfarm;
using namespace layerfarm::coordinator::report;

namespace {

ReportPlan plan_of(std::size_t layers, std::vector<std::string> executors = {"htp", "host"}) {
  ReportPlan plan;
  plan.model_name = "m";
  plan.chip.name = "SM8550";
  for (const std::string& name : executors) {
    plan.chip.executors.push_back(
        {.name = name, .tolerance = {0.01, 0.02, 0.001}, .evidence = domain::Evidence::Emulator});
  }
  plan.chip.executors.back().evidence = domain::Evidence::Hardware;
  plan.chip.executors.back().same_engine = true;
  for (std::size_t i = 0; i < layers; ++i) {
    LayerFacts facts;
    facts.id = "Conv_" + std::to_string(i);
    facts.node_name = "n" + std::to_string(i);
    facts.orig_index = static_cast<std::uint32_t>(i);
    facts.node_index = static_cast<std::uint32_t>(i);
    facts.mac_count = 10;
    facts.location = std::to_string(10 + i) + ":10";
    plan.layers.push_back(std::move(facts));
  }
  json::Object settings;
  settings.set("dims", json::Object{});
  plan.settings = std::move(settings);
  plan.reference = "onnxruntime 1.32.0";
  plan.tools = {{"qnn", "2.7.0"}};
  return plan;
}

CaseResult result(domain::Status status, std::optional<double> runtime_ms = std::nullopt) {
  CaseResult out;
  out.status = status;
  if (status == domain::Status::Error)
    out.failure = Failure{true, "ToolError", "no such op", "compile"};
  if (runtime_ms) out.timing = Timing{*runtime_ms, *runtime_ms, *runtime_ms, 0, 1, "run"};
  return out;
}

constexpr auto kSuccess = domain::Status::Success;
constexpr auto kDifference = domain::Status::Difference;
constexpr auto kError = domain::Status::Error;

json::Value parsed(const std::string& text) {
  const auto value = json::parse(text, "test");
  REQUIRE_MESSAGE(value, value.error().text());
  return *value;
}

json::Value report_of(const ReportState& state, Phase phase = Phase::Finished) {
  return parsed(state.texts(phase).report);
}

const json::Value& entry_of(const json::Value& report, const std::string& id) {
  const json::Value* entry = report.get("ops")->get(id);
  REQUIRE(entry);
  return *entry;
}

std::string keys_of(const json::Value& value) {
  std::string out;
  for (const json::Member& member : *value.object()) out += (out.empty() ? "" : " ") + member.key;
  return out;
}

std::string recommended(const json::Value& report, const std::string& id) {
  return recommendation_in(entry_of(report, id)).value_or("null");
}

}  // namespace

TEST_CASE(
    "a finished report has the keys of a fresh discovery in their order, ours between name and "
    "closing keys") {
  ReportState state(plan_of(2));
  state.settle(0, 0, result(kSuccess));
  state.settle(0, 1, result(kSuccess));
  state.settle(1, 0, result(kError));
  const json::Value report = report_of(state);
  CHECK(keys_of(report) ==
        "version default_tolerance ops model_name _chip _executors _evidence _same_engine "
        "_settings _default_tolerances _reference "
        "_tools _assignments discovery_report has_critical_failures final_report_text");
  CHECK(keys_of(entry_of(report, "Conv_0")) ==
        "executors _node_index _orig_index mac_count mlir_location recommended_executor");
  CHECK(report.get_text("version") == "1.1");
  CHECK(json::python_text(*report.get("default_tolerance")) ==
        "{'fp_avg_tol': 0.01, 'fp_max_tol': 0.02, 'fp_abs_tol_frac': 0.001}");
  CHECK(json::python_text(*report.get("_evidence")) == "{'htp': 'emulator', 'host': 'hardware'}");
  CHECK(json::python_text(*report.get("_same_engine")) == "['host']");
  CHECK(json::python_text(*report.get("_assignments")) ==
        "{'Conv_0': {'node_name': 'n0', 'executor': 'htp'}, 'Conv_1': {'node_name': 'n1', "
        "'executor': None}}");
  CHECK(report.get("has_critical_failures")->flag() == true);
  CHECK(report.get("discovery_report")
            ->get("critical_failures")
            ->array()
            ->front()
            .get_text("layer_id") == "Conv_1");
  CHECK(report.get_text("final_report_text")
            .find("  Layer   HTP          HOST         Recommended\n" +
                  std::string(6 + 24 + 25, '-')) != std::string::npos);
}

TEST_CASE("while a run goes on the closing keys are left out, and layers without results too") {
  ReportState state(plan_of(3));
  state.settle(1, 1, result(kSuccess));
  const json::Value report = report_of(state, Phase::Running);
  CHECK(report.get("ops")->object()->size() == 1);
  for (const char* key : {"discovery_report", "has_critical_failures", "final_report_text"})
    CHECK(report.get(key) == nullptr);
}

TEST_CASE("any order of arrival gives the same bytes") {
  CHECK(rc::check([] {
    const bool skip_mode = *rc::gen::arbitrary<bool>();
    ReportPlan plan = plan_of(5);
    plan.skip_mode = skip_mode;
    plan.rule = *rc::gen::element(Rule::Priority, Rule::Timing);
    struct Arrival {
      std::size_t layer;
      std::size_t executor;
      int kind;
    };
    std::vector<Arrival> arrivals;
    for (std::size_t layer = 0; layer < 5; ++layer) {
      for (std::size_t executor = 0; executor < 2; ++executor)
        arrivals.push_back({layer, executor, *rc::gen::inRange(0, 5)});
    }
    const auto fold = [&](const std::vector<Arrival>& order) {
      ReportState state(plan);
      for (const Arrival& a : order) {
        if (a.kind == 4) {
          state.unsettle(a.layer, a.executor, "worker lost");
        } else if (a.kind < 3) {
          state.settle(
              a.layer, a.executor,
              result(static_cast<domain::Status>(a.kind), 1.0 + static_cast<double>(a.layer)));
        }
      }
      const Texts texts = state.texts(Phase::Finished);
      return texts.report + texts.compiler + texts.macs;
    };
    std::vector<Arrival> shuffled = arrivals;
    for (std::size_t i = shuffled.size(); i > 1; --i) {
      std::swap(shuffled[i - 1],
                shuffled[static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(i)))]);
    }
    RC_ASSERT(fold(arrivals) == fold(shuffled));
  }));
}

TEST_CASE("a report that is taken over and written again is the same") {
  ReportState first(plan_of(3));
  first.settle(0, 0, result(kError));
  first.settle(0, 1, result(kDifference, 2.5));
  first.settle(1, 0, result(kSuccess, 1.25));
  first.unsettle(2, 0, "board silent");
  const Texts texts = first.texts(Phase::Finished);
  ReportState second(plan_of(3));
  const Takeover takeover = second.take_over(parsed(texts.report));
  CHECK(takeover.edited.empty());
  CHECK(takeover.tolerances.empty());
  CHECK(takeover.set_aside.empty());
  CHECK(second.texts(Phase::Finished).report == texts.report);
  CHECK(second.texts(Phase::Finished).compiler == texts.compiler);
  CHECK(second.unsettled() == 1);
  CHECK(second.has_old_success(1));
  CHECK_FALSE(second.has_old_success(0));
}

TEST_CASE("old results stay where this run tests nothing, a new result replaces the old one") {
  ReportState old(plan_of(2));
  old.settle(0, 0, result(kDifference));
  old.settle(0, 1, result(kSuccess));
  old.settle(1, 0, result(kSuccess));
  ReportState state(plan_of(2));
  state.take_over(report_of(old));
  state.settle(0, 0, result(kSuccess));
  const json::Value report = report_of(state);
  CHECK(entry_of(report, "Conv_0").get("executors")->get("htp")->get_text("status") == "success");
  CHECK(entry_of(report, "Conv_0").get("executors")->get("host")->get_text("status") == "success");
  CHECK(recommended(report, "Conv_0") == "htp");
  CHECK(recommended(report, "Conv_1") == "htp");
}

TEST_CASE("unknown keys are kept at every level that is not replaced") {
  json::Value old = parsed(R"({"ops": {
      "Conv_0": {"executors": {"host": {"status": "success", "theirs": 1}}, "note": "mine", "recommended_executor": "host"},
      "Gone_x": {"executors": {"host": {"status": "success"}}, "_orig_index": 0, "mlir_location": "10:10", "extra": [1], "recommended_executor": "host"}},
    "owner": {"name": "me"}, "final_report_text": "old"})");
  ReportState state(plan_of(1));
  state.take_over(old);
  state.settle(0, 0, result(kError));
  const json::Value report = report_of(state);
  CHECK(report.get("owner")->get_text("name") == "me");
  CHECK(entry_of(report, "Conv_0").get_text("note") == "mine");
  CHECK(entry_of(report, "Conv_0").get("executors")->get("host")->get("theirs")->integer() == 1);
  // An entry that the model no longer has comes last, says so, and is not in the compiler file.
  const json::Value& gone = entry_of(report, "Gone_x");
  CHECK(std::prev(report.get("ops")->object()->end())->key == "Gone_x");
  CHECK(gone.get("_not_in_model")->flag() == true);
  CHECK(gone.get("extra") != nullptr);
  CHECK(gone.get("_orig_index")->integer() == 0);
  CHECK(recommended(report, "Gone_x") == "host");
  const Texts texts = state.texts(Phase::Finished);
  CHECK(texts.warnings.empty());
  CHECK(texts.compiler.find("\"10:10\": {\n      \"executor\": \"host\"") != std::string::npos);
  CHECK(report.get("_assignments")->get("Gone_x") == nullptr);
  // And it stays as it is through another run.
  ReportState again(plan_of(1));
  again.take_over(report);
  CHECK(again.texts(Phase::Finished).report == texts.report);
}

TEST_CASE("a layer that comes back into the model loses the mark") {
  ReportState state(plan_of(1));
  state.take_over(parsed(
      R"({"ops": {"Conv_0": {"executors": {"host": {"status": "success"}}, "_not_in_model": true}}})"));
  CHECK(entry_of(report_of(state), "Conv_0").get("_not_in_model") == nullptr);
}

TEST_CASE("hand edits are kept whatever this run tests, marked ones and detected ones") {
  const json::Value old = parsed(R"({"ops": {
    "Conv_0": {"executors": {"htp": {"status": "success"}}, "recommended_executor": "host"},
    "Conv_1": {"executors": {"htp": {"status": "success"}}, "recommended_executor": "htp", "_edited": true},
    "Conv_2": {"executors": {"htp": {"status": "success"}}, "recommended_executor": null},
    "Conv_3": {"executors": {"htp": {"status": "success"}}, "recommended_executor": "htp"}}})");
  ReportState state(plan_of(4));
  CHECK(state.take_over(old).edited == std::vector<std::string>{"Conv_0", "Conv_1", "Conv_2"});
  for (std::size_t i = 0; i < 4; ++i) {
    state.settle(i, 0, result(kError));
    state.settle(i, 1, result(kDifference));
  }
  const json::Value report = report_of(state);
  CHECK(recommended(report, "Conv_0") == "host");
  CHECK(recommended(report, "Conv_1") == "htp");
  CHECK(recommended(report, "Conv_2") == "null");
  CHECK(recommended(report, "Conv_3") == "host");
  CHECK(entry_of(report, "Conv_0").get("_edited")->flag() == true);
  CHECK(entry_of(report, "Conv_3").get("_edited") == nullptr);
  // Seen once more they are no news; an edit that was taken back is gone.
  CHECK(state.take_over(report).edited.empty());
  json::Value undone = report;
  json::Object& entry = *undone.object()->find("ops")->object()->find("Conv_1")->object();
  entry.erase("_edited");
  entry.set("recommended_executor", "host");
  state.take_over(undone);
  CHECK(entry_of(report_of(state), "Conv_1").get("_edited") == nullptr);
}

TEST_CASE("edited tolerances win over flags and chip, and a change is told") {
  ReportState state(plan_of(2));
  CHECK(state.tolerance(0, 0) == domain::Tolerance{0.01, 0.02, 0.001});
  const json::Value old = parsed(
      R"({"ops": {"Conv_0": {"executors": {}, "tolerance_used": {"fp_max_tol": 0.5, "mine": 1}}}})");
  CHECK(state.take_over(old).tolerances == std::vector<std::size_t>{0});
  CHECK(state.tolerance(0, 0) == domain::Tolerance{0.01, 0.5, 0.001});
  CHECK(state.tolerance(1, 1) == domain::Tolerance{0.01, 0.02, 0.001});
  CHECK(state.edited_tolerance(0).fp_max_tol == 0.5);
  CHECK_FALSE(state.edited_tolerance(0).fp_avg_tol);
  CHECK_FALSE(state.edited_tolerance(1).fp_max_tol);
  CHECK(state.take_over(old).tolerances.empty());
  CHECK(json::python_text(*entry_of(report_of(state), "Conv_0").get("tolerance_used")) ==
        "{'fp_max_tol': 0.5, 'mine': 1}");
  CHECK(state.take_over(parsed(R"({"ops": {"Conv_0": {"executors": {}}}})")).tolerances ==
        std::vector<std::size_t>{0});
}

TEST_CASE("skip mode drops lower executors from an old report too") {
  ReportState old(plan_of(2));
  for (std::size_t i = 0; i < 2; ++i) {
    old.settle(i, 0, result(i == 0 ? kSuccess : kDifference));
    old.settle(i, 1, result(kSuccess));
  }
  ReportPlan plan = plan_of(2);
  plan.skip_mode = true;
  ReportState state(plan);
  state.take_over(report_of(old));
  const json::Value report = report_of(state);
  CHECK(keys_of(*entry_of(report, "Conv_0").get("executors")) == "htp");
  CHECK(keys_of(*entry_of(report, "Conv_1").get("executors")) == "htp host");
}

TEST_CASE("skipped executors leave every entry, and what they recommended with them") {
  ReportState old(plan_of(1));
  old.settle(0, 0, result(kSuccess));
  old.settle(0, 1, result(kSuccess));
  ReportPlan plan = plan_of(1);
  plan.skip_executors = {"htp"};
  ReportState state(plan);
  state.take_over(report_of(old));
  const json::Value report = report_of(state);
  CHECK(keys_of(*entry_of(report, "Conv_0").get("executors")) == "host");
  CHECK(recommended(report, "Conv_0") == "host");
}

TEST_CASE("layers skipped by type have an empty entry; fused pooling has no recommendation") {
  ReportPlan plan = plan_of(2);
  plan.layers[0].skipped = true;
  plan.layers[1].no_recommendation = true;
  plan.layers[1].node_index.reset();
  plan.layers[1].marks = {{"_quantized", false}};
  ReportState state(plan);
  state.settle(1, 0, result(kSuccess));
  const json::Value report = report_of(state);
  CHECK(entry_of(report, "Conv_0").get("executors")->object()->empty());
  CHECK(entry_of(report, "Conv_0").get("recommended_executor")->is_null());
  CHECK(entry_of(report, "Conv_1").get("recommended_executor")->is_null());
  CHECK(entry_of(report, "Conv_1").get("_node_index") == nullptr);
  CHECK(entry_of(report, "Conv_1").get("_quantized")->flag() == false);
  CHECK(report.get_text("final_report_text").find("Total layers tested: 1\n") != std::string::npos);
  // A mark of ours is not an unknown key: a later run without it drops it.
  ReportState later(plan_of(2));
  later.take_over(report);
  CHECK(later.texts(Phase::Finished).warnings.empty());
}

TEST_CASE("results of other settings leave the file, hand edits stay, and the reason is told") {
  ReportState old(plan_of(2));
  old.settle(0, 0, result(kSuccess));
  old.settle(1, 0, result(kSuccess));
  json::Value file = report_of(old);
  file.object()->find("ops")->object()->find("Conv_0")->object()->set("recommended_executor",
                                                                      "host");
  ReportPlan plan = plan_of(2);
  json::Object dims;
  dims.set("batch", 4);
  plan.settings.object()->set("dims", dims);
  ReportState state(plan);
  const Takeover takeover = state.take_over(file);
  CHECK(takeover.set_aside == "dims: {} there, {'batch': 4} here");
  CHECK(takeover.edited == std::vector<std::string>{"Conv_0"});
  const json::Value report = report_of(state);
  CHECK(report.get("ops")->object()->size() == 1);
  CHECK(entry_of(report, "Conv_0").get("executors")->object()->empty());
  CHECK(recommended(report, "Conv_0") == "host");
  CHECK_FALSE(state.has_old_success(0));
  CHECK(takeover.results_set_aside == 2);
  CHECK_FALSE(takeover.no_settings);
}

TEST_CASE("results of another content of the model leave the file too, where both are known") {
  ReportPlan plan = plan_of(1);
  plan.model_digest = "aa";
  ReportState old(plan);
  old.settle(0, 0, result(kSuccess));
  json::Value file = report_of(old);
  CHECK(file.get_text("_model_digest") == "aa");
  ReportState same(plan);
  CHECK(same.take_over(file).set_aside.empty());
  CHECK(same.has_old_success(0));
  plan.model_digest = "bb";
  ReportState other(plan);
  CHECK(other.take_over(file).set_aside == "the model's content has changed since");
  CHECK_FALSE(other.has_old_success(0));
  CHECK(report_of(other).get_text("_model_digest") == "bb");
  // As an older version wrote it.
  file.object()->erase("_model_digest");
  ReportState silent(plan);
  CHECK(silent.take_over(file).set_aside.empty());
}

TEST_CASE("each executor of a long list can be recommended") {
  std::vector<std::string> executors;
  for (int i = 0; i < 40; ++i) executors.push_back("e" + std::to_string(i));
  ReportState state(plan_of(1, executors));
  for (std::size_t i = 0; i < 40; ++i) state.settle(0, i, result(i < 39 ? kError : kSuccess));
  CHECK(recommended(report_of(state), "Conv_0") == "e39");
}

TEST_CASE("a person's word about a layer that other settings do not make comes back with it") {
  json::Value file = parsed(R"({"_settings": {"layer_unit": "qdq"}, "ops": {
    "Conv_0": {"executors": {"host": {"status": "success"}}, "recommended_executor": "htp"},
    "Conv_1": {"executors": {"host": {"status": "success"}}, "recommended_executor": "host",
      "tolerance_used": {"fp_max_tol": 0.5}},
    "Conv_2": {"executors": {"host": {"status": "success"}}, "recommended_executor": "host"}}})");
  ReportState other(plan_of(0));
  CHECK(other.take_over(file).results_set_aside == 3);
  const json::Value between = report_of(other);
  CHECK(keys_of(*between.get("ops")) == "Conv_0 Conv_1");
  CHECK(entry_of(between, "Conv_0").get("_not_in_model")->flag() == true);
  CHECK(entry_of(between, "Conv_0").get("executors")->object()->empty());
  ReportPlan plan = plan_of(3);
  plan.settings.object()->set("layer_unit", "qdq");
  ReportState back(plan);
  CHECK(back.take_over(between).edited == std::vector<std::string>{"Conv_0"});
  back.settle(0, 1, result(kSuccess));
  CHECK(recommended(report_of(back), "Conv_0") == "htp");
  CHECK(back.tolerance(1, 0).fp_max_tol == 0.5);
}

TEST_CASE("a report of another chip is not taken over at all") {
  ReportState old(plan_of(1));
  old.settle(0, 0, result(kSuccess));
  ReportPlan plan = plan_of(1);
  plan.chip.name = "SM8750";
  ReportState state(plan);
  CHECK(state.take_over(report_of(old)).set_aside == "chip: SM8550 there, SM8750 here");
  CHECK(report_of(state).get("ops")->object()->empty());
}

TEST_CASE("a report without settings, as the original writes it, is taken as it is") {
  ReportState state(plan_of(1, {"nss", "css"}));
  const Takeover takeover = state.take_over(parsed(
      R"({"ops": {"Conv_0": {"executors": {"css": {"status": "success"}, "host": {"status": "success"}},
      "recommended_executor": "css"}, "Bad": 3}})"));
  CHECK(takeover.set_aside.empty());
  CHECK(takeover.no_settings);
  const json::Value report = report_of(state);
  CHECK(keys_of(*entry_of(report, "Conv_0").get("executors")) == "css host");
  CHECK(report.get("ops")->get("Bad") == nullptr);
  CHECK(report.get_text("final_report_text").find("NSS          CSS          HOST ") !=
        std::string::npos);
}

TEST_CASE("a plan without settings keeps those of the file") {
  ReportState old(plan_of(1));
  old.settle(0, 0, result(kSuccess));
  const json::Value file = report_of(old);
  ReportPlan plan = plan_of(1);
  plan.settings = nullptr;
  ReportState state(plan);
  CHECK(state.take_over(file).set_aside.empty());
  CHECK(*report_of(state).get("_settings") == *file.get("_settings"));
}

TEST_CASE("settings are compared key by key") {
  const json::Value here = parsed(R"({"a": 1, "b": "x"})");
  CHECK(settings_difference(here, here).empty());
  CHECK(settings_difference(json::Value(), here).empty());
  CHECK(settings_difference(parsed(R"({"b": "y", "c": null})"), here) ==
        "a: not set there, 1 here; b: 'y' there, 'x' here; c: None there, not set here");
}

TEST_CASE("a verdict counts over being unsettled, whichever came first") {
  ReportState state(plan_of(1));
  state.settle(0, 0, result(kSuccess));
  state.unsettle(0, 0, "late");
  state.unsettle(0, 1, "no worker");
  CHECK(state.unsettled() == 1);
  CHECK(json::python_text(*report_of(state).get("_unsettled")) ==
        "{'Conv_0': {'host': 'no worker'}}");
  state.settle(0, 1, result(kSuccess));
  CHECK(state.unsettled() == 0);
  CHECK(report_of(state).get("_unsettled") == nullptr);
}

TEST_CASE("the revision grows only when the texts change") {
  ReportState state(plan_of(1));
  state.settle(0, 0, result(kSuccess));
  const std::uint64_t before = state.revision();
  state.settle(0, 0, result(kSuccess));
  CHECK(state.revision() == before);
  state.settle(0, 0, result(kSuccess, 2.0));
  CHECK(state.revision() > before);
}

TEST_CASE("two layers on one line are warned of and left out of the compiler file") {
  ReportPlan plan = plan_of(2);
  plan.layers[1].location = plan.layers[0].location;
  ReportState state(plan);
  state.settle(0, 0, result(kSuccess));
  state.settle(1, 0, result(kSuccess));
  const Texts texts = state.texts(Phase::Running);
  CHECK(texts.warnings.size() == 1);
  CHECK(texts.compiler.find("10:10") == std::string::npos);
}

TEST_CASE("timing decides the recommendation when the plan says so") {
  ReportPlan plan = plan_of(1);
  plan.rule = Rule::Timing;
  {
    // An emulator's time says nothing beside hardware's.
    plan.chip.executors[1].evidence = domain::Evidence::Hardware;
    ReportState mixed(plan);
    mixed.settle(0, 0, result(kSuccess, 5.0));
    mixed.settle(0, 1, result(kSuccess, 1.0));
    CHECK(recommended(report_of(mixed), "Conv_0") == "htp");
  }
  plan.chip.executors[0].evidence = domain::Evidence::Hardware;
  ReportState state(plan);
  state.settle(0, 0, result(kSuccess, 5.0));
  state.settle(0, 1, result(kSuccess, 1.0));
  CHECK(recommended(report_of(state), "Conv_0") == "host");
  CHECK(state.overview().summary.executors[1].timing->avg_ms == 1.0);
  CHECK(state.plan().rule == Rule::Timing);
  CHECK(state.ops().front().results.size() == 2);
}

TEST_CASE("whole-model numbers are in the text") {
  ReportState state(plan_of(1));
  state.settle(0, 0, result(kSuccess));
  CHECK(state.texts(Phase::Finished, WholeModel{0.5, std::nullopt, std::nullopt})
            .report.find("--- Full Model Comparison ---") != std::string::npos);
}
