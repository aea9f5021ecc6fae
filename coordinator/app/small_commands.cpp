#include "coordinator/app/small_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "coordinator/app/flag_values.h"
#include "coordinator/app/recovery.h"
#include "coordinator/app/report_choice.h"

namespace layerfarm::coordinator::app {
namespace {

void add_view(CLI::App& app, ViewOptions& options, ChosenCommand& chosen) {
  CLI::App* sub =
      app.add_subcommand("view", "Show a report, one of its layers, or a compiler file");
  sub->callback([&] { chosen = [&] { return cmd_view(options); }; });
  sub->add_option("config", options.config, "Report or compiler file (with --model: the layer)")
      ->type_name("JSON");
  sub->add_option("layer", options.layer, "Layer id, part of it, pattern with * or ?, or ALL");
  sub->add_option("--model", options.model, "Model whose report is meant")->type_name("FILE");
  sub->add_option("--output-dir", options.output_dir,
                  "Folder of the JSON files (default: the current one)")
      ->type_name("DIR");
  sub->add_option("--chip,--torq-hw", options.chip, "Which chip's report, when there are several");
  add_subgraph_ends(*sub, options.subgraph);
  sub->add_flag("--compat", options.compat,
                "Exit 0 for a broken file or an unknown layer, as torq-gen-config does");
}

/// A bound of a layer's tolerance: a number from 0 on, or "auto", which takes a person's back.
void add_bound(CLI::App& app, const std::string& flag, const std::string& key, double most,
               std::vector<std::string>& automatic, const std::function<void(double)>& set) {
  CLI::Validator number = number_between(0, most);
  const auto check = [number, most](const std::string& text) {
    return text == "auto" || number(text).empty()
               ? std::string()
               : fmt::format("'{}' is no number from 0 to {}, nor auto", text, most);
  };
  app.add_option_function<std::string>(
         flag,
         [key, set, &automatic](const std::string& text) {
           if (text == "auto") return automatic.push_back(key);
           set(std::stod(text));
         },
         "New " + key + " of the layer; auto = the chip's and the flags' again")
      ->check(CLI::Validator(check, ""))
      ->type_name("NUMBER|auto");
}

void add_edit(CLI::App& app, EditOptions& options, ChosenCommand& chosen) {
  CLI::App* sub = app.add_subcommand("edit", "Change recommendations and tolerances in a report");
  sub->callback([&] { chosen = [&] { return cmd_edit(options); }; });
  sub->add_option("config", options.config, "Report")->type_name("REPORT");
  sub->add_option("--model", options.model, "Model whose report is meant")->type_name("FILE");
  sub->add_option("--output-dir", options.output_dir,
                  "Folder of the JSON files (default: the current one)")
      ->type_name("DIR");
  sub->add_option("--chip,--torq-hw", options.chip, "Which chip's report, when there are several");
  add_subgraph_ends(*sub, options.subgraph);
  sub->add_option("--layer", options.layer, "Layer id, part of it, pattern with * or ?, or ALL");
  sub->add_option("--executor", options.executor,
                  "New recommendation; null = none, auto = what the rule says");
  add_bound(*sub, "--tolerance-avg", "fp_avg_tol", 1e9, options.automatic,
            [&options](double number) { options.tolerance_avg = number; });
  add_bound(*sub, "--tolerance-max", "fp_max_tol", 1e9, options.automatic,
            [&options](double number) { options.tolerance_max = number; });
  add_bound(*sub, "--tolerance-abs-frac", "fp_abs_tol_frac", 1, options.automatic,
            [&options](double number) { options.tolerance_abs_frac = number; });
  add_bound(*sub, "--tolerance-int", "int_tol", 1e9, options.automatic, [&options](double number) {
    const auto whole = static_cast<std::uint32_t>(number);
    if (static_cast<double>(whole) != number)
      throw CLI::ValidationError("--tolerance-int", "must be a whole number, as integers differ");
    options.tolerance_int = whole;
  });
  sub->add_option_function<std::string>(
         "--list", [&options](const std::string& filter) { options.list = filter; },
         "List the layers, or those that match")
      ->expected(0, 1)
      ->default_str("")
      ->type_name("[FILTER]");
}

void add_compare(CLI::App& app, CompareOptions& options, ChosenCommand& chosen) {
  CLI::App* sub = app.add_subcommand(
      "compare", "What changed between two reports, or two compiler files; ends as diff does");
  sub->callback([&] { chosen = [&] { return cmd_compare(options); }; });
  sub->add_option("a", options.a, "Report or compiler file (with --model: or an output folder)")
      ->required()
      ->type_name("JSON");
  sub->add_option("b", options.b, "The other one")->required()->type_name("JSON");
  sub->add_option("--model", options.model, "Model whose files are meant where a folder is named")
      ->type_name("FILE");
  sub->add_option("--chip,--torq-hw", options.chip, "Which chip's report, when there are several");
  add_subgraph_ends(*sub, options.subgraph);
  sub->add_option("--time-threshold", options.time_threshold_percent,
                  "Change of a run time, in percent, beyond which it counts")
      ->capture_default_str()
      ->check(number_between(0, 1e9))
      ->type_name("PERCENT");
  sub->add_flag("--json", options.json, "As JSON on standard output");
}

void add_chips(CLI::App& app, ChipsOptions& options, ChosenCommand& chosen) {
  CLI::App* sub = app.add_subcommand("chips", "List the chips, and what this machine has for each");
  sub->callback([&] { chosen = [&] { return cmd_chips(options); }; });
  sub->add_option("--chips-dir", options.chips_dir, "Folder with chip files, looked at first")
      ->type_name("DIR");
  sub->add_flag("--json", options.json, "As JSON on standard output");
}

void add_cache(CLI::App& app, CacheOptions& options, ChosenCommand& chosen) {
  CLI::App* sub = app.add_subcommand("cache", "What is stored, and making room");
  sub->require_subcommand(0, 1);
  sub->callback([&] { chosen = [&] { return cmd_cache(options); }; });
  CLI::App* stats = sub->add_subcommand("stats", "How much is stored (default)");
  stats->add_flag("--json", options.json, "As JSON on standard output");
  CLI::App* prune =
      sub->add_subcommand("prune", "Remove the blobs that were used longest ago, down to a bound");
  prune->callback([&options] { options.prune = true; });
  add_bytes(*prune, "--max-size", options.max_bytes,
            "Bound for the blobs, e.g. 2GB (default: 20GB)");
}

void add_toolchains(CLI::App& app, ToolchainsOptions& options, ChosenCommand& chosen) {
  CLI::App* sub = app.add_subcommand("toolchains",
                                     "List the toolchains that can be installed, and install them");
  sub->require_subcommand(0, 1);
  sub->callback([&] { chosen = [&] { return cmd_toolchains(options); }; });
  CLI::App* list = sub->add_subcommand("list", "Each with version, installed or not (default)");
  list->add_flag("--json", options.json, "As JSON on standard output");
  CLI::App* install = sub->add_subcommand(
      "install", "Install toolchains into this user's cache, at the versions of this program");
  install->callback([&options] { options.install = true; });
  install->add_option("names", options.names, "Which ones")
      ->required()
      ->check(CLI::IsMember(installable_names()));
}

}  // namespace

void add_small_commands(CLI::App& app, SmallCommands& commands, ChosenCommand& chosen) {
  commands.view.colour = ::isatty(STDOUT_FILENO) == 1;
  commands.edit.recover = [](const std::filesystem::path& report) {
    return recover_report(report);
  };
  add_view(app, commands.view, chosen);
  add_edit(app, commands.edit, chosen);
  add_compare(app, commands.compare, chosen);
  add_chips(app, commands.chips, chosen);
  add_cache(app, commands.cache, chosen);
  add_toolchains(app, commands.toolchains, chosen);
}

}  // namespace layerfarm::coordinator::app
