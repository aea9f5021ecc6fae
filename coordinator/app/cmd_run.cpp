#include "coordinator/app/cmd_run.h"

#include <cstdio>
#include <filesystem>
#include <utility>

#include "coordinator/app/chip_catalog.h"
#include "coordinator/app/chip_choice.h"
#include "coordinator/app/console.h"
#include "coordinator/app/failed_cases.h"
#include "coordinator/app/input_files.h"
#include "coordinator/app/ir_dumps.h"
#include "coordinator/app/local_farm.h"
#include "coordinator/app/model_changes.h"
#include "coordinator/app/model_list.h"
#include "coordinator/app/model_reports.h"
#include "coordinator/app/reader_calls.h"
#include "coordinator/app/recovery.h"
#include "coordinator/app/shell_limits.h"
#include "coordinator/app/whole_run.h"
#include "coordinator/report/assignment.h"
#include "coordinator/report/case_result.h"
#include "coordinator/report/compiler_map.h"
#include "coordinator/report/folder_lock.h"
#include "coordinator/report/log_lines.h"
#include "coordinator/report/ops.h"
#include "coordinator/report/report_files.h"
#include "coordinator/report/report_state.h"
#include "coordinator/store/cache.h"
#include "coordinator/store/sqlite_store.h"
#include "shared/base/exit_code.h"
#include "shared/base/files.h"
#include "shared/base/places.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
namespace json = report::json;
using base::ErrorCode;
using base::ExitCode;
using base::fail;
using base::Result;

