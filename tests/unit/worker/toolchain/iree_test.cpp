// The iree adapter against a compiler of the test's own: modules are words that say what the
// compiler shall do with them.
#include <doctest/doctest.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "shared/base/file_bundle.h"
#include "tests/support/worker/toolchain_bench.h"
#include "worker/toolchain/execute_stage.h"
#include "worker/toolchain/toolchain.h"

using namespace layerfarm;
using namespace layerfarm::worker;
using namespace layerfarm::worker::toolchain;
using domain::Ending;
using domain::Outcome;
using nlohmann::json;

namespace {

/// Words a module may be: "good", "refused", "late" (an error without a place, but a name),
/// "nowhere" (an error with neither), "crash", "slow", "no-import", "import-crash", "old" (refused
/// until raised), "old-bad" (raised in vain), "full" (no room on the disk).
struct IreeBench : test::ToolBench {
  domain::ChipSpec chip =
      domain::parse_chip(
          R"({"toolchain": "iree", "executors": [{"name": "llvm-cpu", "evidence": "hardware"}]})",
          "host.json")
          .value();
  std::unique_ptr<Toolchain> iree = make_toolchain("iree");
  std::vector<domain::Layer> layers;
  std::vector<std::size_t> batches;  ///< layers in each run of the compiler
  /// Gives layers more than their module before they are compiled.
  std::function<void(std::vector<domain::Layer>&)> prepare_layers;

  IreeBench() {
    helpers.on_sidecar = [](const std::string& request) { return combine(json::parse(request)); };
    runner.add("iree-compile",
               [this](const process::Command& command) { return compile(command); });
    runner.add("layerfarm-onnx", [](const process::Command& command) {
      const auto value = [&command](const std::string& flag) {
        return *(std::find(command.argv.begin(), command.argv.end(), flag) + 1);
      };
      const std::string word = base::read_file(value("--model")).value();
      if (word == "refused") return test::FakeRun{.exit_code = 1};
      std::ofstream(value("--out")) << (word == "old" ? "good" : "refused");
      return test::FakeRun{};
    });
  }

  /// The sidecar: one line for the function, one for its body.
  static HelperAnswer combine(const json& request) {
    std::ostringstream text;
    json answers = json::array();
    int line = 0;
    for (const json& model : request.at("models")) {
      const std::string word = base::read_file(model.at("path").get<std::string>()).value();
      if (word == "import-crash") {
        HelperAnswer out;
        out.ending = Ending::Crashed;
        out.diagnostic = {.where = "sidecar", .cause = "crashed: SIGSEGV", .text = "", .raw = {}};
        return out;
      }
      const int opset = word.rfind("old", 0) == 0 ? 9 : 17;
      if (word == "no-import") {
        answers.push_back(
            {{"ok", false}, {"where", "import"}, {"text", "no such operator"}, {"opset", opset}});
        continue;
      }
      text << "func " << model.at("function").get<std::string>() << "\n" << word << "\n";
      answers.push_back({{"ok", true},
                         {"opset", opset},
                         {"lines", json::array({json::array({line + 1, line + 2})})}});
      line += 2;
    }
    std::ofstream(request.at("out").get<std::string>()) << text.str();
    return test::answered(json{{"ok", true}, {"layers", answers}, {"binary", false}}.dump());
  }

  test::FakeRun compile(const process::Command& command) {
    std::ifstream module(command.folder / command.argv[command.argv.size() - 3]);
    std::string function;
    std::string word;
    std::string func;
    test::FakeRun out;
    std::size_t count = 0;
    for (int line = 2; module >> func >> function >> word; line += 2, ++count) {
      const std::string place = "module.mlir:" + std::to_string(line) + ":1";
      if (word == "crash")
        return {.signal = SIGABRT, .errors = "LLVM ERROR: what\n #0 0x0001 frame\n"};
      if (word == "slow") return {.never_ends = true};
      if (word == "full") return {.exit_code = 1, .errors = "module.vmfb: No space left on device"};
      if (word == "refused" || word.rfind("old", 0) == 0)
        out.errors += place + ": error: cannot do " + function + "\n";
      if (word == "late")
        out.errors +=
            "<unknown>:0: error: translation failed\nmodule.mlir:1:1: error: no "
            "code\nmodule.mlir:1:1: note: " +
            function + "_dispatch_0\n";
      if (word == "nowhere") out.errors += "<unknown>:0: error: lost\n";
    }
    batches.push_back(count);
    out.exit_code = out.errors.empty() ? 0 : 1;
    if (out.errors.empty())
      std::ofstream(command.folder / command.argv.back()) << "artifact of " << count;
    return out;
  }

