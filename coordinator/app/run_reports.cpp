#include "coordinator/app/run_reports.h"

#include <algorithm>
#include <array>
#include <utility>

#include "coordinator/app/layer_facts.h"
#include "coordinator/app/quantize_options.h"
#include "coordinator/report/ops.h"
#include "shared/base/text.h"
#include "shared/base/time.h"

namespace layerfarm::coordinator::app {
using base::fail;
using base::Result;
using plan::CaseSettled;
using plan::How;
namespace json = report::json;

namespace {

/// A layer as the run's lines call it.
std::string layer_text(const std::string& layer, const ReportSetup& setup) {
  return setup.label.empty() ? layer : layer + " (" + setup.label + ")";
}

constexpr base::Duration kWellAgain = std::chrono::seconds(10);

/// The engine that makes references wherever it can.
constexpr std::string_view kReferenceEngine = "onnxruntime";

/// A success says nothing where more is asked for now than when it was judged.
bool asks_for_more(const domain::Tolerance& now, const json::Value& result) {
  const json::Value* used = result.get("tolerance_used");
  if (used == nullptr) return false;
  const domain::ToleranceEdit then = report::bounds_in(used);
  return now.fp_avg_tol < then.fp_avg_tol.value_or(now.fp_avg_tol) ||
         now.fp_max_tol < then.fp_max_tol.value_or(now.fp_max_tol) ||
         now.fp_abs_tol_frac < then.fp_abs_tol_frac.value_or(0.0) ||
         now.integer_bound() < then.int_tol.value_or(domain::kIntegerTolerance);
}

/// What an old report says of cases, as planning minds it. `old` has the edits.
void add_statuses(plan::OldReport& old, const ReportSetup& setup) {
  const auto file = report::load_config(setup.paths.report);
  if (!file) return;
  const json::Value* ops = file->get("ops");
  if (ops == nullptr || !ops->object()) return;
  for (const json::Member& op : *ops->object()) {
    const json::Value* tested = op.value.get("executors");
    if (tested == nullptr || !tested->object()) continue;
    const auto edit = old.edits.find(op.key);
    for (const json::Member& result : *tested->object()) {
      const auto status = domain::status_from_name(result.value.get_text("status"));
      const domain::ExecutorSpec* executor = setup.chip->spec.executor(result.key);
      if (!status || executor == nullptr) continue;
      const domain::Tolerance now = plan::tolerance_in_force(
          *executor, setup.options.tolerance, edit == old.edits.end() ? nullptr : &edit->second);
      if (*status == domain::Status::Success && asks_for_more(now, result.value)) continue;
      old.statuses[op.key][result.key] = *status;
    }
  }
}

/// Edited tolerances as the state has understood them.
void add_edits(plan::OldReport& old, const report::ReportState& state,
               const std::vector<std::size_t>& layers) {
  // Only what was edited: the other bounds stay each executor's own.
  for (const std::size_t layer : layers)
    old.edits[state.plan().layers[layer].id] = state.edited_tolerance(layer);
}

/// Whether outputs that a comparison is about came, and all of them are empty.
bool compared_nothing(const CaseSettled& settled, const domain::Layer& layer) {
  if (!settled.outcome || !settled.outcome->executed) return false;
  const auto& outputs = settled.outcome->executed->outputs;
  bool some = false;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& open = layer.open_outputs;
    if (std::find(open.begin(), open.end(), i) != open.end()) continue;
    if (outputs[i].total > 0) return false;
    some = true;
  }
  return some;
}

/// Puts a result into its report.
void put_result(OpenReport& report, const CaseSettled& settled, const report::CaseResult& result) {
  const domain::Layer& layer = report.setup.model->layers[settled.layer];
  const std::string& executor = report.setup.chip->spec.executors[settled.executor].name;
  report.state->settle(settled.layer, settled.executor, result);
  report.doubtful.note(
      settled.layer, settled.executor, layer.id + " on " + executor,
      doubt_of(layer, settled, result, report.state->edited_tolerance(settled.layer)));
}

domain::Diagnostic layer_problem(const domain::Layer& layer) {
  domain::Diagnostic out;
  out.where = "prepare";
  out.cause = "untestable";
  out.text = layer.problem;
  return out;
}

}  // namespace

std::string reference_name(const domain::ToolIdentity& reference) {
  return std::string(kReferenceEngine) + " " + reference.version;
}

domain::ChipSpec with_tolerances(domain::ChipSpec chip, const plan::ToleranceFlags& flags) {
  for (domain::ExecutorSpec& executor : chip.executors)
    executor.tolerance = plan::tolerance_in_force(executor, flags, nullptr);
  return chip;
}

