#include "coordinator/app/stored_report.h"

#include <doctest/doctest.h>

#include "coordinator/app/recovery.h"
#include "coordinator/app/result_list.h"
#include "coordinator/store/sqlite_store.h"
#include "shared/base/blob_folder.h"
#include "shared/base/files.h"
#include "shared/protocol/codec.h"

using namespace layerfarm;
using namespace layerfarm::coordinator;
using namespace layerfarm::coordinator::app;

namespace {

/// A model of two layers, one chip without prepare and compile, and a report folder.
struct Bench {
  base::ScratchFolder folder =
      *base::ScratchFolder::make(std::filesystem::temp_directory_path(), "layerfarm-test");
  std::filesystem::path cache = folder.path() / "cache";
  std::filesystem::path out = folder.path() / "out";
  ReportSetup setup;
  base::Digest analysis;

  Bench() {
    std::filesystem::create_directories(out);
    domain::ModelAnalysis model;
    for (const char* op : {"Conv", "Relu"}) {
      domain::Layer layer;
      layer.op_type = op;
      layer.id = std::string(op) + "_y";
      layer.orig_index = static_cast<std::uint32_t>(model.layers.size());
      layer.node_index = model.operators++;
      layer.signature = base::digest_of(op);
      layer.loose_signature = layer.signature;
      model.layers.push_back(layer);
    }
    analysis = *base::BlobFolder(cache / "blobs").put(protocol::encode_analysis(model));
    auto chip = std::make_shared<plan::PlanChip>();
    chip->spec = *domain::parse_chip(
        R"({"chip_name":"c","toolchain":"null","executors":[{"name":"e0","evidence":"stand-in"}]})",
        "c.json");
    chip->tool.version = "1";
    chip->needs_prepare = chip->needs_compile = false;
    setup.model_name = "m";
    setup.model = std::make_shared<const domain::ModelAnalysis>(model);
    setup.chip = chip;
    setup.paths = report::report_paths(out, "m");
    report::json::Object settings;
    settings.set("dims", report::json::Object{});
    setup.settings = std::move(settings);
    setup.reference_tool.version = "1.32.0";
    setup.reference = reference_name(setup.reference_tool);
    setup.tools = {{"null", "1"}};
    setup.rule = report::Rule::Timing;
  }
};

domain::Outcome success() {
  domain::Outcome out;
  out.ending = domain::Ending::Done;
  domain::Comparison comparison;
  comparison.dtype = domain::DType::Float32;
  comparison.total = 4;
  out.executed = domain::Executed{{comparison}, 1, {}, 10, ""};
  return out;
}

base::ProcessIdentity somebody_dead() {
  base::ProcessIdentity out = base::this_process();
  out.start_ticks += 1;
  return out;
}

}  // namespace

TEST_CASE("a report's setup comes back from what the store keeps of it") {
  const Bench bench;
  const store::RunFile file = run_file_of(bench.setup, "/models/m.onnx", bench.analysis);
  const auto back = setup_of(file, bench.cache);
  REQUIRE(back.has_value());
  CHECK(back->model_name == "m");
  CHECK(back->paths.report == bench.setup.paths.report);
  CHECK(*back->chip == *bench.setup.chip);
  CHECK(*back->model == *bench.setup.model);
  CHECK(back->settings == bench.setup.settings);
  CHECK(back->rule == report::Rule::Timing);
  CHECK(back->reference == "onnxruntime 1.32.0");
  CHECK(back->options == bench.setup.options);
}

TEST_CASE("a subgraph's setup comes back with the names of its own") {
  Bench bench;
  domain::ModelAnalysis part = *bench.setup.model;
  part.subgraph = {3, 4};
  bench.setup.suffix = report::subgraph_suffix(part.subgraph);
  bench.setup.paths = report::report_paths(bench.out, "m", bench.setup.suffix);
  const auto analysis =
      *base::BlobFolder(bench.cache / "blobs").put(protocol::encode_analysis(part));
  const auto back = setup_of(run_file_of(bench.setup, "/models/m.onnx", analysis), bench.cache);
  REQUIRE(back.has_value());
  CHECK(back->model_name == "m");
  CHECK(back->suffix == "_subgraph_3_4");
  CHECK(back->paths.report == bench.out / "torq_gen_config_m_subgraph_3_4.json");
}

TEST_CASE("a pruned analysis is said, not guessed") {
  const Bench bench;
  store::RunFile file = run_file_of(bench.setup, "/models/m.onnx", base::digest_of("pruned"));
  CHECK(setup_of(file, bench.cache).error().code == base::ErrorCode::NotFound);
  file.analysis = bench.analysis;
  file.plan = "{";
  CHECK(!setup_of(file, bench.cache).has_value());
}