  std::vector<Outcome> compile(const std::vector<std::string>& words) {
    layers.assign(words.size(), {});
    std::vector<CompileJob> jobs;
    for (std::size_t i = 0; i < words.size(); ++i) {
      layers[i].module.blob = blobs.put(words[i]).value();
      jobs.push_back({&layers[i]});
    }
    if (prepare_layers) prepare_layers(layers);
    batches.clear();
    return compile_stage(*iree, chip, chip.executors[0], jobs, context());
  }
};

struct Answer {
  Ending ending;
  domain::Diagnostic diagnostic;
  std::string note;
  friend bool operator==(const Answer&, const Answer&) = default;
};

/// What must not depend on what a layer was compiled with.
Answer answer_of(Outcome outcome) {
  outcome.diagnostic.raw = {};
  return {outcome.ending, outcome.diagnostic, outcome.artifact ? outcome.artifact->note : ""};
}

}  // namespace

TEST_CASE(
    "layers that compile share one artifact, each under its own function, and each has its share "
    "of the time") {
  IreeBench bench;
  const auto out = bench.compile({"good", "good", "good"});
  CHECK(bench.batches == std::vector<std::size_t>{3});
  REQUIRE(out.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(out[i].ending == Ending::Done);
    CHECK(out[i].artifact->blob == out[0].artifact->blob);
    CHECK(out[i].artifact->function == "layer_" + std::to_string(i));
    CHECK(out[i].artifact->batch == 3);
    CHECK(out[i].artifact->note.empty());
    CHECK(out[i].tool.rfind("iree ", 0) == 0);
  }
  CHECK(bench.blobs.get(out[0].artifact->blob).value() == "artifact of 3");
}

TEST_CASE("the command line compiles for this machine, bounded by the batch's n times the unit") {
  IreeBench bench;
  bench.compile({"good", "good"});
  const process::Command& command = bench.runner.commands().at(0);
  const auto has = [&command](const std::string& flag) {
    return std::count(command.argv.begin(), command.argv.end(), flag) == 1;
  };
  CHECK(has("--iree-hal-local-target-device-backends=llvm-cpu"));
  CHECK(has("--iree-llvmcpu-target-cpu=host"));
  CHECK_FALSE(has("--iree-input-demote-f64-to-f32=false"));
  CHECK(command.bounds.wall == std::chrono::milliseconds(2 * bench.step.limits.compile_timeout_ms));
  CHECK(std::filesystem::path(command.argv[0]).is_absolute());
}

TEST_CASE("with dumps each layer is compiled alone, and what was written for it is kept with it") {
  IreeBench bench;
  bench.chip.options["dump_ir"] = "1";
  bench.runner.add("iree-compile", [&bench](const process::Command& command) {
    const auto& argv = command.argv;
    CHECK(std::count(argv.begin(), argv.end(), "--dump-compilation-phases-to=phases") == 1);
    CHECK(!std::filesystem::exists(command.folder / "phases"));
    std::filesystem::create_directories(command.folder / "phases");
    std::ofstream(command.folder / "phases" / "module.1.input.mlir") << bench.batches.size();
    return bench.compile(command);
  });
  CHECK(bench.iree->needs(bench.chip).batch == 1);
  const auto out = bench.compile({"good", "refused"});
  CHECK(bench.batches == std::vector<std::size_t>{1, 1});
  CHECK(out[1].ending == Ending::Refused);
  for (std::size_t i = 0; i < 2; ++i) {
    REQUIRE(out[i].ir_dump);
    const auto files = base::decode_bundle(bench.blobs.get(*out[i].ir_dump).value());
    REQUIRE(files);
    REQUIRE(files->size() == 2);
    CHECK(files->at(0).path == "module.mlir");
    CHECK(files->at(1) == base::BundledFile{"phases/module.1.input.mlir", std::to_string(i)});
  }
}

TEST_CASE("float64 stays what it is for layers that take or give it, and for no other") {
  IreeBench bench;
  bench.prepare_layers = [](std::vector<domain::Layer>& layers) {
    layers[1].outputs = {{domain::DType::Float64, {2}}};
    layers[2].inputs = {{.type = {domain::DType::Float64, {2}}}};
    layers[3].inputs = {{.type = {domain::DType::Float32, {2}}}};
  };
  const auto out = bench.compile({"good", "good", "good", "good"});
  CHECK(bench.batches == std::vector<std::size_t>{2, 2});
  const auto keeps = [&bench](std::size_t at) {
    const auto& argv = bench.runner.commands().at(at).argv;
    return std::count(argv.begin(), argv.end(), "--iree-input-demote-f64-to-f32=false") == 1;
  };
  CHECK_FALSE(keeps(0));
  CHECK(keeps(1));
  CHECK(out[0].artifact->blob == out[3].artifact->blob);
  CHECK(out[1].artifact->blob == out[2].artifact->blob);
}