Result<OpenedReport> open_report(ReportSetup setup) {
  OpenedReport out;
  LayerFactsResult facts = layer_facts(*setup.model, setup.options.skip_ops);
  out.warning = std::move(facts.warning);
  report::ReportPlan plan;
  plan.model_name = setup.model_name;
  plan.chip = with_tolerances(setup.chip->spec, setup.options.tolerance);
  plan.layers = std::move(facts.layers);
  plan.settings = setup.settings;
  plan.model_digest = setup.model->model_digest.hex();
  plan.subgraph = setup.model->subgraph;
  plan.quantization = quantization_counts(*setup.model);
  if (report::pooling_is_fused(setup.settings, setup.model->subgraph.has_value())) {
    for (report::LayerFacts& layer : plan.layers)
      layer.no_recommendation = layer.id.starts_with("MaxPool_");
  }
  plan.reference = setup.reference;
  plan.tools = setup.tools;
  plan.rule = setup.rule;
  plan.skip_mode = setup.options.skip_mode;
  plan.skip_executors = setup.options.skip_executors;
  out.report.state = std::make_unique<report::ReportState>(std::move(plan));
  out.report.writer = std::make_unique<report::ReportWriter>(*out.report.state, setup.paths);
  auto takeover = out.report.writer->load();
  if (!takeover) return fail(takeover.error());
  setup.paths = out.report.writer->paths();
  out.takeover = std::move(*takeover);
  add_edits(out.old, *out.report.state, out.takeover.tolerances);
  if (out.takeover.set_aside.empty()) add_statuses(out.old, setup);
  out.report.settled.resize(setup.model->layers.size() * setup.chip->spec.executors.size());
  out.report.setup = std::move(setup);
  return out;
}

std::vector<std::string> takeover_lines(const report::Takeover& takeover,
                                        const ReportSetup& setup) {
  std::vector<std::string> out;
  const std::string file = setup.paths.report.string();
  if (!takeover.set_aside.empty()) {
    out.push_back(std::to_string(takeover.results_set_aside) + " result(s) in " + file +
                  " are set aside: " + takeover.set_aside);
  }
  if (takeover.no_settings)
    out.push_back(file +
                  " does not say of which settings its results are; they are taken as they are");
  if (!takeover.edited.empty())
    out.push_back(
        std::to_string(takeover.edited.size()) +
        " recommendation(s) edited by hand are kept: " + report::first_ten(takeover.edited));
  return out;
}

std::string timing_rule_line(const OpenReport& report) {
  const ReportSetup& setup = report.setup;
  if (setup.rule != report::Rule::Timing) return {};
  if (!report::times_compare(setup.chip->spec)) {
    std::vector<std::string> sources;
    for (const domain::ExecutorSpec& executor : setup.chip->spec.executors)
      sources.push_back(executor.name + ": " +
                        std::string(domain::evidence_name(executor.evidence)));
    return "[Timing] " + setup.line_start() + "times on " + setup.chip->spec.name +
           " do not say which executor is quicker (" + base::join(sources) +
           "); the recommendations follow the executors' priority";
  }
  if (setup.options.collect_timing) return {};
  for (const report::Op& op : report.state->ops()) {
    for (const report::OpResult& result : op.results) {
      if (result.runtime_ms) return {};
    }
  }
  return "[Timing] " + setup.line_start() +
         "--recommend-by-timing finds no times in the report and this run measures none; the "
         "recommendations follow the executors' priority (add --collect-timing)";
}

