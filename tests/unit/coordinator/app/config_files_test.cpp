#include "coordinator/app/config_files.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "coordinator/app/flag_values.h"
#include "shared/base/files.h"
#include "shared/base/places.h"
#include "tests/support/environment_change.h"

using namespace layerfarm;
using namespace layerfarm::coordinator;
namespace fs = std::filesystem;

namespace {

/// A command with flags of every kind, as discover has them.
struct Command {
  CLI::App app{"test", "discover"};
  std::vector<std::string> models;
  std::string chip = "default";
  std::string output_dir;
  std::vector<std::string> skip_ops;
  std::vector<std::string> config;
  std::vector<const CLI::App*> others;
  bool skip_mode = false;
  int timing_runs = 1;
  std::int64_t compile_ms = 0;
  std::int64_t run_ms = 0;
  std::string dedup = "off";
  app::ToolOptions tool;
  base::ScratchFolder scratch =
      *base::ScratchFolder::make(fs::temp_directory_path(), "layerfarm-test");

  Command() {
    app.add_option("--model", models)->allow_extra_args(false);
    app.add_option("--chip,--torq-hw", chip);
    app.add_option("--output-dir", output_dir);
    app.add_option("--skip-ops", skip_ops)->allow_extra_args(false);
    app.add_flag("--skip-mode", skip_mode);
    app.add_option("--timing-runs", timing_runs)->check(CLI::Range(0, 100));
    app::add_seconds(app, "--compile-timeout", compile_ms, "");
    app::add_seconds(app, "--run-timeout", run_ms, "");
    app.add_option("--dedup-layers", dedup)
        ->expected(0, 1)
        ->default_str("")
        ->check(CLI::IsMember({"", "exact"}));
    app::add_tool_options(app, tool);
    app::add_config(app, config);
  }

  std::string put(const std::string& name, const std::string& text) const {
    REQUIRE(base::write_file_atomically(scratch.path() / name, text, base::Sync::No));
    return (scratch.path() / name).string();
  }

  /// Parses the words, with a --config for each text; the error, or nothing.
  std::string apply(const std::vector<std::string>& texts, std::vector<std::string> words = {}) {
    for (std::size_t i = 0; i < texts.size(); ++i)
      words.push_back("--config=" + put(std::to_string(i) + ".json", texts[i]));
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    app.parse(words);
    const auto done = app::apply_config_files(app, config, others);
    return done ? "" : done.error().text();
  }
  [[nodiscard]] std::string file(int number) const {
    return (scratch.path() / (std::to_string(number) + ".json")).string();
  }
};

}  // namespace

TEST_CASE("a file gives values to flags by the original's keys") {
  Command command;
  CHECK(command
            .apply({R"({"model_path": "m.onnx", "work_dir": "out", "chip": "SL2610",
    "runtime_hw_type": "aws_fpga", "compiler_options": ["--a", "--b"], "runtime_options": ["--c"],
    "dump_ir": true, "timeout": 12.5, "convert_io_dtypes": ["all"],
    "gen_config": {"skip_mode": true, "timing_runs": 5, "skip_ops": ["MaxPool", "Add"], "dedup_layers": true}})"})
            .empty());
  CHECK(command.models == std::vector<std::string>{"m.onnx"});
  CHECK(command.output_dir == "out");
  CHECK(command.chip == "SL2610");
  CHECK(command.tool.hw_type == "aws_fpga");
  CHECK(command.tool.compiler == std::vector<std::string>{"--a", "--b"});
  CHECK(command.tool.runtime == std::vector<std::string>{"--c"});
  CHECK(command.tool.dump_folder == "tmp");
  CHECK(command.compile_ms == 12500);
  CHECK(command.run_ms == 12500);
  CHECK(command.skip_mode);
  CHECK(command.timing_runs == 5);
  CHECK(command.skip_ops == std::vector<std::string>{"MaxPool", "Add"});
  CHECK(command.dedup.empty());
}

TEST_CASE("what the command line gives wins, an explicit default too") {
  Command command;
  CHECK(command
            .apply({R"({"chip": "SM8550", "dump_ir": "dumps",
                        "gen_config": {"timing_runs": 5, "skip_mode": true}})"},
                   {"--timing-runs=1", "--torq-hw=default", "--skip-mode=false", "--debug-ir"})
            .empty());
  CHECK(command.timing_runs == 1);
  CHECK(command.chip == "default");
  CHECK_FALSE(command.skip_mode);
  CHECK(command.tool.dump_folder == "tmp");
}

