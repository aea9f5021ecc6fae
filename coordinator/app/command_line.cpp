#include "coordinator/app/command_line.h"

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/app/cmd_cache.h"
#include "coordinator/app/cmd_chips.h"
#include "coordinator/app/cmd_discover.h"
#include "coordinator/app/cmd_edit.h"
#include "coordinator/app/cmd_view.h"
#include "coordinator/app/recovery.h"
#include "shared/base/build_info.h"
#include "shared/base/exit_code.h"
#include "shared/protocol/messages.h"

namespace layerfarm::coordinator::app {
namespace {

using base::ExitCode;

/// "a,b" and repeated flags alike.
std::vector<std::string> split_commas(const std::vector<std::string>& values) {
  std::vector<std::string> out;
  for (const std::string& value : values) {
    std::stringstream stream(value);
    for (std::string part; std::getline(stream, part, ',');) {
      const auto first = part.find_first_not_of(' ');
      if (first == std::string::npos) continue;
      out.push_back(part.substr(first, part.find_last_not_of(' ') - first + 1));
    }
  }
  return out;
}

std::string version_text() {
  return "layerfarm " + std::string(base::kVersion) + " (commit " +
         std::string(base::build_commit()) + ", protocol " +
         std::to_string(protocol::kProtocolMin) + "-" + std::to_string(protocol::kProtocolMax) +
         ")";
}

/// A finite number in these bounds; CLI11's own range lets NaN pass.
CLI::Validator number_between(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        double number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool whole = error == std::errc() && end == text.data() + text.size();
        if (whole && std::isfinite(number) && number >= low && number <= high) return std::string();
        return fmt::format("'{}' is no number from {} to {}", text, low, high);
      },
      "NUMBER");
}

/// "512MB", "4 GiB", "1000": bytes; units are powers of 1024.
std::optional<std::int64_t> bytes_of(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || number <= 0) return std::nullopt;
  while (rest != end && *rest == ' ') ++rest;
  std::string unit(rest, end);
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  static const std::map<std::string, int> kShifts = {
      {"", 0},     {"B", 0},  {"K", 10},  {"KB", 10},  {"KIB", 10}, {"M", 20},  {"MB", 20},
      {"MIB", 20}, {"G", 30}, {"GB", 30}, {"GIB", 30}, {"T", 40},   {"TB", 40}, {"TIB", 40}};
  const auto shift = kShifts.find(unit);
  if (shift == kShifts.end() ||
      number > (std::numeric_limits<std::int64_t>::max() >> shift->second))
    return std::nullopt;
  return number << shift->second;
}

void add_bytes(CLI::App& app, const std::string& flag, std::int64_t& target,
               const std::string& help) {
  app.add_option_function<std::string>(
         flag,
         [flag, &target](const std::string& text) {
           const auto bytes = bytes_of(text);
           if (!bytes) throw CLI::ValidationError(flag, "'" + text + "' is no size such as 512MB");
           target = *bytes;
         },
         help)
      ->type_name("SIZE");
}

/// Seconds with a fraction, as milliseconds.
void add_seconds(CLI::App& app, const std::string& flag, std::int64_t& target_ms,
                 const std::string& help) {
  app.add_option_function<double>(
         flag,
         [&target_ms](const double& seconds) {
           target_ms = static_cast<std::int64_t>(seconds * 1000.0);
         },
         help)
      ->check(number_between(0.001, 1e7))
      ->type_name("SECONDS");
}

/// `name=value`, several times.
void add_dims(CLI::App& app, std::vector<std::pair<std::string, std::int64_t>>& dims) {
  app.add_option_function<std::vector<std::string>>(
         "--dim",
         [&dims](const std::vector<std::string>& values) {
           for (const std::string& text : values) {
             const auto equals = text.rfind('=');
             std::int64_t number = -1;
             const char* const end = text.data() + text.size();
             const char* const begin = equals == std::string::npos ? end : text.data() + equals + 1;
             const auto [rest, error] = std::from_chars(begin, end, number);
             if (equals == 0 || error != std::errc() || rest != end || number < 1) {
               throw CLI::ValidationError(
                   "--dim", "'" + text + "' is not NAME=NUMBER with a number of at least 1");
             }
             const std::string name = text.substr(0, equals);
             for (const auto& [other, value] : dims) {
               if (other != name || value == number) continue;
               throw CLI::ValidationError(
                   "--dim", fmt::format("'{}' is given as {} and as {}", name, value, number));
             }
             dims.emplace_back(name, number);
           }
         },
         "Value of a dynamic dimension (repeatable); every other one is 1")
      ->type_name("NAME=N")
      ->allow_extra_args(false);
}

