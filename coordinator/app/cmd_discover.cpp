#include "coordinator/app/cmd_discover.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "coordinator/app/chip_choice.h"
#include "coordinator/app/console.h"
#include "coordinator/app/discover_run.h"
#include "coordinator/app/input_files.h"
#include "coordinator/app/local_farm.h"
#include "coordinator/app/model_changes.h"
#include "coordinator/app/reader_calls.h"
#include "coordinator/app/recovery.h"
#include "coordinator/app/shell_limits.h"
#include "coordinator/store/cache.h"
#include "coordinator/store/sqlite_store.h"
#include "shared/base/exit_code.h"
#include "shared/base/near_names.h"
#include "shared/base/places.h"
#include "shared/base/text.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::ErrorCode;
using base::ExitCode;
using base::fail;
using base::Result;

namespace {

std::vector<std::string> executors_of(const ChosenChips& chips) {
  std::set<std::string> names;
  for (const auto& chip : chips.chips) {
    for (const domain::ExecutorSpec& executor : chip->spec.executors) names.insert(executor.name);
  }
  return {names.begin(), names.end()};
}

/// Gives the executors the names that the chips give them. A misspelt one would silently test
/// nothing.
Result<void> check_executors(DiscoverOptions& options, const ChosenChips& chips) {
  const std::vector<std::string> known = executors_of(chips);
  for (std::string& name : options.executors) {
    auto found = base::find_any_case(known, name);
    if (!found) {
      return fail(ErrorCode::InvalidInput, "--executors: no chip of this run has an executor '" +
                                               name + "'; they have: " + base::join(known));
    }
    name = std::move(*found);
  }
  for (std::string& name : options.skip_executors)
    name = base::find_any_case(known, name).value_or(name);
  return {};
}

/// Names that select nothing are likely misspelt, and so is a list that leaves nothing to test; but
/// leaving out does no harm (it may be meant: such a run takes old results out of the report), so a
/// line is enough.
void warn_of_skipped_executors(const DiscoverOptions& options, const ChosenChips& chips,
                               Console& console) {
  const std::vector<std::string> known = executors_of(chips);
  const auto& skipped = options.skip_executors;
  for (const std::string& name : skipped) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      console.say("[SkipExecutors] no chip of this run has an executor '" + name + "'");
  }
  const std::vector<std::string>& asked = options.executors.empty() ? known : options.executors;
  if (std::all_of(asked.begin(), asked.end(), [&skipped](const std::string& name) {
        return std::find(skipped.begin(), skipped.end(), name) != skipped.end();
      })) {
    console.say("[SkipExecutors] Warning: nothing is tested, since every executor " +
                std::string(options.executors.empty() ? "of the chips of this run"
                                                      : "that --executors names") +
                " is left out (" + base::join(asked) + ")");
  }
}

/// The folder itself, or where making it would begin.
fs::path nearest_there(fs::path folder) {
  std::error_code error;
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

/// Makes the folder and sees that files can be made in it, before hours are spent. A dry run only
/// looks whether that could be done.
Result<fs::path> check_output_folder(const std::string& given, bool dry_run) {
  const fs::path folder =
      fs::absolute(given.empty() ? fs::path(".") : fs::path(given)).lexically_normal();
  const fs::path there = dry_run ? nearest_there(folder) : folder;
  std::error_code error;
  if (!dry_run) {
    fs::create_directories(folder, error);
  } else if (!fs::is_directory(there, error) && !error) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (error)
    return fail(ErrorCode::InvalidInput,
                "cannot make the output folder " + folder.string() + ": " + error.message());
  if (::access(there.c_str(), W_OK | X_OK) != 0) {
    return fail(ErrorCode::InvalidInput, "cannot write into the output folder " + folder.string() +
                                             ": " + std::generic_category().message(errno));
  }
  return folder;
}

ExitCode exit_code(const RunResult& result, FailOn fail_on) {
  if (result.unsettled > 0 || result.interrupted || result.files_failed) return ExitCode::Unsettled;
  if (result.model_failed) return ExitCode::Failed;
  if (fail_on == FailOn::Never) return ExitCode::Success;
  if (result.failing_errors > 0) return ExitCode::Failed;
  return fail_on == FailOn::Difference && result.failing_differences > 0 ? ExitCode::Failed
                                                                         : ExitCode::Success;
}

Result<RunResult> run(DiscoverRequest request, Console& console) {
  block_stop_signals();
  if (auto usable = store::check_cache_folder(request.cache); !usable) return fail(usable.error());
  auto store = store::SqliteStore::open(request.cache);
  if (!store) return fail(store.error());
  if (!request.options.dry_run) {
    auto recovered = recover_folder(**store, request.cache, request.output_folder);
    if (!recovered) return fail(recovered.error());
    for (const fs::path& path : *recovered)
      console.say("[ExecutorJSON] a run did not end; " + path.string() + " was brought up to date");
  }
  FarmSettings settings = farm_settings(request.options, request.command);
  settings.workers = request.options.workers;
  for (const auto& chip : request.chips) settings.chips.push_back(chip->spec);
  auto farm = LocalFarm::open(std::move(settings), **store);
  if (!farm) return fail(farm.error());
  const fs::path cache = request.cache;
  DiscoverRun run(std::move(request), console, **store, (*farm)->run());
  const auto dispatcher = (*farm)->dispatcher(run);
  const RunResult result = run.go(*dispatcher);
  if (!result.interrupted) (*store)->append({store::RunEndedFact{(*farm)->run(), 0}});
  if (result.fresh > 0) keep_cache_small(cache, **store, console);
  if (auto closed = (*store)->close(); !closed) console.error(closed.error().text());
  return result;
}

}  // namespace