TEST_CASE("files are merged in their order, sections key by key") {
  Command command;
  CHECK(command
            .apply(
                {R"({"chip": "a", "work_dir": "one", "compiler_options": ["--x", "--y"],
                        "gen_config": {"timing_runs": 5, "skip_mode": true}})",
                 R"({"chip": "b", "compiler_options": ["--z"], "gen_config": {"timing_runs": 7}})"})
            .empty());
  CHECK(command.chip == "b");
  CHECK(command.output_dir == "one");
  CHECK(command.tool.compiler == std::vector<std::string>{"--z"});
  CHECK(command.timing_runs == 7);
  CHECK(command.skip_mode);
}

TEST_CASE("of a manifest only its config counts") {
  Command command;
  CHECK(command
            .apply({R"({"results": {"x": 1}, "config": {"chip": "c", "function": null,
                        "dump_phases": false, "input_npy": [], "random_inputs": true, "dump_ir": false}})"})
            .empty());
  CHECK(command.chip == "c");
  CHECK(command.tool.dump_folder.empty());
}

TEST_CASE(
    "a key that only another command has a flag for is passed over, one of none is an error") {
  CLI::App run("test", "run");
  bool check = false;
  run.add_flag("--check-boundaries", check);
  const std::string text = R"({"gen_config": {"check_boundaries": true, "timing_runs": 3}})";
  Command alone;
  CHECK(alone.apply({text}).find("unknown key 'gen_config.check_boundaries'") != std::string::npos);
  Command command;
  command.others = {&run};
  CHECK(command.apply({text}) == "");
  CHECK(command.timing_runs == 3);
  CHECK(!check);
  Command misspelt;
  misspelt.others = {&run};
  CHECK(misspelt.apply({R"({"gen_config": {"check_boundary": true}})"})
            .find("unknown key 'gen_config.check_boundary'") != std::string::npos);
}

TEST_CASE("a value that the command line overrides is judged too, and changes nothing") {
  Command command;
  const std::string said =
      command.apply({R"({"gen_config": {"timing_runs": "many"}})"}, {"--timing-runs=3"});
  CHECK(said.find("config file " + command.file(0) + ": key 'gen_config.timing_runs': ") == 0);
  Command other;
  CHECK(other.apply({R"({"timeout": "long"})"}, {"--compile-timeout=3", "--run-timeout=3"})
            .find("key 'timeout'") != std::string::npos);
  Command fine;
  CHECK(
      fine.apply({R"({"chip": "SM8550", "model_path": "file.onnx", "dump_ir": "there", "timeout": 5,
                        "gen_config": {"timing_runs": 5, "skip_ops": ["Add"], "dedup_layers": "exact"}})"},
                 {"--timing-runs=3", "--model=a", "--model=b", "--skip-ops=Mul", "--debug-ir",
                  "--dedup-layers", "--compile-timeout=2", "--chip=x"})
          .empty());
  CHECK(fine.timing_runs == 3);
  CHECK(fine.chip == "x");
  CHECK(fine.models == std::vector<std::string>{"a", "b"});
  CHECK(fine.skip_ops == std::vector<std::string>{"Mul"});
  CHECK(fine.tool.dump_folder == "tmp");
  CHECK(fine.dedup.empty());
  CHECK(fine.compile_ms == 2000);
  CHECK(fine.run_ms == 5000);
}

TEST_CASE("an unknown key is an error that names file and key") {
  Command command;
  const std::string slip =
      command.apply({R"({"chip": "a"})", R"({"gen_config": {"skip_mod": true}})"});
  CHECK(slip.find("config file " + command.file(1) +
                  ": unknown key 'gen_config.skip_mod' (known: ") == 0);
  CHECK(slip.ends_with("); did you mean skip_mode?"));
  Command top;
  const std::string said = top.apply({R"({"skip_mode": true})"});
  CHECK(said.find("config file " + top.file(0) + ": unknown key 'skip_mode' (known: ") == 0);
  CHECK(said.ends_with("); it belongs into the section gen_config"));
  CHECK(said.find("gen_config") != std::string::npos);
}

