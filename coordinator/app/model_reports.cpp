#include "coordinator/app/model_reports.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "coordinator/report/assignment.h"
#include "coordinator/report/folder_lock.h"
#include "coordinator/report/ops.h"
#include "coordinator/report/report_files.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
namespace json = report::json;
using base::ErrorCode;
using base::fail;
using base::Result;

namespace {

/// The chip that a report is of; empty when there is no report, or it does not tell.
Result<std::string> chip_in(const fs::path& path, const domain::ChipSpec& ours) {
  const auto file = report::load_config(path);
  if (file) return report::chip_of(*file, ours);
  if (file.error().code == ErrorCode::NotFound) return std::string();
  return fail(file.error());
}

}  // namespace

plan::PlanOptions plan_options_of(const DiscoverOptions& options) {
  plan::PlanOptions out;
  out.skip_mode = options.skip_mode;
  out.recompute = options.recompute;
  switch (options.dedup) {
    case Dedup::Off:
      out.dedup = plan::Dedup::Off;
      break;
    case Dedup::IgnoreFloatValues:
      out.dedup = plan::Dedup::Loose;
      break;
    case Dedup::Exact:
      out.dedup = plan::Dedup::Exact;
      break;
  }
  out.skip_executors = options.skip_executors;
  out.skip_ops = options.skip_ops;
  out.executors = options.executors;
  out.layers = options.layers;
  out.collect_timing = options.collect_timing;
  out.timing_runs = std::max(1, options.timing_runs);
  out.tolerance = {options.tolerance_avg, options.tolerance_max, options.tolerance_abs_frac};
  return out;
}

Result<std::vector<OpenedReport>> ModelReports::open(const Reading& reading) {
  std::vector<OpenedReport> out;
  for (const auto& chip : request_.chips) {
    auto paths = place(reading, chip->spec);
    if (!paths) return fail(paths.error());
    auto opened = open_report(setup(reading, chip, std::move(*paths)));
    if (!opened) return fail(opened.error());
    say_opened(reading.file, *opened);
    out.push_back(std::move(*opened));
  }
  return out;
}

Result<report::ReportPaths> ModelReports::place(const Reading& reading,
                                                const domain::ChipSpec& spec) {
  const std::string& chip = spec.name;
  const ModelFile& model = reading.file;
  const bool dry_run = request_.options.dry_run;
  fs::path folder = request_.output_folder / model.folder;
  if (request_.chips.size() > 1) folder /= chip;
  report::ReportPaths paths =
      report::report_paths(folder, model.name, report::subgraph_suffix(reading.model->subgraph));
  if (auto fit = report::check_names_fit(paths); !fit) return fail(fit.error());
  const report::Wanted wanted{model.name, reading.model->subgraph};
  if (auto own = report::check_owner(paths, wanted); !own) return fail(own.error());
  std::error_code error;
  if (!dry_run) fs::create_directories(folder, error);
  if (error)
    return fail(ErrorCode::Internal,
                "cannot make the folder " + folder.string() + ": " + error.message());
  if (request_.chips.size() > 1) return take_single(reading, spec, paths);
  // One chip takes the classic names; another chip's files there move out of the way (design.md,
  // section 8). Where one of the two has files in its folder already, each stays where it is.
  auto there = chip_in(paths.report, spec);
  if (!there) return fail(there.error());
  if (there->empty() || *there == chip) return paths;
  const report::ReportPaths own = report::in_chip_folder(paths, chip);
  if (fs::exists(own.report, error) ||
      fs::exists(report::in_chip_folder(paths, *there).report, error)) {
    if (!dry_run) fs::create_directories(own.report.parent_path(), error);
    console_.say("[ExecutorJSON] " + paths.report.string() + " is of chip " + *there +
                 " and stays as it is; this run goes on with " + own.report.string());
    return own;
  }
  auto moves = report::moves_aside(paths, *there);
  if (!moves) return fail(moves.error());
  if (auto moved = move(*moves, "results of chip " + *there); !moved) return fail(moved.error());
  return paths;
}