int cmd_discover(DiscoverOptions options, const std::vector<std::string>& command) {
  // A dry run writes nothing outside the cache folder: it leaves the log of the real run alone too.
  const std::string log_file = options.dry_run ? std::string() : options.log_file;
  auto console = Console::open({options.verbose, options.quiet, log_file});
  if (!console) {
    std::fprintf(stderr, "Error: %s\n", console.error().text().c_str());
    return static_cast<int>(ExitCode::Failed);
  }
  const auto refuse = [&console](const base::Error& error) {
    console->error(error.text());
    return static_cast<int>(ExitCode::Failed);
  };
  if (options.models.empty()) return refuse({ErrorCode::InvalidInput, "--model is required"});
  if (options.workers == 0) options.workers = usable_cores().size();
  if (auto enough = ensure_shell_limits(options.workers); !enough) return refuse(enough.error());
  if (auto checked = check_model_changes(options); !checked) return refuse(checked.error());
  auto models = expand_models(options.models);
  if (!models) return refuse(models.error());
  std::error_code ignored;
  if (!options.save_bf16_model.empty() &&
      fs::equivalent(models->front().path, options.save_bf16_model, ignored))
    return refuse({ErrorCode::InvalidInput,
                   "--save-bf16-model names the model itself: " + options.save_bf16_model});
  if (!options.save_bf16_model.empty() && models->size() > 1) {
    return refuse({ErrorCode::InvalidInput, "--save-bf16-model names one file, and there are " +
                                                std::to_string(models->size()) + " models"});
  }
  auto inputs = find_inputs(options.inputs_dir);
  if (!inputs) return refuse(inputs.error());
  if (auto found = find_calibration(options.quantize); !found) return refuse(found.error());
  auto chips = find_chips(options.chip, options.chips_dir, options.tool);
  if (!chips) return refuse(chips.error());
  if (auto checked = check_executors(options, *chips); !checked) return refuse(checked.error());
  if (!options.dry_run) {
    for (const auto& [flag, wanted] : {std::pair("--keep-failed", &options.keep_failed),
                                       std::pair("--debug-ir", &options.tool.dump_folder)}) {
      if (auto checked = check_writable_folder(flag, *wanted); !checked)
        return refuse(checked.error());
    }
  }
  auto folder = check_output_folder(options.output_dir, options.dry_run);
  if (!folder) return refuse(folder.error());

  if (!options.save_bf16_model.empty() && !options.dry_run) {
    if (auto saved = save_bf16_model(models->front().path, options); !saved)
      return refuse(saved.error());
    console->say("[BF16] model saved to: " + options.save_bf16_model);
  }

  warn_of_skipped_executors(options, *chips, *console);
  if (const std::string line = idle_quantize_flags(options.quantize); !line.empty())
    console->say(line);
  say_missing_dumps(options.tool, *chips, *console);
  if (chips->own_hw_type) options.tool.hw_type.clear();  // nothing else than without the flag
  const FailOn fail_on = options.fail_on;
  DiscoverRequest request;
  request.options = std::move(options);
  request.models = std::move(*models);
  request.chips = std::move(chips->chips);
  request.machine = std::move(chips->machine);
  request.inputs = std::move(*inputs);
  request.output_folder = std::move(*folder);
  request.cache = base::cache_folder();
  request.command = command;
  auto result = run(std::move(request), *console);
  if (!result) return refuse(result.error());
  return static_cast<int>(exit_code(*result, fail_on));
}

}  // namespace layerfarm::coordinator::app