TEST_CASE("the fields of the original that are called otherwise here are known") {
  Command command;
  CHECK(
      command
          .apply(
              {R"({"gen_config": {"model_path": "m.onnx", "torq_hw": "x", "runtime_hw_type": "sim",
                        "compiler_options": ["--a"], "compiler_timeout": 3, "runtime_timeout": 4,
                        "debug_ir": "d", "torq_port": 22, "model_dir": null}})"})
          .empty());
  CHECK(command.models == std::vector<std::string>{"m.onnx"});
  CHECK(command.chip == "x");
  CHECK(command.compile_ms == 3000);
  CHECK(command.run_ms == 4000);
  CHECK(command.tool.dump_folder == "d");
}

TEST_CASE("a value of a wrong kind is refused by the flag's own rules, file and key named") {
  const auto said = [](const std::string& text) {
    Command command;
    const std::string error = command.apply({text});
    CHECK(error.find("config file " + command.file(0) + ": key '") == 0);
    return error;
  };
  CHECK(said(R"({"gen_config": {"timing_runs": 101}})").find("'gen_config.timing_runs'") !=
        std::string::npos);
  CHECK(said(R"({"gen_config": {"timing_runs": "many"}})").find("timing") != std::string::npos);
  CHECK(said(R"({"gen_config": {"skip_mode": "yes"}})").find("must be true or false") !=
        std::string::npos);
  CHECK(said(R"({"chip": true})").find("must be a text") != std::string::npos);
  CHECK(said(R"({"chip": ["a", "b"]})").find("takes one value") != std::string::npos);
  CHECK(said(R"({"compiler_options": [["--a"]]})").find("list of texts") != std::string::npos);
  CHECK(said(R"({"gen_config": []})").find("must be an object") != std::string::npos);
  CHECK(said(R"({"gen_config": {"dedup_layers": "some"}})").find("dedup_layers") !=
        std::string::npos);
}

TEST_CASE("what is not supported is refused where it asks for something") {
  const auto said = [](const std::string& text) { return Command().apply({text}); };
  CHECK(said(R"({"remote": {"address": "user@board"}})").find("key 'remote': not supported") !=
        std::string::npos);
  CHECK(said(R"({"remote": null})").empty());
  CHECK(said(R"({"remote": {}})").empty());
  CHECK(said(R"({"remote": {"address": "", "port": 0, "keys": []}})").empty());
  CHECK(said(R"({"convert_io_dtypes": ["float32"]})").find("not supported") != std::string::npos);
  CHECK(said(R"({"compile_tool": "x"})").find("key 'compile_tool': not supported") !=
        std::string::npos);
  CHECK(said(R"({"gen_config": {"torq_addr": "adb"}})").find("not supported") != std::string::npos);
}

TEST_CASE("trace buffers add the compiler's flag, whoever gives the others") {
  Command command;
  CHECK(
      command
          .apply({R"({"compiler_options": ["--of-file"], "gen_config": {"trace_buffers": true}})"},
                 {"--compiler-option=--mine"})
          .empty());
  CHECK(command.tool.compiler ==
        std::vector<std::string>{"--mine", "--torq-enable-buffer-debug-info"});
  Command alone;
  CHECK(alone.apply({R"({"gen_config": {"trace_buffers": true}})"}).empty());
  CHECK(alone.tool.compiler == std::vector<std::string>{"--torq-enable-buffer-debug-info"});
}

TEST_CASE("cache_dir names the cache for this run and its workers") {
  const tests::EnvironmentChange before("LAYERFARM_CACHE_DIR", "elsewhere");
  Command command;
  CHECK(command.apply({R"({"gen_config": {"cache_dir": "/tmp/of-config"}})"}).empty());
  CHECK(base::cache_folder() == "/tmp/of-config");
}

TEST_CASE("a file that is not there or no JSON object is named") {
  Command command;
  CHECK(command.apply({"{"}).find("config file " + command.file(0) + ": not JSON: ") == 0);
  Command list;
  CHECK(list.apply({"[1]"}).find("must hold a JSON object") != std::string::npos);
  Command missing;
  CHECK(missing.apply({}, {"--config=not-there.json"}).find("not-there.json") != std::string::npos);
  CHECK(Command().apply({}).empty());
}

TEST_CASE("a flag's name in files is its long name with underscores") {
  CHECK(app::config_key_of("--timing-runs") == "timing_runs");
  CHECK(app::config_key_of("model") == "model");
}
