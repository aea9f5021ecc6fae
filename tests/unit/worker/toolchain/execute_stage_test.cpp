#include "worker/toolchain/execute_stage.h"

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>

#include "shared/domain/verdict.h"
#include "tests/support/worker/toolchain_bench.h"

using namespace layerfarm;
using namespace layerfarm::worker;
using namespace layerfarm::worker::toolchain;
using domain::Ending;

namespace {

std::string floats(const std::vector<float>& values) {
  std::string out(values.size() * 4, '\0');
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

/// Writes given outputs, or ends as told.
class FakeToolchain final : public Toolchain {
 public:
  std::vector<std::string> outputs;
  RunResult result{.ending = Ending::Done,
                   .types = {},
                   .outputs = {},
                   .run_us = 42,
                   .note = "a note",
                   .diagnostic = {},
                   .lost = {}};
  Needs wanted;
  std::filesystem::path ran_in;

  [[nodiscard]] std::string_view name() const override { return "fake"; }
  [[nodiscard]] Needs needs(const domain::ChipSpec&) const override { return wanted; }
  [[nodiscard]] Probe probe(const domain::ChipSpec&) const override { return {}; }
  std::vector<domain::Outcome> compile(const domain::ChipSpec&, const domain::ExecutorSpec&,
                                       std::span<const CompileJob> jobs,
                                       StepContext& context) override {
    ran_in = context.scratch;
    domain::Outcome done;
    done.ending = Ending::Done;
    return {jobs.size(), done};
  }
  RunResult run(const domain::ChipSpec&, const domain::ExecutorSpec&, const RunJob&,
                StepContext& context) override {
    ran_in = context.scratch;
    RunResult out = result;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      out.outputs.push_back(context.scratch / std::to_string(i));
      std::ofstream(out.outputs.back(), std::ios::binary) << outputs[i];
      out.types.push_back(
          {domain::DType::Float32, {static_cast<std::int64_t>(outputs[i].size() / 4)}});
    }
    return out;
  }
  TimeResult time(const domain::ChipSpec&, const domain::ExecutorSpec&, const RunJob&, int runs,
                  StepContext&) override {
    return {.ending = result.ending,
            .runs_us = std::vector<std::int64_t>(static_cast<std::size_t>(runs), 7),
            .what = "fake",
            .diagnostic = result.diagnostic};
  }
};

struct StageBench : test::ToolBench {
  domain::ChipSpec chip;
  domain::ExecutorSpec executor;
  domain::Layer layer;
  domain::Prepared prepared;
  domain::Artifact artifact;
  FakeToolchain toolchain;
  domain::Tolerance tolerance;

  StageBench() {
    layer.outputs = {{domain::DType::Float32, {2}}};
    prepared.inputs = {blobs.put("input").value()};
    prepared.expected = {blobs.put(floats({1, 2})).value()};
    prepared.expected_types = layer.outputs;
    artifact.blob = blobs.put("artifact").value();
    toolchain.outputs = {floats({1, 2})};
  }
  StageJob job() {
    return {.chip = chip,
            .executor = executor,
            .layer = layer,
            .artifact = &artifact,
            .prepared = &prepared};
  }
  domain::Outcome execute() { return execute_stage(toolchain, job(), tolerance, context()); }
};

}  // namespace

TEST_CASE(
    "execute compares each output with its reference, keeps it, and leaves no scratch folder") {
  StageBench bench;
  const domain::Outcome out = bench.execute();
  CHECK(out.stage == domain::Stage::Execute);
  REQUIRE(out.ending == Ending::Done);
  REQUIRE(out.executed.has_value());
  REQUIRE(out.executed->outputs.size() == 1);
  CHECK(out.executed->outputs[0].total == 2);
  CHECK(out.executed->outputs[0].max_abs == 0);
  CHECK(out.executed->expected_outputs == 1);
  CHECK(out.executed->run_us == 42);
  CHECK(out.executed->note == "a note");
  REQUIRE(out.executed->actual.size() == 1);
  CHECK(bench.blobs.get(out.executed->actual[0]).value() == floats({1, 2}));
  CHECK_FALSE(std::filesystem::exists(bench.toolchain.ran_in));
}