std::optional<report::CaseResult> case_result_of(const CaseSettled& settled,
                                                 const ReportSetup& setup, KnownOutcomes& known) {
  const domain::Layer& layer = setup.model->layers[settled.layer];
  const domain::ExecutorSpec& executor = setup.chip->spec.executors[settled.executor];
  report::CaseResult out;
  switch (settled.how) {
    case How::Skipped:
    case How::Unsettled:
      return std::nullopt;
    case How::Judged:
    case How::Failed:
    case How::Copied:
    case How::CopiedOld:
      if (settled.outcome && settled.outcome->executed) {
        out = report::case_result(settled.judgement, settled.outcome->executed->outputs,
                                  settled.tolerance);
      } else if (settled.outcome) {
        out = report::case_result(settled.outcome->diagnostic, settled.tolerance);
      } else if (settled.how == How::CopiedOld) {
        out.status = settled.judgement.status;
        out.tolerance = settled.tolerance;
      } else {
        out = report::case_result(layer_problem(layer), settled.tolerance);
      }
  }
  if (settled.how == How::Copied || settled.how == How::CopiedOld)
    out.copied_from = setup.model->layers[settled.source_layer].id;
  if (settled.timed && settled.timed->timed) out.timing = report::timing_of(*settled.timed->timed);
  if (!settled.prepare_key.is_zero()) {
    if (const auto prepared = known.find(settled.prepare_key); prepared && prepared->prepared)
      out.reference = prepared->prepared->reference;
  }
  // Another engine had to make this reference: then agreement proves something again, unless it is
  // the chip's own toolchain.
  const bool by_toolchain = out.reference.starts_with(setup.chip->spec.toolchain + " ");
  const bool usual = out.reference.empty() || out.reference.starts_with(kReferenceEngine);
  out.same_engine = by_toolchain || (executor.same_engine && usual);
  if (settled.outcome && settled.outcome->executed) out.note = settled.outcome->executed->note;
  if (out.status == domain::Status::Success && compared_nothing(settled, layer))
    out.note += (out.note.empty() ? "" : "; ") +
                std::string("no output has an element, so nothing was compared");
  if (settled.compile_key.is_zero()) return out;
  if (const auto compiled = known.find(settled.compile_key); compiled && compiled->artifact) {
    const domain::Artifact& artifact = *compiled->artifact;
    if (out.note.empty()) out.note = artifact.note;
    if (setup.options.collect_timing) {
      out.compile = report::CompileCost{static_cast<double>(artifact.compile_us) / 1000.0,
                                        artifact.batch, settled.compile_stored};
    }
  }
  return out;
}

void RunReports::add(std::vector<OpenReport> reports) {
  if (reports.empty()) return;
  const std::uint32_t repeats = reports.front().setup.repeats;
  for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
    for (std::size_t i = 0; i < reports.size(); ++i) report_of_.push_back(reports_.size() + i);
  }
  for (OpenReport& report : reports) reports_.push_back(std::move(report));
}

std::optional<ShownCase> RunReports::settle(const CaseSettled& settled) {
  const std::size_t place = report_of_[settled.file.value()];
  OpenReport& report = reports_[place];
  if (report.setup.repeats == 1)
    return show(report, settled, case_result_of(settled, report.setup, known_));
  const std::pair at(
      place, settled.layer * static_cast<std::uint32_t>(report.setup.chip->spec.executors.size()) +
                 settled.executor);
  std::vector<CaseSettled>& repeats = waiting_[at];
  repeats.push_back(settled);
  if (repeats.size() < report.setup.repeats) return std::nullopt;
  // In their order, not in that in which workers answered: the same bytes come out each time.
  std::sort(repeats.begin(), repeats.end(),
            [](const CaseSettled& a, const CaseSettled& b) { return a.file < b.file; });
  const auto all = waiting_.extract(at);
  return show_repeats(report, all.mapped());
}

std::optional<ShownCase> RunReports::show_repeats(OpenReport& report,
                                                  const std::vector<CaseSettled>& repeats) {
  std::vector<std::optional<report::CaseResult>> results;
  std::array<std::int64_t, 3> counts{};  // by domain::Status
  for (const CaseSettled& one : repeats) {
    // Infrastructure failed: what the majority would have been nobody knows.
    if (one.how == How::Unsettled) return show(report, one, std::nullopt);
    results.push_back(case_result_of(one, report.setup, known_));
    if (results.back()) ++counts[static_cast<std::size_t>(results.back()->status)];
  }
  // The most frequent verdict; of two that are as frequent the worse.
  const auto most = std::max_element(counts.rbegin(), counts.rend());
  if (*most == 0) return show(report, repeats.front(), std::nullopt);
  const auto status = static_cast<domain::Status>(counts.rend() - most - 1);
  const auto shown = std::find_if(results.begin(), results.end(), [&](const auto& result) {
    return result && result->status == status;
  });
  report::CaseResult result = std::move(**shown);
  if (results.front() && !result.timing) result.timing = results.front()->timing;  // the timed one
  if (std::count(counts.begin(), counts.end(), 0) < 2)
    result.flaky = report::FlakyCounts{counts[0], counts[1], counts[2]};
  CaseSettled settled = repeats[static_cast<std::size_t>(shown - results.begin())];
  settled.stored = std::all_of(repeats.begin(), repeats.end(),
                               [](const CaseSettled& one) { return one.stored; });
  settled.timed_now = std::any_of(repeats.begin(), repeats.end(),
                                  [](const CaseSettled& one) { return one.timed_now; });
  return show(report, settled, std::move(result));
}

