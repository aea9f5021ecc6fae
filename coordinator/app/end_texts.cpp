#include "coordinator/app/end_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "coordinator/report/json.h"
#include "coordinator/report/log_lines.h"
#include "coordinator/report/texts.h"

namespace layerfarm::coordinator::app {
namespace json = report::json;

namespace {

report::PlacementFacts placement_facts(const OpenReport& open) {
  report::PlacementFacts out;
  out.chip = open.setup.chip->spec.name;
  for (const domain::ExecutorSpec& executor : open.setup.chip->spec.executors) {
    out.evidence.emplace_back(executor.name, domain::evidence_name(executor.evidence));
    if (executor.same_engine) out.same_engine.push_back(executor.name);
  }
  out.reference = open.setup.reference;
  out.tools = open.setup.tools;
  out.fresh = open.fresh;
  out.stored = open.stored;
  out.timed = open.timed;
  out.unsettled = open.state->unsettled();
  for (const domain::Layer& layer : open.setup.model->layers)
    out.macs.emplace_back(layer.id, layer.mac_count);
  return out;
}

void say_end_report(Console& console, const OpenReport& open) {
  const std::string& path = open.setup.shown_path;
  console.say("\n" + report::saved_line(path));
  const report::Overview overview = open.state->overview();
  const report::EndReport end{open.setup.model_name, path, &overview, std::nullopt};
  console.say_coloured(report::end_report(end, report::Colour::Yes),
                       report::end_report(end, report::Colour::No));
  console.say(
      report::placement_summary(open.state->ops(), overview.executors, placement_facts(open)));
}

/// Whether operators of the model stand between DequantizeLinear and QuantizeLinear, each a layer
/// by itself.
bool is_split_qdq(const ReportSetup& setup) {
  if (setup.settings.get("layer_unit") || setup.settings.get("quantize")) return false;
  const auto converts = [](const domain::Layer& layer) {
    return layer.op_type == "QuantizeLinear" || layer.op_type == "DequantizeLinear";
  };
  std::unordered_set<std::string_view> dequantized;
  std::unordered_set<std::string_view> computed;
  for (const domain::Layer& layer : setup.model->layers) {
    if (layer.op_type == "DequantizeLinear")
      dequantized.insert(layer.output_names.begin(), layer.output_names.end());
    if (!converts(layer)) computed.insert(layer.output_names.begin(), layer.output_names.end());
  }
  bool taken = false;
  bool quantized = false;
  for (const domain::Layer& layer : setup.model->layers) {
    for (const std::string& name : layer.input_names) {
      taken = taken || (!converts(layer) && dequantized.contains(name));
      quantized = quantized || (layer.op_type == "QuantizeLinear" && computed.contains(name));
    }
  }
  return taken && quantized;
}

/// Empty where no model is one that is quantized in this form.
std::string qdq_line(const std::vector<OpenReport>& reports) {
  std::vector<std::string> models;
  for (const OpenReport& open : reports) {
    const std::string& name = open.setup.model_name;
    if (std::find(models.begin(), models.end(), name) == models.end() && is_split_qdq(open.setup))
      models.push_back(name);
  }
  if (models.empty()) return {};
  return "[Layers] " + report::first_ten(models) +
         ": quantized (QDQ); with --layer-unit qdq each operator is tested together with the "
         "QuantizeLinear and DequantizeLinear around it, which is how accelerators take it";
}

std::string_view name_of_stage(std::size_t stage) {
  return domain::stage_name(static_cast<domain::Stage>(stage));
}

json::Object forecast_json(const plan::Forecast& f) {
  json::Object jobs;
  for (std::size_t stage = 1; stage < f.jobs.size(); ++stage)
    jobs.set(name_of_stage(stage), static_cast<std::int64_t>(f.jobs[stage]));
  json::Object out;
  out.set("cases", static_cast<std::int64_t>(f.cases));
  out.set("known", static_cast<std::int64_t>(f.known));
  out.set("skipped", static_cast<std::int64_t>(f.skipped));
  out.set("copied", static_cast<std::int64_t>(f.copied));
  out.set("untestable", static_cast<std::int64_t>(f.untestable));
  out.set("open", static_cast<std::int64_t>(f.open));
  out.set("jobs", std::move(jobs));
  out.set("expected_s", static_cast<double>(f.expected_us) / 1e6);
  return out;
}

}  // namespace

void say_end_reports(Console& console, const std::vector<OpenReport>& reports,
                     const RunResult& result) {
  std::uint64_t cases = 0;
  for (const OpenReport& open : reports) {
    if (!console.silent()) say_end_report(console, open);
    cases += open.fresh + open.stored;
  }
  const std::uint64_t failing = result.failing_errors + result.failing_differences;
  if (reports.size() > 1) {
    console.say(fmt::format(
        "Total: {} reports, {} cases, {} success, {} difference, {} error, {} unsettled",
        reports.size(), cases, cases - failing, result.failing_differences, result.failing_errors,
        result.unsettled));
  }
  for (const OpenReport& open : reports) {
    for (const std::string& line : open.doubtful.lines(open.setup.line_start())) console.say(line);
  }
  if (const std::string line = qdq_line(reports); !line.empty()) console.say(line);
  if (result.stored_errors > 0) {
    // A tool that could not work then may work now; its files need not have changed for that.
    console.say(
        fmt::format("\n{} of {} error(s) come from the store; --recompute-cache tests them again",
                    result.stored_errors, result.failing_errors));
  }
  if (const std::string line = report::failing_line(failing); !line.empty())
    console.say("\n" + line);
  if (result.unsettled > 0) {
    console.say(
        fmt::format("{} case(s) or model(s) without a verdict; run the same command again to go on",
                    result.unsettled));
  }
}

void print_forecast(const plan::Forecast& f, const DiscoverOptions& options) {
  if (options.json) {
    std::cout << json::text_of(forecast_json(f)) << "\n";
    return;
  }
  std::cout << fmt::format("Cases: {} ({} known, {} skipped, {} copied, {} untestable, {} open)\n",
                           f.cases, f.known, f.skipped, f.copied, f.untestable, f.open);
  std::uint64_t to_run = 0;
  for (std::size_t stage = 1; stage < f.jobs.size(); ++stage) {
    if (f.jobs[stage] == 0) continue;
    to_run += f.jobs[stage];
    std::cout << fmt::format(
        "  {}: {} to run{}\n", name_of_stage(stage), f.jobs[stage],
        f.speculative[stage] > 0
            ? fmt::format(", {} of them only if a higher executor fails", f.speculative[stage])
            : "");
  }
  if (f.without_estimate > 0) {
    std::cout << fmt::format("  {} jobs of a kind that was never timed here\n", f.without_estimate);
  }
  if (to_run > 0 && f.without_estimate >= to_run) {
    std::cout << "Expected time: unknown\n";
    return;
  }
  std::cout << fmt::format("Expected time: {:.1f} s with {} workers ({:.1f} s of work)\n",
                           static_cast<double>(f.expected_us) / 1e6,
                           std::max<std::size_t>(options.workers, 1),
                           static_cast<double>(f.work_us) / 1e6);
}

}  // namespace layerfarm::coordinator::app