namespace {

/// What is known before a worker is asked.
struct Checked {
  ModelFile model;
  std::optional<domain::NodeRange> subgraph;  ///< none: the whole model
  InputFiles inputs;
  report::AssignmentSource source;
  report::AssignmentFile assignment;
  ChosenChips chips;
};

/// The three lines of the original: what is missing, and the command that makes it.
base::Error no_config(const ModelFile& model, const RunOptions& options) {
  std::string command = "layerfarm discover --model " + model.path.string();
  if (!options.common.chip.empty()) command += " --chip " + options.common.chip;
  if (!options.common.output_dir.empty()) command += " --output-dir " + options.common.output_dir;
  if (!options.common.subgraph_from.empty()) {
    command += " --subgraph-from=" + options.common.subgraph_from +
               " --subgraph-to=" + options.common.subgraph_to;
  }
  return {ErrorCode::NotFound, "Config not found for " + model.name +
                                   "\nRun discovery first; it makes the report:\n  " + command};
}

Result<ModelFile> only_model(const RunOptions& options) {
  if (options.common.models.empty()) return fail(ErrorCode::InvalidInput, "--model is required");
  auto models = expand_models(options.common.models);
  if (!models) return fail(models.error());
  if (models->size() == 1) return std::move(models->front());
  return fail(ErrorCode::InvalidInput,
              "run takes one --model; " + std::to_string(models->size()) + " files fit");
}

/// What both commands must have been told alike. Other inputs are as good a test.
json::Value without_inputs(const json::Value& settings) {
  json::Value out = settings;
  if (out.object()) out.object()->erase("inputs");
  return out;
}

Result<void> check_settings(const report::AssignmentSource& source, const RunOptions& options,
                            const InputFiles& inputs) {
  const json::Value* there = source.content.get("_settings");
  if (there == nullptr) return {};
  const std::string difference = report::settings_difference(
      without_inputs(*there), without_inputs(report_settings(options.common, inputs)));
  if (difference.empty()) return {};
  return fail(ErrorCode::Incompatible, source.path.string() +
                                           " was made with other settings: " + difference +
                                           ". Run with those, or discover again with these");
}

/// The chip that is meant: the user's, else the report's, else the default one.
std::string chip_name(const report::AssignmentSource& source, const RunOptions& options) {
  const std::string_view there = source.content.get_text("_chip");
  const std::string& asked = options.common.chip;
  if (asked.empty()) return there.empty() ? std::string("default") : std::string(there);
  return asked;
}

Result<void> check_chip(const report::AssignmentSource& source, const domain::ChipSpec& chip) {
  const std::string there = report::chip_of(source.content, chip);
  if (there.empty() || there == chip.name) return {};
  return fail(ErrorCode::Incompatible, source.path.string() + " is of chip " + there + ", not of " +
                                           chip.name +
                                           ": its executors mean nothing there; discover with "
                                           "--chip " +
                                           chip.name + " first");
}

std::string no_chip(const report::AssignmentSource& source) {
  return source.path.string() + " does not say of which chip it is; name it with --chip";
}

/// Whether the file names executors, and the chip has none of them.
bool names_none_of(const report::AssignmentFile& file, const domain::ChipSpec& chip) {
  bool some = false;
  for (const auto* named : {&file.by_layer, &file.by_place}) {
    for (const auto& [where, executor] : *named) {
      if (chip.executor(executor) != nullptr) return false;
      some = true;
    }
  }
  return some;
}

/// What only discover can do.
Result<void> check_supported(const DiscoverOptions& options) {
  if (!options.save_bf16_model.empty())
    return fail(ErrorCode::InvalidInput, "--save-bf16-model is a flag of discover");
  return check_model_changes(options);
}

/// All but the subgraph is left open where the subgraph ends before it begins.
Result<Checked> check(RunOptions& options) {
  Checked out;
  if (auto fine = check_supported(options.common); !fine) return fail(fine.error());
  auto model = only_model(options);
  if (!model) return fail(model.error());
  out.model = std::move(*model);
  auto inputs = find_inputs(options.common.inputs_dir);
  if (!inputs) return fail(inputs.error());
  out.inputs = std::move(*inputs);
  if (auto found = find_calibration(options.common.quantize); !found) return fail(found.error());
  if (!options.common.subgraph_from.empty()) {
    auto range = find_subgraph(out.model.path, options.common);
    if (!range) return fail(range.error());
    out.subgraph = *range;
    if (range->first > range->last) return out;
  }
  const fs::path folder = options.common.output_dir.empty() ? "." : options.common.output_dir;
  const std::string& asked = options.common.chip;
  auto source = report::find_assignment(folder, {out.model.name, out.subgraph},
                                        asked.empty() ? asked : meant_chip(asked));
  if (!source) {
    if (source.error().code == ErrorCode::NotFound) return fail(no_config(out.model, options));
    return fail(source.error());
  }
  if (source->is_report) {
    // A run that was cut short knows more than its file says.
    if (auto done = recover_report(source->path); !done) return fail(done.error());
    auto renewed = report::load_config(source->path);
    if (!renewed) return fail(renewed.error());
    source->content = std::move(*renewed);
  }
  out.source = std::move(*source);
  auto assignment = report::read_assignment(out.source.content, out.source.path.string());
  if (!assignment) return fail(assignment.error());
  out.assignment = std::move(*assignment);
  if (auto fine = report::check_bounds(out.source.content.get("default_tolerance"), out.source.path,
                                       "default_tolerance");
      !fine)
    return fail(fine.error());
  const std::string name = chip_name(out.source, options);
  // Files of torq-gen-config do not say their chip: there is one kind for them, which is the
  // default.
  const bool guessed = asked.empty() && out.source.content.get_text("_chip").empty();
  auto chips = find_chips(name, options.common.chips_dir, options.common.tool);
  if (!chips)
    return fail(guessed ? std::move(chips.error()).with(no_chip(out.source)) : chips.error());
  out.chips = std::move(*chips);
  if (guessed && names_none_of(out.assignment, out.chips.chips.front()->spec))
    return fail(ErrorCode::InvalidInput, no_chip(out.source) +
                                             ": none of its executors is one of " +
                                             out.chips.chips.front()->spec.name);
  // Nothing else than without the flag, and so discover left it out of the settings.
  if (out.chips.own_hw_type) options.common.tool.hw_type.clear();
  if (auto fine = check_settings(out.source, options, out.inputs); !fine) return fail(fine.error());
  if (out.chips.chips.size() != 1)
    return fail(ErrorCode::InvalidInput, "run takes one chip; '" + name + "' is several");
  if (auto fine = check_chip(out.source, out.chips.chips.front()->spec); !fine)
    return fail(fine.error());
  if (auto fine = check_writable_folder("--debug-ir", options.common.tool.dump_folder); !fine)
    return fail(fine.error());
  return out;
}

/// What the report says of its first executor, which a person may have edited, over the chip file.
domain::Tolerance tolerance_of(const json::Value& source, const domain::ChipSpec& chip) {
  const json::Value* given = source.get("default_tolerance");
  domain::ToleranceEdit bounds = report::bounds_in(given);
  // What is 0 a report of ours leaves out.
  if (given != nullptr && source.get("_chip") && !bounds.fp_abs_tol_frac)
    bounds.fp_abs_tol_frac = 0;
  return bounds.over(chip.executors.front().tolerance);
}

/// Reads the report once more, puts the result in and writes it and its compiler file, all under
/// the folder's lock. The content then.
Result<json::Value> update_report(const fs::path& path, const WholeRunResult& run,
                                  Console& console) {
  auto lock = report::FolderLock::take(path.parent_path().empty() ? "." : path.parent_path());
  if (!lock) return fail(std::move(lock.error()));
  auto file = report::load_config(path);
  if (!file) return fail(std::move(file.error()));
  report::put_whole_result(*file, run.locations, run.result);
  if (auto done = base::write_file_atomically(path, json::text_of(*file), base::Sync::Yes); !done)
    return fail(std::move(done.error()));
  const report::CompilerMap map = report::compiler_map(*file);
  for (const std::string& warning : map.warnings) console.say("[CompilerJSON] " + warning);
  if (auto done =
          base::write_file_atomically(report::compiler_path_of(path), map.text, base::Sync::Yes);
      !done)
    return fail(std::move(done.error()));
  return file;
}

/// A compiler file tells nothing of layers, and is not written.
void say_numbers(const WholeRunResult& run, Console& console) {
  if (const auto whole = report::whole_model(run.result))
    console.say("\n" + report::whole_model_block(*whole));
}

void say_end(const json::Value& content, const Checked& checked, const WholeRunResult& run,
             Console& console) {
  if (!checked.source.is_report) return say_numbers(run, console);
  const std::string path = checked.source.path.string();
  const report::Overview overview = report::overview(
      report::ops_of(content), report::executors_of(content), report::RowOrder::OrigIndex);
  const report::EndReport end{checked.model.name, path, &overview, report::whole_model(run.result)};
  console.say("\n" + report::saved_line(path));
  console.say_coloured(report::end_report(end, report::Colour::Yes),
                       report::end_report(end, report::Colour::No));
}

Result<WholeRunResult> run(const RunOptions& options, const Checked& checked,
                           const std::vector<std::string>& command, Console& console) {
  block_stop_signals();
  const fs::path cache = base::cache_folder();
  if (auto usable = store::check_cache_folder(cache); !usable) return fail(usable.error());
  auto store = store::SqliteStore::open(cache);
  if (!store) return fail(store.error());
  const auto& chip = checked.chips.chips.front();
  FarmSettings settings = farm_settings(options.common, command);
  settings.workers = 1;  // one job after the other
  settings.chips = {chip->spec};
  auto farm = LocalFarm::open(std::move(settings), **store);
  if (!farm) return fail(farm.error());
  WholeRunRequest request;
  request.options = options;
  request.model = checked.model.path;
  request.chip = chip;
  request.takes_map = takes_map(checked.chips, chip->spec);
  request.reader = checked.chips.machine.reader;
  request.reference = checked.chips.machine.reference;
  request.inputs = checked.inputs;
  request.tolerance = tolerance_of(checked.source.content, chip->spec);
  request.assignment = checked.assignment;
  request.assignment_path = checked.source.path;
  request.cache = cache;
  Result<WholeRunResult> out;
  {
    WholeModelRun whole(std::move(request), console, **store, **farm);
    out = whole.go();
  }
  if (out || out.error().code != ErrorCode::Cancelled)
    (*store)->append({store::RunEndedFact{(*farm)->run(), 0}});
  if (out && out->fresh) keep_cache_small(cache, **store, console);
  if (auto closed = (*store)->close(); !closed) console.error(closed.error().text());
  return out;
}

/// As the original calls the case.
std::string case_name(const Checked& checked) {
  return checked.model.name + report::subgraph_suffix(checked.subgraph) +
         (checked.subgraph ? "_full" : "_full_model");
}

void write_dump(const ToolOptions& options, const Checked& checked, const WholeRunResult& done,
                Console& console) {
  IrDumps dumps({.folder = options.dump_folder}, base::BlobFolder(base::cache_folder() / "blobs"));
  if (!dumps.wanted()) return;
  if (done.ir_dump) {
    if (auto written = dumps.write(*done.ir_dump, case_name(checked)); !written)
      console.error(written.error().text());
  }
  console.say(dumps.summary());
}

int end_of(const base::Error& error, Console& console) {
  console.error(error.text());
  const bool unsettled = error.code == ErrorCode::Unavailable || error.code == ErrorCode::Cancelled;
  return static_cast<int>(unsettled ? ExitCode::Unsettled : ExitCode::Failed);
}

}  // namespace