TEST_CASE("a difference is in the numbers, counted at the tolerance that was asked for") {
  StageBench bench;
  bench.toolchain.outputs = {floats({1, 3})};
  bench.tolerance = {.fp_avg_tol = 0.01, .fp_max_tol = 0.02, .fp_abs_tol_frac = 0};
  const domain::Outcome out = bench.execute();
  CHECK(out.executed->outputs[0].num_failed == 1);
  CHECK(out.executed->outputs[0].counted_at == bench.tolerance);
}

TEST_CASE("an output whose content is open decides nothing by it, in a recompare too") {
  StageBench bench;
  bench.layer.outputs = {{domain::DType::Float32, {2}}, {domain::DType::Float32, {2}}};
  bench.layer.open_outputs = {1};
  bench.prepared.expected = {bench.prepared.expected[0], bench.blobs.put(floats({1, 1})).value()};
  bench.prepared.expected_types = bench.layer.outputs;
  bench.toolchain.outputs = {floats({1, 2}), floats({0, 0})};
  const domain::Outcome out = bench.execute();
  const auto status = [&](const domain::Outcome& outcome) {
    const domain::Executed& executed = *outcome.executed;
    REQUIRE(executed.outputs.size() == 2);
    CHECK(executed.expected_outputs == 2);
    return domain::judge(executed.outputs, 2, bench.tolerance)->status;
  };
  CHECK(status(out) == domain::Status::Success);
  CHECK(out.executed->actual.size() == 2);
  const domain::Outcome again = recompare_stage(bench.layer, bench.prepared, out.executed->actual,
                                                bench.tolerance, bench.context());
  CHECK(status(again) == domain::Status::Success);
  // The other output decides as ever, and so does how many elements there are.
  bench.toolchain.outputs = {floats({1, 3}), floats({0, 0})};
  CHECK(status(bench.execute()) == domain::Status::Difference);
  bench.toolchain.outputs = {floats({1, 2}), floats({0, 0, 0})};
  const domain::Outcome longer = bench.execute();
  CHECK(status(longer) == domain::Status::Difference);
  CHECK(longer.executed->outputs[1].failure == "size differs: 2 vs 3");
}

TEST_CASE("too many and too few outputs are both seen by the verdict") {
  StageBench bench;
  bench.toolchain.outputs = {floats({1, 2}), floats({3})};
  CHECK(bench.execute().executed->outputs.size() == 2);
  bench.toolchain.outputs = {};
  const domain::Outcome out = bench.execute();
  CHECK(out.ending == Ending::Done);
  CHECK(out.executed->outputs.empty());
  CHECK(out.executed->expected_outputs == 1);
}

TEST_CASE(
    "outputs whose element type is not the layer's are compared but not kept, since recompare "
    "takes it from the layer") {
  StageBench bench;
  bench.layer.outputs = {{domain::DType::Int32, {2}}};
  const domain::Outcome out = bench.execute();
  CHECK(out.executed->actual.empty());
  CHECK(out.executed->outputs.size() == 1);
}

TEST_CASE(
    "an output whose shape depends on values is compared with the reference's shape, kept, and "
    "counted again for another tolerance") {
  StageBench bench;
  bench.layer.outputs = {{domain::DType::Float32, {0}}};  // what a run with zeros gave
  bench.toolchain.outputs = {floats({1, 2.1F})};
  const domain::Outcome out = bench.execute();
  CHECK(out.executed->outputs[0].failure.empty());
  CHECK(out.executed->outputs[0].num_failed == 1);
  REQUIRE(out.executed->actual.size() == 1);
  const domain::Tolerance wide{.fp_avg_tol = 0.5, .fp_max_tol = 0.5, .fp_abs_tol_frac = 0};
  const domain::Outcome again =
      recompare_stage(bench.layer, bench.prepared, out.executed->actual, wide, bench.context());
  REQUIRE(again.ending == Ending::Done);
  CHECK(again.executed->outputs[0].num_failed == 0);
}

TEST_CASE("whatever is pruned is named: an input, the artifact, a file beside it, the reference") {
  StageBench bench;
  const auto lost = [&bench] {
    const domain::Outcome out = bench.execute();
    CHECK(out.ending == Ending::LostBlob);
    return out.lost;
  };
  const base::Digest gone = base::digest_of("gone");
  bench.artifact.data = {{.name = "x", .blob = gone, .bytes = 1}};
  CHECK(lost() == std::vector<base::Digest>{gone});
  bench.artifact.data.clear();
  REQUIRE(bench.blobs.remove(bench.artifact.blob));
  CHECK(lost() == std::vector<base::Digest>{bench.artifact.blob});
  bench.artifact.blob = bench.blobs.put("artifact").value();
  bench.prepared.inputs.push_back(gone);
  CHECK(lost() == std::vector<base::Digest>{gone});
  bench.prepared.inputs.pop_back();
  bench.prepared.expected = {gone};
  CHECK(lost() == std::vector<base::Digest>{gone});
}