void add_discover(CLI::App& app, DiscoverOptions& options, bool& chosen) {
  CLI::App* sub = app.add_subcommand(
      "discover", "Find, for each layer of a model, the executors of a chip that run it correctly");
  sub->callback([&chosen] { chosen = true; });
  sub->add_option("--model", options.models, "ONNX model; repeatable, globs allowed")
      ->type_name("FILE")
      ->allow_extra_args(false);
  sub->add_option("--chip,--torq-hw", options.chip, "Chip, comma list of chips, NAME.group, or all")
      ->capture_default_str();
  sub->add_option("--chips-dir", options.chips_dir, "Folder with chip files, looked at first")
      ->type_name("DIR");
  sub->add_option("--output-dir", options.output_dir,
                  "Folder for the JSON files (default: the current one)")
      ->type_name("DIR");
  sub->add_option("--workers", options.workers, "Worker processes (default: one per core)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  add_dims(*sub, options.dims);
  sub->add_option_function<std::string>(
         "--layer-unit",
         [&options](const std::string& name) {
           options.unit = *domain::layer_unit_from_name(name);
         },
         "What a layer is: node, or qdq (an operator with the Q/DQ around it, for quantized "
         "models)")
      ->check(CLI::IsMember({"node", "qdq"}))
      ->type_name("UNIT");

  sub->add_flag("--skip-mode", options.skip_mode,
                "Stop a layer at its first success, in priority order");
  sub->add_option("--skip-executors", options.skip_executors, "Executors to leave out")
      ->type_name("A,B")
      ->allow_extra_args(false);
  sub->add_option("--skip-ops", options.skip_ops, "ONNX op types to leave out")
      ->type_name("A,B")
      ->allow_extra_args(false);
  sub->add_option("--executors", options.executors, "Only these executors")
      ->type_name("A,B")
      ->allow_extra_args(false);
  sub->add_option("--layers", options.layers,
                  "Only layers that match (exact id, pattern with * or ?, or part of the id)")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  sub->add_option_function<std::string>(
         "--dedup-layers",
         [&options](const std::string& mode) {
           options.dedup = mode == "exact" ? Dedup::Exact : Dedup::IgnoreFloatValues;
         },
         "Copy results between layers that differ only in the values of float constants; =exact: "
         "in nothing")
      ->expected(0, 1)
      ->default_str("")
      ->check(CLI::IsMember({"", "exact"}))
      ->type_name("[=exact]");
  sub->add_flag("--recompute-cache", options.recompute,
                "Test everything again, whatever is stored");

  sub->add_flag("--collect-timing", options.collect_timing,
                "Measure run time (and keep compile time) of each working case");
  sub->add_option("--timing-runs", options.timing_runs, "Runs of a timing")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000));
  sub->add_flag("--recommend-by-timing", options.recommend_by_timing,
                "Recommend the fastest executor instead of the first in priority");

  sub->add_option("--tolerance-avg", options.tolerance_avg,
                  "Relative difference above which an element is counted")
      ->check(number_between(0, 1e9));
  sub->add_option("--tolerance-max", options.tolerance_max,
                  "Relative difference above which an element fails the case")
      ->check(number_between(0, 1e9));
  sub->add_option("--tolerance-abs-frac", options.tolerance_abs_frac,
                  "Elements count only above this share of the largest expected value")
      ->check(number_between(0, 1));
  sub->add_option("--inputs", options.inputs_dir,
                  "Folder of .npz, .npy or .pb files, by input name, instead of random inputs")
      ->type_name("DIR");

  add_seconds(*sub, "--compile-timeout", options.compile_timeout_ms,
              "Time limit of one compilation (default: 300)");
  add_seconds(*sub, "--run-timeout", options.run_timeout_ms,
              "Time limit of one run (default: 240)");
  add_bytes(*sub, "--memory", options.memory_bytes,
            "Memory limit of one step, e.g. 4GB (default: three quarters of the machine's)");
  add_seconds(*sub, "--wait-workers", options.wait_workers_ms,
              "How long a case may wait for a worker that can run it (default: 0 locally)");
  sub->add_option("--keep-failed", options.keep_failed,
                  "Folder that gets everything about each failed case")
      ->type_name("DIR");
  sub->add_option_function<std::string>(
         "--fail-on",
         [&options](const std::string& what) {
           options.fail_on = what == "error"   ? FailOn::Error
                             : what == "never" ? FailOn::Never
                                               : FailOn::Difference;
         },
         "What makes the exit code 1: difference (an error too), error, never")
      ->check(CLI::IsMember({"error", "difference", "never"}))
      ->type_name("WHAT");
  sub->add_flag("--dry-run", options.dry_run,
                "Say what would run and what is known; run nothing, and write nothing outside the "
                "cache folder");
  sub->add_flag("--json", options.json, "Write the list of results to standard output as JSON");
  sub->add_option("--log-file", options.log_file,
                  "Everything that is printed goes to this file too")
      ->type_name("FILE");
  sub->add_flag("-v,--verbose", options.verbose, "Say more");
  sub->add_flag("-q,--quiet", options.quiet, "Say nothing on the console");
}

void add_view(CLI::App& app, ViewOptions& options, bool& chosen) {
  CLI::App* sub =
      app.add_subcommand("view", "Show a report, one of its layers, or a compiler file");
  sub->callback([&chosen] { chosen = true; });
  sub->add_option("config", options.config, "Report or compiler file (with --model: the layer)");
  sub->add_option("layer", options.layer, "Layer id");
  sub->add_option("--model", options.model, "Model whose report is meant")->type_name("FILE");
  sub->add_option("--output-dir", options.output_dir,
                  "Folder of the JSON files (default: the current one)")
      ->type_name("DIR");
  sub->add_option("--chip,--torq-hw", options.chip, "Which chip's report, when there are several");
  sub->add_flag("--compat", options.compat,
                "Exit 0 for a broken file or an unknown layer, as torq-gen-config does");
}

