// The iree adapter over IREE itself: what it compiles, runs and refuses, alone and in batches.
#include <doctest/doctest.h>

#include "tests/system/toolchain/real_bench.h"

using namespace layerfarm;
using namespace layerfarm::worker;
using namespace layerfarm::worker::toolchain;
using domain::Ending;
using domain::Outcome;

namespace {

struct Compiled {
  std::vector<domain::Layer> layers;
  std::vector<Outcome> outcomes;
};

Compiled compile(test::RealBench& bench, const domain::ChipSpec& chip, std::size_t executor,
                 const std::vector<nlohmann::json>& entries) {
  Compiled out;
  for (const auto& entry : entries) out.layers.push_back(bench.layer_of(entry));
  std::vector<CompileJob> jobs;
  for (const domain::Layer& layer : out.layers) jobs.push_back({&layer});
  out.outcomes =
      compile_stage(*make_toolchain("iree"), chip, chip.executors[executor], jobs, bench.step);
  return out;
}

/// Runs what compiled and says what is wrong; empty when the outputs are the expected ones.
std::string run_problem(test::RealBench& bench, const domain::ChipSpec& chip, std::size_t executor,
                        const nlohmann::json& entry, const domain::Layer& layer,
                        const Outcome& compiled) {
  if (compiled.ending != Ending::Done)
    return "compile: " + compiled.diagnostic.cause + ": " + compiled.diagnostic.text;
  const domain::Prepared prepared = bench.prepared_of(entry);
  const StageJob job{.chip = chip,
                     .executor = chip.executors[executor],
                     .layer = layer,
                     .artifact = &*compiled.artifact,
                     .prepared = &prepared};
  const Outcome ran =
      execute_stage(*make_toolchain("iree"), job, chip.executors[executor].tolerance, bench.step);
  if (ran.ending != Ending::Done)
    return "run: " + ran.diagnostic.cause + ": " + ran.diagnostic.text;
  const auto verdict = domain::judge(ran.executed->outputs, ran.executed->expected_outputs,
                                     chip.executors[executor].tolerance);
  if (!verdict) return "no verdict";
  return verdict->status == domain::Status::Success ? "" : verdict->reason;
}

}  // namespace

TEST_CASE("IREE is found without activation, with its version, files and processor, at once") {
  const auto chip = test::RealBench::chip("host-cpu");
  const auto iree = make_toolchain("iree");
  const Probe probe = iree->probe(chip);
  REQUIRE_MESSAGE(probe.found, probe.missing);
  CHECK_FALSE(probe.identity.version.empty());
  CHECK_FALSE(probe.identity.files.is_zero());
  CHECK_FALSE(probe.identity.cpu.empty());
  CHECK(iree->probe(chip).identity == probe.identity);
  CHECK(iree->needs(chip).batch == 16);
}

TEST_CASE(
    "every element type and shape goes into a compiled function and comes out, on both executors") {
  test::RealBench bench;
  const auto chip = bench.chip("host-cpu");
  std::vector<nlohmann::json> entries;
  for (const auto& entry : bench.index.at("layers")) {
    if (entry.at("name").get<std::string>().rfind("type_", 0) == 0) entries.push_back(entry);
  }
  REQUIRE(entries.size() == 39);
  for (std::size_t executor = 0; executor < 2; ++executor) {
    const Compiled compiled = compile(bench, chip, executor, entries);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::string name = entries[i].at("name").get<std::string>();
      const std::string problem =
          run_problem(bench, chip, executor, entries[i], compiled.layers[i], compiled.outcomes[i]);
      // IREE's virtual machine has no half-precision arithmetic and says so.
      const bool no_half =
          executor == 1 && name.rfind("type_f16", 0) == 0 && name != "type_f16_0x3";
      if (no_half) {
        CHECK_MESSAGE(problem.rfind("compile: refused", 0) == 0, name << ": " << problem);
      } else {
        CHECK_MESSAGE(problem.empty(),
                      chip.executors[executor].name << " " << name << ": " << problem);
      }
    }
  }
}