TEST_CASE(
    "an adapter's refusal, crash or time-out is the outcome as it is; trying again is not this "
    "stage's business") {
  StageBench bench;
  bench.toolchain.result.diagnostic = {
      .where = "run", .cause = "crashed: SIGSEGV", .text = "t", .raw = {}};
  for (const Ending ending : {Ending::Refused, Ending::Crashed, Ending::TimedOut,
                              Ending::OverMemory, Ending::Cancelled}) {
    bench.toolchain.result.ending = ending;
    const domain::Outcome out = bench.execute();
    CHECK(out.ending == ending);
    CHECK(out.diagnostic == bench.toolchain.result.diagnostic);
    CHECK_FALSE(out.executed.has_value());
  }
}

TEST_CASE("a toolchain that needs no reference gives a success without outputs") {
  StageBench bench;
  bench.toolchain.outputs.clear();
  bench.toolchain.wanted = {.prepare = false, .compile = false, .batch = 1, .tiny = true};
  const domain::Outcome out = execute_stage(bench.toolchain,
                                            {.chip = bench.chip,
                                             .executor = bench.executor,
                                             .layer = bench.layer,
                                             .artifact = nullptr,
                                             .prepared = nullptr},
                                            {}, bench.context());
  CHECK(out.ending == Ending::Done);
  CHECK(out.executed->outputs.empty());
  CHECK(out.executed->expected_outputs == 0);
  CHECK(bench.toolchain.ran_in == bench.step.scratch);  // tiny: no folder of its own
}

TEST_CASE("recompare counts the kept outputs again for another tolerance") {
  StageBench bench;
  bench.toolchain.outputs = {floats({1, 2.1F})};
  const domain::Outcome first = bench.execute();
  CHECK(first.executed->outputs[0].num_failed == 1);
  const domain::Tolerance wide{.fp_avg_tol = 0.5, .fp_max_tol = 0.5, .fp_abs_tol_frac = 0};
  const domain::Outcome again =
      recompare_stage(bench.layer, bench.prepared, first.executed->actual, wide, bench.context());
  CHECK(again.stage == domain::Stage::Recompare);
  REQUIRE(again.ending == Ending::Done);
  CHECK(again.executed->outputs[0].num_failed == 0);
  CHECK(again.executed->outputs[0].counted_at == wide);
  CHECK(again.executed->outputs[0].max_abs == first.executed->outputs[0].max_abs);
  CHECK(
      recompare_stage(bench.layer, bench.prepared, {base::digest_of("gone")}, wide, bench.context())
          .ending == Ending::LostBlob);
}

TEST_CASE("timing gives the runs and what was measured, or the failure") {
  StageBench bench;
  const domain::Outcome out = time_stage(bench.toolchain, bench.job(), 3, bench.context());
  CHECK(out.stage == domain::Stage::Time);
  REQUIRE(out.timed.has_value());
  CHECK(out.timed->runs_us == std::vector<std::int64_t>{7, 7, 7});
  CHECK(out.timed->what == "fake");
  bench.toolchain.result.ending = Ending::TimedOut;
  const domain::Outcome failed = time_stage(bench.toolchain, bench.job(), 3, bench.context());
  CHECK(failed.ending == Ending::TimedOut);
  CHECK_FALSE(failed.timed.has_value());
}

TEST_CASE(
    "compile works in a folder of its own that is gone afterwards, and every outcome says its "
    "stage") {
  StageBench bench;
  const CompileJob jobs[2] = {{&bench.layer}, {&bench.layer}};
  const auto out =
      compile_stage(bench.toolchain, bench.chip, bench.executor, jobs, bench.context());
  REQUIRE(out.size() == 2);
  CHECK(out[1].stage == domain::Stage::Compile);
  CHECK(bench.toolchain.ran_in.parent_path() == bench.step.scratch);
  CHECK_FALSE(std::filesystem::exists(bench.toolchain.ran_in));
  bench.step.scratch = "/proc/none";
  CHECK(compile_stage(bench.toolchain, bench.chip, bench.executor, jobs, bench.step)[0].ending ==
        Ending::Infrastructure);
}