TEST_CASE("options of the chip reach the command line: another backend takes no processor name") {
  IreeBench bench;
  bench.chip =
      domain::parse_chip(
          R"({"toolchain": "iree", "options": {"batch": "2", "compile_flags": ["--a", "--b=c d"]},
    "executors": [{"name": "x", "evidence": "hardware", "options": {"backend": "vmvx"}}]})",
          "host.json")
          .value();
  bench.compile({"good", "good", "good"});
  CHECK(bench.batches == std::vector<std::size_t>{2, 1});
  const auto& argv = bench.runner.commands().at(0).argv;
  CHECK(std::count(argv.begin(), argv.end(), "--iree-hal-local-target-device-backends=vmvx") == 1);
  CHECK(std::count(argv.begin(), argv.end(), "--b=c d") == 1);
  CHECK(std::none_of(argv.begin(), argv.end(),
                     [](const std::string& flag) { return flag.rfind("--iree-llvmcpu", 0) == 0; }));
}

TEST_CASE("all culprits that the errors name leave a batch at once") {
  IreeBench bench;
  const auto out = bench.compile({"good", "refused", "good", "refused"});
  CHECK(bench.batches == std::vector<std::size_t>{4, 2});
  CHECK(out[0].ending == Ending::Done);
  CHECK(out[0].artifact->batch == 2);
  CHECK(out[1].ending == Ending::Refused);
  CHECK(out[1].diagnostic.where == "compile");
  CHECK(out[1].diagnostic.text == "cannot do layer");
  CHECK_FALSE(out[1].diagnostic.raw.is_zero());
}

TEST_CASE("a crash or a time-out is found by halves, and harms no other layer") {
  for (const std::string word : {"crash", "slow", "import-crash"}) {
    IreeBench bench;
    const auto out = bench.compile({"good", "good", word, "good"});
    for (const std::size_t i : {0, 1, 3}) CHECK(out[i].ending == Ending::Done);
    CHECK(out[2].ending == (word == "slow" ? Ending::TimedOut : Ending::Crashed));
    CHECK(bench.batches == std::vector<std::size_t>{2, 1});
  }
}

TEST_CASE("the crash's text is the compiler's last words, without its stack") {
  IreeBench bench;
  const auto out = bench.compile({"crash"});
  CHECK(out[0].diagnostic.cause == "crashed: SIGABRT");
  CHECK(out[0].diagnostic.text == "LLVM ERROR: what");
}

TEST_CASE("a full disk or a cancel ends the whole batch at once: no half of it would fare better") {
  IreeBench bench;
  const auto out = bench.compile({"good", "full", "good"});
  for (const Outcome& one : out) CHECK(one.ending == Ending::Infrastructure);
  CHECK(bench.runner.commands().size() == 1);
}

TEST_CASE(
    "verdicts and diagnostics of a batch are those of each layer alone, whatever it is compiled "
    "with") {
  const std::vector<std::string> words = {"good",  "refused", "late",      "nowhere",
                                          "crash", "slow",    "no-import", "import-crash",
                                          "old",   "old-bad"};
  std::map<std::string, Answer> alone;
  for (const std::string& word : words) {
    IreeBench bench;
    alone[word] = answer_of(bench.compile({word})[0]);
  }
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    IreeBench bench;
    std::vector<std::string> batch;
    for (std::size_t i = 0, n = 1 + random() % 20; i < n; ++i) {
      batch.push_back(random() % 2 == 0 ? "good" : words[random() % words.size()]);
    }
    const auto out = bench.compile(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      CHECK_MESSAGE(answer_of(out[i]) == alone[batch[i]],
                    "round " << round << ", layer " << i << " (" << batch[i]
                             << "): " << out[i].diagnostic.text);
    }
  }
}

TEST_CASE("a refused layer of an old opset is raised and tried once more, and the result says so") {
  IreeBench bench;
  const auto out = bench.compile({"old", "good", "old-bad", "refused"});
  REQUIRE(out[0].ending == Ending::Done);
  CHECK(out[0].artifact->note == "raised to opset 17");
  CHECK(out[1].artifact->note.empty());
  CHECK(out[2].ending == Ending::Refused);
  CHECK(out[2].diagnostic.text == "cannot do layer");
  const auto raises =
      std::count_if(bench.runner.commands().begin(), bench.runner.commands().end(),
                    [](const process::Command& command) { return command.argv[1] == "raise"; });
  CHECK(raises == 2);  // "refused" is new enough as it is
}

TEST_CASE("large constants are not put into an artifact that others would have to load") {
  IreeBench bench;
  bench.layers.resize(3);
  std::vector<CompileJob> jobs;
  for (auto& layer : bench.layers) {
    layer.module.blob = bench.blobs.put("good").value();
    jobs.push_back({&layer});
  }
  bench.layers[1].module.data = {
      {.name = "w", .blob = bench.blobs.put("w").value(), .bytes = 100 << 20}};
  const auto out =
      compile_stage(*bench.iree, bench.chip, bench.chip.executors[0], jobs, bench.context());
  CHECK(out[1].ending == Ending::Done);
  CHECK(bench.batches == std::vector<std::size_t>{1, 1, 1});
}