TEST_CASE(
    "layers with weights, several outputs, expanded operators and large external constants give "
    "the right numbers") {
  test::RealBench bench;
  const auto chip = bench.chip("host-cpu");
  std::vector<nlohmann::json> entries;
  for (const auto& entry : bench.index.at("layers")) {
    const std::string name = entry.at("name").get<std::string>();
    if (name == "relu" || name == "matmul" || name == "two_outputs" || name == "expanded" ||
        name == "large_constant")
      entries.push_back(entry);
  }
  const Compiled compiled = compile(bench, chip, 0, entries);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string problem =
        run_problem(bench, chip, 0, entries[i], compiled.layers[i], compiled.outcomes[i]);
    CHECK_MESSAGE(problem.empty(), entries[i].at("name").get<std::string>() << ": " << problem);
    const bool alone = entries[i].at("name") == "large_constant";
    CHECK(compiled.outcomes[i].artifact->batch == (alone ? 1 : entries.size() - 1));
  }
  CHECK(std::filesystem::is_empty(bench.step.scratch));
}

TEST_CASE(
    "a batch of good and bad layers gives each the ending and the text that it gets alone, on both "
    "executors") {
  test::RealBench bench;
  const auto chip = bench.chip("host-cpu");
  std::vector<nlohmann::json> entries;
  for (const auto& entry : bench.index.at("layers")) {
    const std::string name = entry.at("name").get<std::string>();
    if (name.rfind("type_", 0) != 0 || name.rfind("type_f16", 0) == 0) entries.push_back(entry);
  }
  for (std::size_t executor = 0; executor < 2; ++executor) {
    const Compiled together = compile(bench, chip, executor, entries);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::string name = entries[i].at("name").get<std::string>();
      const Outcome alone = compile(bench, chip, executor, {entries[i]}).outcomes.at(0);
      const Outcome& one = together.outcomes[i];
      CHECK_MESSAGE(one.ending == alone.ending,
                    name << ": " << one.diagnostic.text << " / " << alone.diagnostic.text);
      CHECK_MESSAGE(one.diagnostic.cause == alone.diagnostic.cause, name);
      CHECK_MESSAGE(one.diagnostic.text == alone.diagnostic.text, name);
      CHECK(one.diagnostic.where == alone.diagnostic.where);
      const std::string verdict = entries[i].at("verdict").get<std::string>();
      if (verdict == "refused") CHECK_MESSAGE(one.ending == Ending::Refused, name);
      if (verdict == "refused") CHECK_MESSAGE(!one.diagnostic.text.empty(), name);
    }
  }
}

TEST_CASE(
    "layers of an old opset that IREE refuses are raised, give the right numbers, and say that "
    "they were raised") {
  test::RealBench bench;
  const auto chip = bench.chip("host-cpu");
  std::size_t count = 0;
  for (const auto& entry : bench.index.at("layers")) {
    if (entry.at("name").get<std::string>().rfind("old_", 0) != 0) continue;
    ++count;
    const Compiled compiled = compile(bench, chip, 0, {entry});
    CHECK(run_problem(bench, chip, 0, entry, compiled.layers[0], compiled.outcomes[0]).empty());
    REQUIRE(compiled.outcomes[0].artifact.has_value());
    CHECK(compiled.outcomes[0].artifact->note == "raised to opset 17");
  }
  CHECK(count == 2);
}

TEST_CASE("a time limit ends a compilation and says so") {
  test::RealBench bench;
  const auto chip = bench.chip("host-cpu");
  for (const auto& entry : bench.index.at("layers")) {
    if (entry.at("name") != "expanded") continue;
    REQUIRE(compile(bench, chip, 0, {entry}).outcomes[0].ending ==
            Ending::Done);  // the sidecar is warm now
    bench.step.limits.compile_timeout_ms = 60;
    const Outcome late = compile(bench, chip, 0, {entry}).outcomes[0];
    CHECK(late.ending == Ending::TimedOut);
    CHECK(late.diagnostic.cause == "timed out after 60 ms");
  }
}

TEST_CASE("timing measures the run program alone") {
  test::RealBench bench;
  const auto chip = bench.chip("host-cpu");
  for (const auto& entry : bench.index.at("layers")) {
    if (entry.at("name") != "relu") continue;
    const Compiled compiled = compile(bench, chip, 0, {entry});
    const domain::Prepared prepared = bench.prepared_of(entry);
    const Outcome timed = time_stage(*make_toolchain("iree"),
                                     {.chip = chip,
                                      .executor = chip.executors[0],
                                      .layer = compiled.layers[0],
                                      .artifact = &*compiled.outcomes[0].artifact,
                                      .prepared = &prepared},
                                     3, bench.step);
    REQUIRE(timed.timed.has_value());
    CHECK(timed.timed->what == "iree-run-module process");
    CHECK(timed.timed->runs_us.size() == 3);
    for (const auto us : timed.timed->runs_us) CHECK(us > 0);
  }
}
