#include "coordinator/app/cmd_discover.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>
#include <set>

#include "coordinator/app/chip_catalog.h"
#include "coordinator/app/console.h"
#include "coordinator/app/discover_run.h"
#include "coordinator/app/input_files.h"
#include "coordinator/app/recovery.h"
#include "coordinator/app/shell_limits.h"
#include "coordinator/store/cache.h"
#include "coordinator/store/sqlite_store.h"
#include "shared/base/exit_code.h"
#include "shared/base/files.h"
#include "shared/base/leftovers.h"
#include "shared/base/places.h"
#include "shared/base/process_identity.h"
#include "shared/base/text.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::ErrorCode;
using base::ExitCode;
using base::fail;
using base::Result;

namespace {

/// Bound for blobs where `layerfarm cache prune` is never called.
constexpr std::uint64_t kCacheBound = std::uint64_t{20} << 30;

fs::path worker_program() { return base::program_folder() / "layerfarm-worker"; }

/// Every chip that this machine can use now, for people whose chip it cannot.
std::string usable_chips(const ChipCatalog& catalog) {
  std::vector<domain::ChipSpec> chips;
  for (const std::string& name : catalog.names()) {
    if (auto chip = catalog.chip(name)) chips.push_back(std::move(chip->spec));
  }
  std::vector<std::string> found;
  if (const auto machine = describe_machine(worker_program(), chips)) {
    for (std::size_t i = 0; i < chips.size(); ++i) {
      if (machine->abilities[i].found) found.push_back(chips[i].name);
    }
  }
  return found.empty() ? "none; see `layerfarm chips`" : base::join(found);
}

/// What is missing for a chip, and what to do.
std::string missing_text(const CatalogChip& chip, const protocol::Ability& ability,
                         const ChipCatalog& catalog) {
  std::string out;
  if (!chip.known) {
    out = "no chip file is called '" + chip.spec.name +
          "' (nearest: " + base::join(catalog.nearest(chip.spec.name, 3)) +
          "), and as a torq target it ";
  } else {
    out = "chip " + chip.spec.name + " ";
  }
  out += "cannot be used here: " + ability.missing;
  if (!ability.how_to_get.empty()) out += "\n  " + ability.how_to_get;
  return out + "\n  Chips that this machine can use now: " + usable_chips(catalog);
}

struct Chips {
  std::vector<std::shared_ptr<const plan::PlanChip>> chips;
  MachineDescription machine;
  bool own_hw_type = true;  ///< --torq-hw-type names what the chip files name anyway
};

/// The chips as the user's options change them, and whether one has another hardware type for it.
Result<std::vector<domain::ChipSpec>> with_user_options(const std::vector<CatalogChip>& chips,
                                                        const ToolOptions& options,
                                                        const ChipCatalog& files, bool& own) {
  std::vector<domain::ChipSpec> out;
  for (const CatalogChip& chip : chips) {
    auto spec = with_tool_options(chip.spec, options);
    if (!spec) return fail(spec.error());
    const auto before = files.chip(chip.spec.name);
    own = own && before && before->spec.hw_type == spec->hw_type;
    out.push_back(std::move(*spec));
  }
  return out;
}

Result<Chips> find_chips(const DiscoverOptions& options) {
  std::error_code error;
  if (!options.chips_dir.empty() && !fs::is_directory(options.chips_dir, error)) {
    return fail(ErrorCode::NotFound, "--chips-dir: no folder " + options.chips_dir);
  }
  const ChipCatalog catalog = ChipCatalog::standard(options.chips_dir);
  auto selection =
      ChipCatalog::standard(options.chips_dir, options.tool.hw_type).select(options.chip);
  if (!selection) return fail(selection.error());
  Chips out;
  auto changed = with_user_options(selection->chips, options.tool, catalog, out.own_hw_type);
  if (!changed) return fail(changed.error());
  const std::vector<domain::ChipSpec>& specs = *changed;
  auto machine = describe_machine(worker_program(), specs);
  if (!machine) return fail(machine.error());
  out.machine = std::move(*machine);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const protocol::Ability& ability = out.machine.abilities[i];
    if (!ability.found && selection->only_found) continue;
    if (!ability.found)
      return fail(ErrorCode::Unavailable, missing_text(selection->chips[i], ability, catalog));
    auto chip = std::make_shared<plan::PlanChip>();
    chip->spec = specs[i];
    chip->tool = ability.identity;
    chip->needs_prepare = ability.needs_prepare;
    chip->needs_compile = ability.needs_compile;
    chip->batch = ability.batch;
    chip->place = out.machine.cpu_model;
    out.chips.push_back(std::move(chip));
  }
  if (out.chips.empty())
    return fail(ErrorCode::Unavailable,
                "no chip of this machine can be used; see `layerfarm chips`");
  return out;
}

/// A misspelt executor would silently test nothing.
Result<void> check_executors(const DiscoverOptions& options, const Chips& chips) {
  std::set<std::string> known;
  for (const auto& chip : chips.chips) {
    for (const domain::ExecutorSpec& executor : chip->spec.executors) known.insert(executor.name);
  }
  for (const std::string& name : options.executors) {
    if (known.contains(name)) continue;
    return fail(ErrorCode::InvalidInput,
                "--executors: no chip of this run has an executor '" + name +
                    "'; they have: " + base::join({known.begin(), known.end()}));
  }
  return {};
}

