#include <doctest/doctest.h>

#include <algorithm>

#include "shared/base/files.h"
#include "tests/support/paths.h"
#include "tests/support/worker/toolchain_bench.h"
#include "worker/toolchain/toolchain.h"

using namespace layerfarm;
using namespace layerfarm::worker;
using namespace layerfarm::worker::toolchain;
using domain::Ending;

namespace {

domain::ChipSpec chip_with(const std::string& json) {
  return domain::parse_chip(json, "chip.json").value();
}

domain::ChipSpec process_chip(const std::string& options) {
  return chip_with(R"({"toolchain": "process", "options": )" + options +
                   R"(, "executors": [{"name": "e0", "evidence": "stand-in"}]})");
}

}  // namespace

TEST_CASE("every toolchain of the list is made under its own name, an unknown name gives none") {
  const auto names = toolchain_names();
  for (const std::string name : {"iree", "null", "ort", "ort-ep", "process", "torq"})
    CHECK(std::count(names.begin(), names.end(), name) == 1);
  for (const std::string& name : names) {
    const auto made = make_toolchain(name);
    REQUIRE(made != nullptr);
    CHECK(made->name() == name);
  }
  CHECK(make_toolchain("nope") == nullptr);
  CHECK(make_toolchain("") == nullptr);
}

TEST_CASE("null is always there, needs nothing, starts nothing and is done at once") {
  test::ToolBench bench;
  const auto toolchain = make_toolchain("null");
  const domain::ChipSpec chip;
  const domain::ExecutorSpec executor;
  const Needs needs = toolchain->needs(chip);
  CHECK_FALSE(needs.prepare);
  CHECK_FALSE(needs.compile);
  CHECK(needs.tiny);
  CHECK(toolchain->probe(chip).found);
  CHECK(toolchain->run(chip, executor, {}, bench.step).ending == Ending::Done);
  CHECK(toolchain->time(chip, executor, {}, 3, bench.step).runs_us.size() == 3);
  const CompileJob jobs[2];
  const auto compiled = toolchain->compile(chip, executor, jobs, bench.step);
  REQUIRE(compiled.size() == 2);
  CHECK(compiled[1].ending == Ending::Done);
  CHECK(bench.runner.commands().empty());
}

TEST_CASE(
    "process runs the chip's command in the step's folder, on the worker's cores, within its "
    "bounds") {
  test::ToolBench bench;
  bench.step.cores = {3};
  bench.runner.add("prog", [](const process::Command&) { return test::FakeRun{}; });
  const auto chip = process_chip(R"({"command": ["prog", "a b", ""]})");
  const RunResult result =
      make_toolchain("process")->run(chip, chip.executors[0], {}, bench.context());
  CHECK(result.ending == Ending::Done);
  REQUIRE(bench.runner.commands().size() == 1);
  const process::Command& command = bench.runner.commands()[0];
  CHECK(command.argv == std::vector<std::string>{"prog", "a b", ""});
  CHECK(command.folder == bench.step.scratch);
  CHECK(command.cores == std::vector<int>{3});
  CHECK(command.bounds.wall == std::chrono::milliseconds(bench.step.limits.run_timeout_ms));
}

TEST_CASE(
    "process hands over the layer's module when asked, and calls a failing exit code a refusal") {
  test::ToolBench bench;
  bench.runner.add("prog", [](const process::Command&) {
    return test::FakeRun{.exit_code = 1, .errors = "no"};
  });
  const auto chip = process_chip(R"({"command": ["prog"], "layer_argument": "1"})");
  domain::Layer layer;
  layer.module.blob = bench.blobs.put("module").value();
  const RunResult result = make_toolchain("process")->run(
      chip, chip.executors[0], {.layer = &layer, .artifact = nullptr, .prepared = nullptr},
      bench.context());
  CHECK(result.ending == Ending::Refused);
  CHECK(result.diagnostic.text == "no");
  CHECK(result.diagnostic.cause == "exit code 1");
  REQUIRE(bench.runner.commands().size() == 1);
  CHECK(base::read_file(bench.runner.commands()[0].argv.back()).value() == "module");
  layer.module.blob = base::digest_of("pruned");
  std::filesystem::remove_all(bench.step.scratch);
  CHECK(make_toolchain("process")
            ->run(chip, chip.executors[0],
                  {.layer = &layer, .artifact = nullptr, .prepared = nullptr}, bench.context())
            .lost.size() == 1);
}

TEST_CASE("process tells a missing command or program before any case runs") {
  const auto toolchain = make_toolchain("process");
  CHECK(toolchain->probe(process_chip(R"({"command": ["true"]})")).found);
  CHECK(toolchain->probe(process_chip(R"({"command": ["/bin/sh"]})")).found);
  CHECK(toolchain->probe(process_chip(R"({"command": ["no-such-program-here"]})")).missing ==
        "program no-such-program-here");
  CHECK(toolchain->probe(process_chip(R"({"command": ["/no/such"]})")).missing ==
        "program /no/such");
  CHECK(toolchain->probe(process_chip("{}")).missing.find("'command'") != std::string::npos);
  test::ToolBench bench;
  const auto chip = process_chip("{}");
  CHECK(toolchain->run(chip, chip.executors[0], {}, bench.context()).ending ==
        Ending::Infrastructure);
}

TEST_CASE("process takes an executor's own command, and each executor needs one") {
  const auto chip = chip_with(
      R"({"toolchain": "process", "executors": [{"name": "a", "evidence": "stand-in", "options": {"command": ["true"]}},
      {"name": "b", "evidence": "stand-in", "options": {"command": ["false"]}}]})");
  const auto toolchain = make_toolchain("process");
  const Probe both = toolchain->probe(chip);
  CHECK(both.found);
  CHECK(both.identity.version == "true, false");
  auto lacks = chip;
  lacks.executors[1].options.clear();
  CHECK(toolchain->probe(lacks).missing.find("its executor b") != std::string::npos);
  lacks.options = {{"command", "true"}};
  const Probe shared = toolchain->probe(lacks);
  CHECK(shared.found);
  CHECK(shared.identity.version == "true");
  CHECK_FALSE(shared.identity.files == both.identity.files);
}

TEST_CASE("process times each run after one warm-up and stops at the first failure") {
  test::ToolBench bench;
  int calls = 0;
  bench.runner.add("prog", [&calls](const process::Command&) {
    return test::FakeRun{.exit_code = ++calls == 4 ? 1 : 0, .takes = std::chrono::milliseconds(2)};
  });
  const auto chip = process_chip(R"({"command": ["prog"]})");
  const auto toolchain = make_toolchain("process");
  CHECK(toolchain->time(chip, chip.executors[0], {}, 2, bench.context()).runs_us ==
        std::vector<std::int64_t>{2000, 2000});
  CHECK(toolchain->time(chip, chip.executors[0], {}, 2, bench.context()).ending == Ending::Refused);
  CHECK(calls == 4);
}

TEST_CASE(
    "every installed chip file is right, is named as its file, and names a toolchain that exists") {
  std::size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(test::kConfigsFolder) + "/chips")) {
    if (entry.path().extension() != ".json") continue;
    ++count;
    const auto chip =
        domain::parse_chip(base::read_file(entry.path()).value(), entry.path().string());
    REQUIRE_MESSAGE(chip.has_value(), chip.error().text());
    CHECK(chip->name == entry.path().stem());
    CHECK_MESSAGE(make_toolchain(chip->toolchain) != nullptr, chip->name);
    CHECK_MESSAGE(!chip->notes.empty(), chip->name);
  }
  CHECK(count >= 4);
}