TEST_CASE("the files of a run that died are brought up to what the store knows, once") {
  const Bench bench;
  auto store = *store::SqliteStore::open(bench.cache);
  const auto run = *store->begin_run({somebody_dead(), 0, {"layerfarm"}});
  store->append(
      {store::RunFileFact{run, run_file_of(bench.setup, "/models/m.onnx", bench.analysis)}});
  REQUIRE(store->close().has_value());
  store = *store::SqliteStore::open(bench.cache);
  const auto renewed = recover_folder(*store, bench.cache, bench.out);
  REQUIRE(renewed.has_value());
  CHECK(*renewed == std::vector<std::filesystem::path>{bench.setup.paths.report});
  const auto file = report::load_config(bench.setup.paths.report);
  REQUIRE(file.has_value());
  CHECK(file->get_text("_chip") == "c");
  CHECK(!file->get("final_report_text"));
  REQUIRE(store->close().has_value());
  store = *store::SqliteStore::open(bench.cache);
  CHECK(recover_folder(*store, bench.cache, bench.out)->empty());
}

TEST_CASE("a run that still lives, and one in another folder, are left alone") {
  const Bench bench;
  auto store = *store::SqliteStore::open(bench.cache);
  const auto mine = *store->begin_run({base::this_process(), 0, {}});
  store->append(
      {store::RunFileFact{mine, run_file_of(bench.setup, "/models/m.onnx", bench.analysis)}});
  REQUIRE(store->close().has_value());
  store = *store::SqliteStore::open(bench.cache);
  CHECK(recover_folder(*store, bench.cache, bench.out)->empty());
  CHECK(!std::filesystem::exists(bench.setup.paths.report));
  const auto theirs = *store->begin_run({somebody_dead(), 0, {}});
  store->append(
      {store::RunFileFact{theirs, run_file_of(bench.setup, "/models/m.onnx", bench.analysis)}});
  REQUIRE(store->close().has_value());
  store = *store::SqliteStore::open(bench.cache);
  CHECK(recover_folder(*store, bench.cache, bench.folder.path() / "elsewhere")->empty());
}

TEST_CASE("settled cases reach the report, the list and the files") {
  const Bench bench;
  auto store = *store::SqliteStore::open(bench.cache);
  KnownOutcomes known(*store);
  auto console = *Console::open({false, /*quiet=*/true, ""});
  RunReports reports(console, known);
  auto opened = open_report(bench.setup);
  REQUIRE(opened.has_value());
  CHECK(opened->old.statuses.empty());
  std::vector<OpenReport> all;
  all.push_back(std::move(opened->report));
  reports.add(std::move(all));
  plan::CaseSettled settled;
  settled.how = plan::How::Judged;
  settled.judgement.status = domain::Status::Success;
  settled.outcome = std::make_shared<const domain::Outcome>(success());
  REQUIRE(reports.settle(settled)->result.has_value());
  settled.layer = 1;
  settled.how = plan::How::Unsettled;
  settled.reason = "the disk was full";
  CHECK(!reports.settle(settled)->result.has_value());
  CHECK(reports.next_due() == base::Time{0});
  reports.write_due(base::Time{1});
  CHECK(!reports.next_due().has_value());
  CHECK(reports.finish(report::Phase::Finished));
  const auto file = report::load_config(bench.setup.paths.report);
  REQUIRE(file.has_value());
  CHECK(file->get("final_report_text") != nullptr);
  CHECK(report::json::text_of(*file).find("the disk was full") != std::string::npos);
  CHECK(result_list(reports.all()).find("\"Conv_y\"") != std::string::npos);

  // The next run sees what this one wrote.
  auto again = open_report(bench.setup);
  REQUIRE(again.has_value());
  CHECK(again->old.statuses.at("Conv_y").at("e0") == domain::Status::Success);
}