int cmd_run(RunOptions options, const std::vector<std::string>& command) {
  auto console =
      Console::open({options.common.verbose, options.common.quiet, options.common.log_file});
  if (!console) {
    std::fprintf(stderr, "Error: %s\n", console.error().text().c_str());
    return static_cast<int>(ExitCode::Failed);
  }
  const auto refuse = [&console](const base::Error& error) {
    console->error(error.text());
    return static_cast<int>(ExitCode::Failed);
  };
  auto checked = check(options);
  if (!checked) return refuse(checked.error());
  if (checked->subgraph && checked->subgraph->first > checked->subgraph->last) {
    console->say("Case generation skipped: --subgraph-from='" + options.common.subgraph_from +
                 "' comes after --subgraph-to='" + options.common.subgraph_to + "'");
    return static_cast<int>(ExitCode::Success);
  }
  if (auto enough = ensure_shell_limits(1); !enough) return refuse(enough.error());
  const domain::ChipSpec& chip = checked->chips.chips.front()->spec;
  console->say(report::chip_line(chip.name, chip.target));
  console->say_verbose("[ExecutorAssignments] from " + checked->source.path.string());
  if (const std::string line = idle_quantize_flags(options.common.quantize); !line.empty())
    console->say(line);
  say_missing_dumps(options.common.tool, checked->chips, *console);

  auto done = run(options, *checked, command, *console);
  if (!done) return end_of(done.error(), *console);
  console->say("\n" + report::whole_lines(checked->model.name, done->result));
  json::Value content = checked->source.content;
  if (checked->source.is_report) {
    auto written = update_report(checked->source.path, *done, *console);
    if (!written) {
      console->error(written.error().text());
      return static_cast<int>(ExitCode::Unsettled);
    }
    content = std::move(*written);
  }
  if (!console->silent()) say_end(content, *checked, *done, *console);
  write_dump(options.common.tool, *checked, *done, *console);
  if (const std::string line = report::failed_run_line(done->result); !line.empty())
    console->say("\n" + line);
  return static_cast<int>(report::passed(done->result) ? ExitCode::Success : ExitCode::Failed);
}

}  // namespace layerfarm::coordinator::app