std::optional<ShownCase> RunReports::show(OpenReport& report, const CaseSettled& settled,
                                          std::optional<report::CaseResult> result) {
  if (settled.how == How::Unsettled)
    report.state->unsettle(settled.layer, settled.executor, settled.reason);
  if (result) {
    put_result(report, settled, *result);
    report.settled[settled.layer * report.setup.chip->spec.executors.size() + settled.executor] =
        true;
    ++(settled.stored ? report.stored : report.fresh);
    if (settled.timed_now) ++report.timed;
  }
  return ShownCase{&report, settled, std::move(result)};
}

std::optional<base::Time> RunReports::next_due() const {
  std::optional<base::Time> out;
  for (const OpenReport& report : reports_) {
    if (!report.writer->is_due(report::Phase::Running)) continue;
    out = out ? std::min(*out, report.next_write) : report.next_write;
  }
  return out;
}

void RunReports::write_due(base::Time now) {
  for (OpenReport& report : reports_) {
    if (now < report.next_write || !report.writer->is_due(report::Phase::Running)) continue;
    const base::Time begun = base::MonotonicClock().now();
    write(report, report::Phase::Running);
    report.next_write = now + report::write_interval(base::MonotonicClock().now() - begun);
  }
}

/// On a disk that is nearly full a write works now and then: that is no news.
void RunReports::say_when_over(OpenReport& report, report::Phase phase) {
  const base::Time now = base::MonotonicClock().now();
  if (!report.well_since) report.well_since = now;
  if (phase == report::Phase::Running && now - *report.well_since < kWellAgain) return;
  console_.say("[ExecutorJSON] " + report.setup.paths.report.string() + " can be written again");
  report.trouble.clear();
  report.well_since.reset();
}

bool RunReports::write(OpenReport& report, report::Phase phase) {
  auto written = report.writer->write(phase);
  if (!written) {
    // Said once per kind of trouble: a full disk fails every second.
    if (report.trouble != written.error().text()) console_.error(written.error().text());
    report.trouble = written.error().text();
    report.well_since.reset();
    return false;
  }
  if (!written->moved.empty()) {
    report.setup.paths = report.writer->paths();
    console_.say("[ExecutorJSON] " + report.setup.line_start() + written->moved);
  }
  if (!report.trouble.empty()) say_when_over(report, phase);
  for (const std::string& warning : written->warnings)
    console_.say("[CompilerJSON] " + report.setup.line_start() + warning);
  for (const std::string& layer : written->taken_over.edited) {
    console_.say("[ExecutorJSON] " + layer_text(layer, report.setup) +
                 ": the recommendation was edited; it is kept");
  }
  judge_again(report, written->taken_over);
  return true;
}

void RunReports::judge_again(OpenReport& report, const report::Takeover& takeover) {
  const ReportSetup& setup = report.setup;
  if (setup.repeats > 1) {
    for (const std::size_t place : takeover.tolerances) {
      console_.say("[ExecutorJSON] " + layer_text(setup.model->layers[place].id, setup) +
                   ": the next discover judges its repeats by the edited tolerance");
    }
    return;
  }
  const plan::PlanChip& chip = *setup.chip;
  for (const std::size_t place : takeover.tolerances) {
    const domain::Layer& layer = setup.model->layers[place];
    for (std::size_t i = 0; i < chip.spec.executors.size(); ++i) {
      if (!report.settled[place * chip.spec.executors.size() + i])
        continue;  // judged by the edited tolerance when it comes
      CaseSettled again;
      again.layer = static_cast<std::uint32_t>(place);
      again.executor = static_cast<std::uint32_t>(i);
      again.how = How::Judged;
      if (chip.needs_prepare)
        again.prepare_key = domain::prepare_key(layer, setup.inputs, setup.reference_tool);
      if (chip.needs_compile)
        again.compile_key =
            domain::compile_key(layer, chip.spec, chip.spec.executors[i], chip.tool);
      again.outcome = known_.find(
          domain::execute_key(again.prepare_key, again.compile_key, chip.spec, chip.tool));
      if (!again.outcome || !again.outcome->executed)
        continue;  // a failed case stays failed whatever the tolerance
      again.tolerance = report.state->tolerance(place, i);
      const auto judgement =
          domain::judge(again.outcome->executed->outputs, again.outcome->executed->expected_outputs,
                        again.tolerance);
      if (!judgement) {
        console_.say("[ExecutorJSON] " + layer_text(layer.id, setup) +
                     ": the stored numbers do not tell the counts for the edited tolerance; run "
                     "discover again");
        continue;
      }
      again.judgement = *judgement;
      if (const auto result = case_result_of(again, setup, known_))
        put_result(report, again, *result);
    }
  }
}

bool RunReports::finish(report::Phase phase) {
  bool good = true;
  for (OpenReport& report : reports_) good = write(report, phase) && good;
  return good;
}

}  // namespace layerfarm::coordinator::app