/// Names that select nothing are likely misspelt; leaving out what is not there does no harm, so a
/// line is enough.
void warn_of_unknown_executors(const DiscoverOptions& options, const Chips& chips,
                               Console& console) {
  for (const std::string& name : options.skip_executors) {
    const bool known = std::any_of(chips.chips.begin(), chips.chips.end(), [&](const auto& chip) {
      return chip->spec.executor(name) != nullptr;
    });
    if (!known) console.say("[SkipExecutors] no chip of this run has an executor '" + name + "'");
  }
}

/// Dumps that will not come are said before hours are spent.
void warn_of_missing_dumps(const DiscoverOptions& options, const Chips& chips, Console& console) {
  if (options.tool.dump_folder.empty()) return;
  for (const auto& chip : chips.chips) {
    if (!can_dump_ir(chip->spec)) {
      console.say("[DebugIR] chip " + chip->spec.name + ": its toolchain " + chip->spec.toolchain +
                  " has no intermediate forms to write");
    }
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

/// The socket that local workers connect to: in a folder only this user can enter.
Result<base::ScratchFolder> socket_folder(const fs::path& cache) {
  // A socket's path has at most 107 characters; a deep cache folder is no reason to fail.
  constexpr std::size_t kMostPath = 80;
  const fs::path parent = cache / store::kSocketsFolder;
  base::sweep_leftovers(parent);  // of coordinators that were killed
  std::error_code error;
  const fs::path other = fs::temp_directory_path(error);
  return base::ScratchFolder::make(parent.string().size() <= kMostPath || error ? parent : other,
                                   "s");
}

ExitCode exit_code(const RunResult& result, FailOn fail_on) {
  if (result.unsettled > 0 || result.interrupted || result.files_failed) return ExitCode::Unsettled;
  if (result.model_failed) return ExitCode::Failed;
  if (fail_on == FailOn::Never) return ExitCode::Success;
  if (result.failing_errors > 0) return ExitCode::Failed;
  return fail_on == FailOn::Difference && result.failing_differences > 0 ? ExitCode::Failed
                                                                         : ExitCode::Success;
}

/// Attempts of a later coordinator must have greater numbers than those of any earlier one, so the
/// epoch is the wall clock.
std::uint64_t make_epoch() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

Result<std::string> write_chips(const fs::path& folder,
                                const std::vector<std::shared_ptr<const plan::PlanChip>>& chips) {
  std::string text = "[";
  for (const auto& chip : chips)
    text += (text.size() > 1 ? "," : "") + domain::chip_json(chip->spec);
  const fs::path path = folder / "chips.json";
  if (auto written = base::write_file_atomically(path, text + "]", base::Sync::No); !written)
    return fail(written.error());
  return path.string();
}

/// Blobs beyond the bound go at the end of a run that made some; a warm run does not pay for
/// looking.
void keep_cache_small(const fs::path& cache, store::SqliteStore& store, Console& console) {
  auto pruned = store::prune_cache(cache, store, {.blob_bytes = kCacheBound, .compact = false});
  if (!pruned) {
    console.say_verbose("[Cache] " + pruned.error().text());
  } else if (pruned->blobs > 0) {
    console.say_verbose(
        fmt::format("[Cache] {} blobs used longest ago were removed", pruned->blobs));
  }
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
  store::RunStart start;
  start.process = base::this_process();
  start.started_ms = static_cast<std::int64_t>(std::time(nullptr)) * 1000;
  start.command = request.command;
  auto run_id = (*store)->begin_run(start);
  if (!run_id) return fail(run_id.error());

  auto sockets = socket_folder(request.cache);
  if (!sockets) return fail(sockets.error());
  auto chips_file = write_chips(sockets->path(), request.chips);
  if (!chips_file) return fail(chips_file.error());
  const std::string endpoint = "ipc://" + (sockets->path() / "w").string();
  transport::Context context;
  auto socket = transport::Socket::bind(context, endpoint, transport::LinkSettings{});
  if (!socket) return fail(socket.error());
  const std::uint64_t epoch = make_epoch();
  WorkerHub hub(std::move(*socket), epoch);
  LocalWorkers workers({worker_program(),
                        share_cores(request.options.workers),
                        {"--connect", endpoint, "--chips", *chips_file}});

  Dispatcher::Settings settings;
  settings.policy.first_attempt = (epoch << 24) + 1;
  settings.policy.wait_workers = std::chrono::milliseconds(request.options.wait_workers_ms);
  settings.epoch = epoch;
  settings.run = *run_id;
  settings.limits.compile_timeout_ms = request.options.compile_timeout_ms;
  settings.limits.run_timeout_ms = request.options.run_timeout_ms;
  settings.limits.memory_bytes = request.options.memory_bytes;
  for (const auto& chip : request.chips) settings.chips.push_back(chip->spec);
  const fs::path cache = request.cache;
  DiscoverRun run(std::move(request), console, **store, *run_id);
  Dispatcher dispatcher(std::move(settings), hub, **store, &workers, run);
  const RunResult result = run.go(dispatcher);
  if (!result.interrupted) (*store)->append({store::RunEndedFact{*run_id, 0}});
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
  auto models = expand_models(options.models);
  if (!models) return refuse(models.error());
  auto inputs = find_inputs(options.inputs_dir);
  if (!inputs) return refuse(inputs.error());
  auto chips = find_chips(options);
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

  warn_of_unknown_executors(options, *chips, *console);
  warn_of_missing_dumps(options, *chips, *console);
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