void add_edit(CLI::App& app, EditOptions& options, bool& chosen) {
  CLI::App* sub = app.add_subcommand("edit", "Change recommendations and tolerances in a report");
  sub->callback([&chosen] { chosen = true; });
  sub->add_option("config", options.config, "Report");
  sub->add_option("--model", options.model, "Model whose report is meant")->type_name("FILE");
  sub->add_option("--output-dir", options.output_dir,
                  "Folder of the JSON files (default: the current one)")
      ->type_name("DIR");
  sub->add_option("--chip,--torq-hw", options.chip, "Which chip's report, when there are several");
  sub->add_option("--layer", options.layer, "Layer id, part of it, pattern with * or ?, or ALL");
  sub->add_option("--executor", options.executor, "New recommendation; null = none");
  sub->add_option("--tolerance-avg", options.tolerance_avg, "New fp_avg_tol of the layer")
      ->check(number_between(0, 1e9));
  sub->add_option("--tolerance-max", options.tolerance_max, "New fp_max_tol of the layer")
      ->check(number_between(0, 1e9));
  sub->add_option_function<std::string>(
         "--list", [&options](const std::string& filter) { options.list = filter; },
         "List the layers, or those that match")
      ->expected(0, 1)
      ->default_str("")
      ->type_name("[FILTER]");
}

void add_chips(CLI::App& app, ChipsOptions& options, bool& chosen) {
  CLI::App* sub = app.add_subcommand("chips", "List the chips, and what this machine has for each");
  sub->callback([&chosen] { chosen = true; });
  sub->add_option("--chips-dir", options.chips_dir, "Folder with chip files, looked at first")
      ->type_name("DIR");
  sub->add_flag("--json", options.json, "As JSON on standard output");
}

void add_cache(CLI::App& app, CacheOptions& options, bool& chosen) {
  CLI::App* sub = app.add_subcommand("cache", "What is stored, and making room");
  sub->require_subcommand(0, 1);
  sub->callback([&chosen] { chosen = true; });
  CLI::App* stats = sub->add_subcommand("stats", "How much is stored (default)");
  stats->add_flag("--json", options.json, "As JSON on standard output");
  CLI::App* prune =
      sub->add_subcommand("prune", "Remove the blobs that were used longest ago, down to a bound");
  prune->callback([&options] { options.prune = true; });
  add_bytes(*prune, "--max-size", options.max_bytes,
            "Bound for the blobs, e.g. 2GB (default: 20GB)");
}

}  // namespace

int run_command_line(int argc, char** argv) {
  // A worker or a pager that goes away shows up as a failed write, not as our death.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is a full disk like any other
  CLI::App app(
      "layerfarm finds, for each layer of an ONNX model, the executor of a chip that runs it "
      "correctly and fastest.",
      "layerfarm");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);

  DiscoverOptions discover;
  ViewOptions view;
  EditOptions edit;
  ChipsOptions chips;
  CacheOptions cache;
  bool do_discover = false;
  bool do_view = false;
  bool do_edit = false;
  bool do_chips = false;
  bool do_cache = false;
  add_discover(app, discover, do_discover);
  add_view(app, view, do_view);
  add_edit(app, edit, do_edit);
  add_chips(app, chips, do_chips);
  add_cache(app, cache, do_cache);

  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  const auto is_asked = [&](const CLI::App* sub) { return sub->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' &&
      std::none_of(subcommands.begin(), subcommands.end(), is_asked)) {
    std::string known;
    for (const CLI::App* sub : subcommands) known += (known.empty() ? "" : ", ") + sub->get_name();
    std::cerr << "Error: no subcommand '" << argv[1] << "'; there are: " << known << "\n";
    return static_cast<int>(ExitCode::Usage);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done, std::cout, std::cerr);
  } catch (const CLI::ParseError& error) {
    // CLI11's own codes are many; ours is one for every usage error.
    app.exit(error, std::cerr, std::cerr);
    return static_cast<int>(ExitCode::Usage);
  }
  discover.skip_executors = split_commas(discover.skip_executors);
  discover.skip_ops = split_commas(discover.skip_ops);
  discover.executors = split_commas(discover.executors);
  view.colour = ::isatty(STDOUT_FILENO) == 1;
  edit.recover = [](const std::filesystem::path& report) { return recover_report(report); };

  const int code = do_discover ? cmd_discover(discover, {argv, argv + argc})
                   : do_view   ? cmd_view(view)
                   : do_edit   ? cmd_edit(edit)
                   : do_chips  ? cmd_chips(chips)
                               : cmd_cache(cache);
  // Results that did not arrive are no success.
  if (std::cout.flush()) return code;
  std::cerr << "Error: cannot write to standard output\n";
  return std::max(code, static_cast<int>(ExitCode::Failed));
}

}  // namespace layerfarm::coordinator::app