TEST_CASE("a module that was pruned is named, and the others compile") {
  IreeBench bench;
  bench.layers.resize(2);
  bench.layers[0].module.blob = base::digest_of("gone");
  bench.layers[1].module.blob = bench.blobs.put("good").value();
  const CompileJob jobs[2] = {{&bench.layers[0]}, {&bench.layers[1]}};
  const auto out =
      compile_stage(*bench.iree, bench.chip, bench.chip.executors[0], jobs, bench.context());
  CHECK(out[0].ending == Ending::LostBlob);
  CHECK(out[0].lost == std::vector<base::Digest>{base::digest_of("gone")});
  CHECK(out[1].ending == Ending::Done);
}

TEST_CASE("a run hands over inputs and takes outputs as raw files, by function") {
  IreeBench bench;
  domain::Layer layer;
  layer.inputs.resize(2);
  layer.inputs[0].type = {domain::DType::Float32, {1, 2}};
  layer.inputs[1].type = {domain::DType::Bool, {}};
  layer.outputs = {{domain::DType::Int64, {2}}};
  domain::Prepared prepared;
  prepared.inputs = {bench.blobs.put("12345678").value(), bench.blobs.put("1").value()};
  domain::Artifact artifact{.blob = bench.blobs.put("vmfb").value(),
                            .data = {},
                            .function = "layer_7",
                            .compile_us = 0,
                            .batch = 1,
                            .note = "raised"};
  std::size_t bytes = 16;
  bench.runner.add("iree-run-module", [&bytes](const process::Command& command) {
    std::ofstream(command.folder / "output_0.bin") << std::string(bytes, 'x');
    return test::FakeRun{.takes = std::chrono::milliseconds(3)};
  });
  const RunJob job{.layer = &layer, .artifact = &artifact, .prepared = &prepared};
  const RunResult run = bench.iree->run(bench.chip, bench.chip.executors[0], job, bench.context());
  REQUIRE(run.ending == Ending::Done);
  CHECK(run.run_us == 3000);
  CHECK(run.note == "raised");
  CHECK(run.types == layer.outputs);
  const auto& argv = bench.runner.commands().back().argv;
  const auto has = [&argv](const std::string& flag) {
    return std::count(argv.begin(), argv.end(), flag) == 1;
  };
  CHECK(has("--function=layer_7"));
  CHECK(has("--input=1x2xf32=@" + bench.blobs.path(prepared.inputs[0]).string()));
  CHECK(has("--input=i1=@" + bench.blobs.path(prepared.inputs[1]).string()));
  CHECK(has("--output=@output_0.bin"));
  CHECK(bench.iree->time(bench.chip, bench.chip.executors[0], job, 2, bench.context()).runs_us ==
        std::vector<std::int64_t>{3000, 3000});

  bytes = 8;
  const RunResult shorter =
      bench.iree->run(bench.chip, bench.chip.executors[0], job, bench.context());
  CHECK(shorter.ending == Ending::Refused);
  CHECK(shorter.diagnostic.text == "output 0 has 8 bytes, its type 2xsi64 takes 16");
}

TEST_CASE("where the shape depends on values the reference's size is the one that is right") {
  IreeBench bench;
  domain::Layer layer;
  layer.outputs = {{domain::DType::Int64, {2, 0}}};  // what a run with zeros gave
  domain::Prepared prepared;
  prepared.expected_types = {{domain::DType::Int64, {2, 3}}};
  const domain::Artifact artifact{.blob = bench.blobs.put("vmfb").value(),
                                  .data = {},
                                  .function = "layer_0",
                                  .compile_us = 0,
                                  .batch = 1,
                                  .note = ""};
  std::size_t bytes = 48;
  bench.runner.add("iree-run-module", [&bytes](const process::Command& command) {
    std::ofstream(command.folder / "output_0.bin") << std::string(bytes, 'x');
    return test::FakeRun{};
  });
  const auto run = [&] {
    return bench.iree->run(bench.chip, bench.chip.executors[0],
                           {.layer = &layer, .artifact = &artifact, .prepared = &prepared},
                           bench.context());
  };
  const RunResult right = run();
  REQUIRE(right.ending == Ending::Done);
  CHECK(right.types == prepared.expected_types);
  // A wrong number of elements is for the comparison to tell: a difference, no broken tool.
  for (const std::size_t other : {0, 32}) {
    bytes = other;
    const RunResult wrong = run();
    REQUIRE(wrong.ending == Ending::Done);
    CHECK(wrong.types[0].bytes() == other);
  }
  bytes = 47;
  CHECK(run().ending == Ending::Refused);
}
