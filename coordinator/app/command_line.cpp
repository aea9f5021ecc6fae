#include "coordinator/app/command_line.h"

#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "coordinator/app/cmd_discover.h"
#include "coordinator/app/cmd_quantize.h"
#include "coordinator/app/cmd_run.h"
#include "coordinator/app/completion.h"
#include "coordinator/app/config_files.h"
#include "coordinator/app/flag_values.h"
#include "coordinator/app/man_page.h"
#include "coordinator/app/slips.h"
#include "coordinator/app/small_commands.h"
#include "shared/base/build_info.h"
#include "shared/base/exit_code.h"
#include "shared/base/text.h"
#include "shared/protocol/messages.h"

namespace layerfarm::coordinator::app {
namespace {

using base::ExitCode;

constexpr const char* kProgram = "layerfarm";
/// The name under which users of the original call it; the build makes a link of that name.
constexpr const char* kOtherName = "torq-gen-config";

/// What usage and version call the program: the name by which it was called, where that is ours.
std::string program_name(const char* argv0) {
  const std::string name = std::filesystem::path(argv0 == nullptr ? "" : argv0).filename().string();
  return name == kOtherName ? name : kProgram;
}

int refuse(const base::Error& error) {
  std::cerr << "Error: " << error.text() << "\n";
  return static_cast<int>(ExitCode::Failed);
}

std::string version_text(const std::string& program) {
  return program + " " + std::string(base::kVersion) + " (commit " +
         std::string(base::build_commit()) + ", protocol " +
         std::to_string(protocol::kProtocolMin) + "-" + std::to_string(protocol::kProtocolMax) +
         ")";
}

/// What is made of the model before it is split.
void add_model_changes(CLI::App& app, DiscoverOptions& options) {
  app.add_flag("--auto-convert-bf16", options.convert.bf16, "Convert float tensors to bfloat16");
  app.add_flag("--auto-convert-int32", options.convert.int32,
               "Convert 64-bit integers to 32-bit ones, wherever ONNX allows it");
  app.add_option("--save-bf16-model", options.save_bf16_model,
                 "Keep the model as --auto-convert-bf16 makes it")
      ->type_name("FILE");
  app.add_option("--subgraph-from", options.subgraph_from,
                 "First node of the part to test: <OpType>_<output>, or the output alone")
      ->type_name("NODE");
  app.add_option("--subgraph-to", options.subgraph_to, "Last node of that part, named alike")
      ->type_name("NODE");
}

/// What discover and run share: where chip files and reports are.
void add_places(CLI::App& sub, DiscoverOptions& options) {
  sub.add_option("--chips-dir", options.chips_dir, "Folder with chip files, looked at first")
      ->type_name("DIR");
  sub.add_option("--output-dir", options.output_dir,
                 "Folder for the JSON files (default: the current one)")
      ->type_name("DIR");
}

/// What the model is, and what it is fed.
void add_model_reading(CLI::App& sub, DiscoverOptions& options) {
  add_dims(sub, options.dims);
  sub.add_option_function<std::string>(
         "--layer-unit",
         [&options](const std::string& name) {
           options.unit = *domain::layer_unit_from_name(name);
         },
         "What a layer is: node, or qdq (an operator with the Q/DQ around it, for quantized "
         "models)")
      ->check(CLI::IsMember({"node", "qdq"}))
      ->type_name("UNIT");
  sub.add_option("--inputs", options.inputs_dir,
                 "Folder of .npz, .npy or .pb files, by input name, instead of random inputs")
      ->type_name("DIR");
  sub.add_flag("--recompute-cache", options.recompute, "Test everything again, whatever is stored");
  add_quantize_flags(sub, options.quantize, /*with_switch=*/true);
  add_model_changes(sub, options);
}

/// Bounds of single steps.
void add_limits(CLI::App& sub, DiscoverOptions& options) {
  add_seconds(sub, "--compile-timeout", options.compile_timeout_ms,
              "Time limit of one compilation (default: 300)");
  add_seconds(sub, "--run-timeout", options.run_timeout_ms, "Time limit of one run (default: 240)");
  add_bytes(sub, "--memory", options.memory_bytes,
            "Memory limit of one step, e.g. 4GB (default: three quarters of the machine's)");
  add_seconds(sub, "--wait-workers", options.wait_workers_ms,
              "How long a case may wait for a worker that can run it (default: 0 locally)");
}

/// What is printed, and where.
void add_printing(CLI::App& sub, DiscoverOptions& options) {
  sub.add_option("--log-file", options.log_file, "Everything that is printed goes to this file too")
      ->type_name("FILE");
  sub.add_flag("-v,--verbose", options.verbose, "Say more");
  sub.add_flag("-q,--quiet", options.quiet, "Say nothing on the console");
}

/// The commands that read config files, which may be one file for all of them.
constexpr const char* kConfigured[] = {"discover", "run"};

base::Result<void> apply_config(CLI::App& app, CLI::App& command,
                                const std::vector<std::string>& files) {
  std::vector<const CLI::App*> others;
  for (const char* name : kConfigured) {
    if (command.get_name() != name) others.push_back(app.get_subcommand(name));
  }
  return apply_config_files(command, files, others);
}

void add_discover(CLI::App& app, DiscoverOptions& options, ChosenCommand& chosen,
                  const std::vector<std::string>& command) {
  CLI::App* sub = app.add_subcommand(
      "discover", "Find, for each layer of a model, the executors of a chip that run it correctly");
  sub->callback([&, sub] {
    chosen = [&, sub] {
      if (auto applied = apply_config(app, *sub, options.config_files); !applied)
        return refuse(applied.error());
      options.skip_executors = split_commas(options.skip_executors);
      options.skip_ops = split_commas(options.skip_ops);
      options.executors = split_commas(options.executors);
      return cmd_discover(options, command);
    };
  });
  add_config(*sub, options.config_files);
  sub->add_option("--model", options.models, "ONNX model; repeatable, globs allowed")
      ->type_name("FILE")
      ->allow_extra_args(false);
  sub->add_option("--chip,--torq-hw", options.chip, "Chip, comma list of chips, NAME.group, or all")
      ->capture_default_str();
  add_places(*sub, options);
  sub->add_option("--workers", options.workers, "Worker processes (default: one per core)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  add_tool_options(*sub, options.tool);
  add_model_reading(*sub, options);

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
  sub->add_option(
         "--layers", options.layers,
         "Only layers that match (exact id, pattern with * or ?, or part of the id; commas part "
         "several)")
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
  sub->add_option(
         "--repeats,--repeat", options.repeats,
         "Test each case on so many sets of random inputs; where verdicts differ, the most "
         "frequent one counts and the result is marked flaky")
      ->capture_default_str()
      ->check(CLI::Range(1, 100))
      ->type_name("N");
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
  add_limits(*sub, options);
  add_printing(*sub, options);
}

void add_run(CLI::App& app, RunOptions& options, ChosenCommand& chosen,
             const std::vector<std::string>& command) {
  options.common.chip.clear();
  CLI::App* sub = app.add_subcommand(
      "run", "Run the whole model by the assignment of its report or compiler file");
  sub->callback([&, sub] {
    chosen = [&, sub] {
      if (auto applied = apply_config(app, *sub, options.common.config_files); !applied)
        return refuse(applied.error());
      return cmd_run(options, command);
    };
  });
  add_config(*sub, options.common.config_files);
  sub->add_option("--model", options.common.models, "ONNX model")
      ->type_name("FILE")
      ->allow_extra_args(false);
  sub->add_option("--chip,--torq-hw", options.common.chip, "Chip (default: the report's)");
  add_places(*sub, options.common);
  add_tool_options(*sub, options.common.tool);
  add_model_reading(*sub, options.common);
  sub->add_flag(
      "--check-boundaries", options.check_boundaries,
      "Compare at each switch of executors too, and name the first segment that is wrong");
  add_limits(*sub, options.common);
  add_printing(*sub, options.common);
}

void add_quantize(CLI::App& app, QuantizeCommandOptions& options, ChosenCommand& chosen) {
  CLI::App* sub = app.add_subcommand("quantize", "Quantize a model to int8, as discover does");
  sub->callback([&] { chosen = [&options] { return cmd_quantize(options); }; });
  sub->add_option("--model", options.model, "ONNX model")->type_name("FILE");
  sub->add_option("--output", options.output,
                  "Where it goes (default: the model's path with the extension .int8.onnx)")
      ->type_name("FILE");
  sub->add_option("--num-calib", options.how.samples, "Random calibration samples")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N");
  add_quantize_flags(*sub, options.how, /*with_switch=*/false);
  sub->add_option("--dataset", options.dataset, "Not implemented; see --calibration")
      ->type_name("NAME");
}

/// Texts for shells and for man, made from the definitions of the flags themselves.
void add_texts(CLI::App& app, ChosenCommand& chosen) {
  CLI::App* completion = app.add_subcommand(
      "completion", "Print the completion of commands and flags for a shell (docs/setup.md)");
  completion->require_subcommand(1);
  for (const Shell shell : {Shell::Bash, Shell::Zsh, Shell::Fish}) {
    CLI::App* one = completion->add_subcommand(std::string(shell_name(shell)));
    one->callback([&app, &chosen, shell] {
      chosen = [&app, shell] {
        std::cout << completion_text(app, shell);
        return static_cast<int>(ExitCode::Success);
      };
    });
  }
  CLI::App* man = app.add_subcommand("man", "Print the manual page (roff)");
  man->callback([&app, &chosen] {
    chosen = [&app] {
      std::cout << man_page(app, std::string(base::kVersion));
      return static_cast<int>(ExitCode::Success);
    };
  });
}

/// Whether standard output is a pipe whose reader went away, as `head` does when it has enough.
/// Asked of the pipe itself: which write failed, and with what, the streams no longer know.
bool reader_is_gone() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

/// A word that is no flag and no command where a command must stand, or none there at all; CLI11
/// would speak of a missing subcommand.
bool is_unknown_command(const CLI::App& app, int argc, char** argv) {
  const CLI::App* command = &app;
  for (int i = 1; i <= argc; ++i) {
    std::vector<std::string> known;
    const CLI::App* next = nullptr;
    const std::string word = i < argc ? argv[i] : "";
    for (const CLI::App* sub : command->get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(sub->get_name());
      if (sub->get_name() == word) next = sub;
    }
    if (known.empty() || word.starts_with("-")) return false;
    const std::string of = command == &app ? "" : " of " + command->get_name();
    if (i == argc) {
      // Alone the program says how it is called, which CLI11 does well.
      if (command == &app || command->get_require_subcommand_min() == 0) return false;
      std::cerr << "Error: a subcommand" << of << " is missing; there are: " << base::join(known)
                << "\n";
      return true;
    }
    if (next == nullptr) {
      std::cerr << "Error: no subcommand '" << word << "'" << of << meant_text(word, known)
                << (meant_text(word, known).empty() ? "; there" : " There")
                << " are: " << base::join(known) << "\n";
      return true;
    }
    command = next;
  }
  return false;
}

}  // namespace

int run_command_line(int argc, char** argv) {
  // A worker or a pager that goes away shows up as a failed write, not as our death.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is a full disk like any other
  const std::string program = program_name(argc > 0 ? argv[0] : nullptr);
  CLI::App app(program +
                   " finds, for each layer of an ONNX model, the executor of a chip that runs it "
                   "correctly and fastest.",
               program);
  app.set_version_flag("--version", version_text(program));
  app.require_subcommand(1);

  const std::vector<std::string> command(argv, argv + argc);
  ChosenCommand chosen;
  DiscoverOptions discover;
  SmallCommands small;
  add_discover(app, discover, chosen, command);
  RunOptions run;
  add_run(app, run, chosen, command);
  QuantizeCommandOptions quantize;
  add_quantize(app, quantize, chosen);
  add_small_commands(app, small, chosen);
  add_texts(app, chosen);

  if (is_unknown_command(app, argc, argv)) return static_cast<int>(ExitCode::Usage);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done, std::cout, std::cerr);
  } catch (const CLI::ParseError& error) {
    // CLI11's own codes are many; ours is one for every usage error.
    app.exit(error, std::cerr, std::cerr);
    std::cerr << unknown_flag_lines(app);
    return static_cast<int>(ExitCode::Usage);
  }
  const int code = chosen();
  // Results that did not arrive are no success.
  if (std::cout.flush()) return code;
  if (reader_is_gone()) return code;  // it has what it wanted
  std::cerr << "Error: cannot write to standard output\n";
  return std::max(code, static_cast<int>(ExitCode::Failed));
}

}  // namespace layerfarm::coordinator::app