/// Of several chips each has a folder. What a run of this chip alone has left under the classic
/// names goes on there, or nobody would look at it again. Where the report is to be read.
Result<report::ReportPaths> ModelReports::take_single(const Reading& reading,
                                                      const domain::ChipSpec& spec,
                                                      const report::ReportPaths& paths) {
  const std::string& chip = spec.name;
  const report::ReportPaths single =
      report::report_paths(request_.output_folder / reading.file.folder, reading.file.name,
                           report::subgraph_suffix(reading.model->subgraph));
  const auto there = chip_in(single.report, spec);
  if (!there || *there != chip) return paths;
  if (!report::check_owner(single, {reading.file.name, reading.model->subgraph})) return paths;
  std::error_code error;
  if (fs::exists(paths.report, error)) {
    console_.say("[ExecutorJSON] " + single.report.string() + " is of chip " + chip +
                 " too and stays as it is; this run goes on with " + paths.report.string());
    return paths;
  }
  auto moves = report::moves_aside(single, chip);
  if (!moves) return fail(moves.error());
  if (auto moved = move(*moves, "results of chip " + chip + " taken over,"); !moved)
    return fail(moved.error());
  return request_.options.dry_run ? single : paths;
}

Result<void> ModelReports::move(const std::vector<report::Move>& moves, const std::string& what) {
  const bool dry_run = request_.options.dry_run;
  if (!dry_run && !moves.empty()) {
    // Not while a run of that chip is writing them.
    const auto lock = report::FolderLock::take(moves.front().from.parent_path());
    if (!lock) return fail(lock.error());
    if (auto moved = report::carry_out(moves); !moved) return fail(moved.error());
  }
  for (const report::Move& one : moves)
    console_.say("[ExecutorJSON] " + what + (dry_run ? " would be" : "") + " moved to " +
                 one.to.string());
  return {};
}

ReportSetup ModelReports::setup(const Reading& reading,
                                const std::shared_ptr<const plan::PlanChip>& chip,
                                report::ReportPaths paths) const {
  ReportSetup out;
  out.model_name = reading.file.name;
  out.suffix = report::subgraph_suffix(reading.model->subgraph);
  if (request_.models.size() > 1) out.label = reading.label();
  out.model = reading.model;
  out.chip = chip;
  out.paths = std::move(paths);
  out.shown_path = (fs::path(request_.options.output_dir) /
                    out.paths.report.lexically_relative(request_.output_folder))
                       .lexically_normal()
                       .string();
  out.settings = report_settings(request_.options, request_.inputs);
  out.reference = reference_name(request_.machine.reference);
  out.tools = {{chip->spec.toolchain, chip->tool.version}};
  out.rule = request_.options.recommend_by_timing ? report::Rule::Timing : report::Rule::Priority;
  out.options = plan_options_of(request_.options);
  out.inputs = request_.inputs.set;
  out.repeats = static_cast<std::uint32_t>(request_.options.repeats);
  out.reference_tool = request_.machine.reference;
  return out;
}

json::Value report_settings(const DiscoverOptions& options, const InputFiles& given) {
  json::Object dims;
  for (const auto& [name, value] : options.dims) dims.set(name, value);
  json::Object inputs;
  if (given.set.folder.is_zero()) {
    inputs.set("seed", static_cast<std::int64_t>(given.set.seed));
  } else {
    inputs.set("folder", given.set.folder.hex());
  }
  if (options.repeats > 1) inputs.set("repeats", options.repeats);
  json::Object out;
  out.set("dims", std::move(dims));
  out.set("inputs", std::move(inputs));
  // What changes the model is named only where it does.
  if (options.unit != domain::LayerUnit::Node)
    out.set("layer_unit", std::string(domain::layer_unit_name(options.unit)));
  add_quantize_settings(options.quantize, out);
  json::Object convert;
  if (options.convert.bf16) convert.set("bf16", true);
  if (options.convert.int32) convert.set("int32", true);
  if (options.convert != domain::Conversion{}) out.set("convert", std::move(convert));
  add_settings(options.tool, out);
  return out;
}

void ModelReports::say_opened(const ModelFile& model, const OpenedReport& opened) {
  if (!opened.warning.empty()) console_.say("[ONNXtoMLIR] " + model.name + ": " + opened.warning);
  for (const std::string& line : takeover_lines(opened.takeover, opened.report.setup))
    console_.say("[ExecutorJSON] " + opened.report.setup.line_start() + line);
  if (const std::string line = timing_rule_line(opened.report); !line.empty()) console_.say(line);
}

}  // namespace layerfarm::coordinator::app