TEST_CASE("of several repeats the most frequent verdict counts, of two as frequent the worse") {
  using Verdicts = std::vector<domain::Status>;
  constexpr auto kGood = domain::Status::Success;
  constexpr auto kOff = domain::Status::Difference;
  const auto shown = [](const Verdicts& verdicts, std::vector<std::uint32_t> order) {
    const Bench bench;
    auto store = *store::SqliteStore::open(bench.cache);
    KnownOutcomes known(*store);
    auto console = *Console::open({false, /*quiet=*/true, ""});
    RunReports reports(console, known);
    ReportSetup setup = bench.setup;
    setup.repeats = static_cast<std::uint32_t>(verdicts.size());
    std::vector<OpenReport> all;
    all.push_back(std::move(open_report(setup)->report));
    reports.add(std::move(all));
    std::optional<ShownCase> out;
    for (const std::uint32_t repeat : order) {
      CHECK_FALSE(out);  // only the last one shows something
      plan::CaseSettled settled;
      settled.file = plan::FileId(repeat);
      settled.how = plan::How::Judged;
      settled.judgement.status = verdicts[repeat];
      settled.judgement.num_diffs = repeat;
      settled.outcome = std::make_shared<const domain::Outcome>(success());
      out = reports.settle(settled);
    }
    REQUIRE(out);
    return *out;
  };
  const ShownCase agreed = shown({kGood, kGood, kGood}, {2, 0, 1});
  CHECK(agreed.result->status == kGood);
  CHECK_FALSE(agreed.result->flaky);
  CHECK(agreed.result->numbers->num_diffs == 0);  // the first one's, whoever answered first
  const ShownCase most = shown({kGood, kOff, kOff}, {1, 2, 0});
  CHECK(most.result->status == kOff);
  CHECK(most.result->numbers->num_diffs == 1);
  REQUIRE(most.result->flaky);
  CHECK(most.result->flaky->success == 1);
  CHECK(most.result->flaky->difference == 2);
  CHECK(shown({kGood, kOff}, {0, 1}).result->status == kOff);
  CHECK(shown({kGood, kOff, kGood, domain::Status::Error}, {0, 1, 2, 3}).result->status == kGood);
}

TEST_CASE("tolerance flags win over the chip file") {
  const Bench bench;
  const domain::ChipSpec chip =
      with_tolerances(bench.setup.chip->spec, {std::nullopt, 0.5, std::nullopt});
  CHECK(chip.executors[0].tolerance.fp_max_tol == 0.5);
  CHECK(chip.executors[0].tolerance.fp_avg_tol ==
        bench.setup.chip->spec.executors[0].tolerance.fp_avg_tol);
}

TEST_CASE("an outcome that does not answer later runs is known only where its run is looked at") {
  const Bench bench;
  auto store = *store::SqliteStore::open(bench.cache);
  const auto run = *store->begin_run({base::this_process(), 0, {}});
  domain::Outcome crashed;
  crashed.ending = domain::Ending::Crashed;
  const base::Digest key = base::digest_of("key");
  store->append({store::OutcomeFact{run, key, std::make_shared<const domain::Outcome>(crashed)}});
  REQUIRE(store->close().has_value());
  store = *store::SqliteStore::open(bench.cache);
  KnownOutcomes known(*store);
  CHECK(known.find(key) == nullptr);
  known.include_all_of(run);
  REQUIRE(known.find(key) != nullptr);
  CHECK(known.find(key)->ending == domain::Ending::Crashed);
}

TEST_CASE("quantized pooling has no recommendation, and the report counts quantized layers") {
  Bench bench;
  auto model = *bench.setup.model;
  model.layers[0].id = "MaxPool_y";
  model.layers[0].quantized = true;
  model.layers[1].quantized = false;
  const auto recommendations = [&](bool quantize) {
    report::json::Object settings;
    if (quantize) settings.set("quantize", report::json::Object{});
    bench.setup.settings = std::move(settings);
    bench.setup.model = std::make_shared<const domain::ModelAnalysis>(model);
    auto opened = open_report(bench.setup);
    REQUIRE(opened);
    for (std::size_t layer = 0; layer < 2; ++layer) {
      report::CaseResult result;
      result.status = domain::Status::Success;
      opened->report.state->settle(layer, 0, result);
    }
    const auto texts = opened->report.state->texts(report::Phase::Finished);
    const auto report = report::json::parse(texts.report, "report");
    REQUIRE(report);
    std::string out;
    for (const char* id : {"MaxPool_y", "Relu_y"})
      out += report::json::python_text(*report->get("ops")->get(id)->get("recommended_executor")) +
             " ";
    return out + report::json::python_text(*report->get("_quantization"));
  };
  CHECK(recommendations(true) == "None 'e0' {'quantized': 1, 'float': 1, 'fused': 0}");
  model.subgraph = domain::NodeRange{0, 1};
  CHECK(recommendations(true) == "'e0' 'e0' {'quantized': 1, 'float': 1, 'fused': 0}");
  model.subgraph.reset();
  CHECK(recommendations(false) == "'e0' 'e0' {'quantized': 1, 'float': 1, 'fused': 0}");
}
