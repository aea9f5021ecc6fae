// The adapters ort and ort-ep with the real helper, ONNX Runtime and Qualcomm's provider: prepare,
// compile, run and time one small layer, as a worker does.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "shared/base/files.h"
#include "shared/domain/verdict.h"
#include "tests/support/paths.h"
#include "worker/process/launcher.h"
#include "worker/process/posix_process_runner.h"
#include "worker/toolchain/execute_stage.h"
#include "worker/toolchain/prepare_stage.h"
#include "worker/toolchain/resident_helpers.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {
namespace {

using domain::DType;
using domain::Ending;
using domain::Outcome;

struct RealBench {
  base::ScratchFolder folder = std::move(
      *base::ScratchFolder::make(std::filesystem::temp_directory_path(), "layerfarm-ort-contract"));
  base::BlobFolder blobs{folder.path() / "blobs"};
  std::unique_ptr<process::Launcher> launcher = std::move(*process::Launcher::start());
  process::PosixProcessRunner runner{*launcher};
  process::CancelToken cancel;
  ResidentHelpers helpers{runner, blobs, cancel, {}, folder.path() / "helpers"};
  StepContext context{runner,
                      helpers,
                      blobs,
                      cancel,
                      folder.path() / "scratch",
                      {},
                      {.compile_timeout_ms = 120000,
                       .run_timeout_ms = 120000,
                       .memory_bytes = std::int64_t{8} << 30,
                       .output_bytes = 16 << 20,
                       .file_bytes = std::int64_t{1} << 30}};

  RealBench() { std::filesystem::create_directories(context.scratch); }

  domain::Layer layer(const std::string& name, std::vector<domain::InputSpec> inputs,
                      std::vector<domain::TensorType> outputs) {
    domain::Layer out;
    out.module.blob =
        blobs
            .put(base::read_file(std::string(test::kTestsFolder) + "/data/ort/" + name + ".onnx")
                     .value())
            .value();
    out.inputs = std::move(inputs);
    out.outputs = std::move(outputs);
    for (std::uint32_t i = 0; i < out.inputs.size(); ++i) {
      out.draw_order.push_back(i);
      out.input_names.push_back(std::string(1, static_cast<char>('a' + i)));
    }
    return out;
  }
  domain::Layer add_relu() {
    const domain::TensorType type{DType::Float32, {2, 3}};
    return layer("add_relu", {{.type = type}, {.type = type}}, {type});
  }

  static domain::ChipSpec chip(const std::string& name) {
    const std::string path = std::string(test::kConfigsFolder) + "/chips/" + name + ".json";
    return domain::parse_chip(base::read_file(path).value(), path).value();
  }

  /// All stages; the comparison of the only output.
  domain::Comparison through(const domain::ChipSpec& spec, std::size_t executor,
                             const domain::Layer& one) {
    const Outcome prepared = prepare_stage(one, {}, context);
    REQUIRE_MESSAGE(prepared.ending == Ending::Done, prepared.diagnostic.text);
    const auto toolchain = make_toolchain(spec.toolchain);
    const Probe probe = toolchain->probe(spec);
    REQUIRE_MESSAGE(probe.found, probe.missing);
    StageJob job{.chip = spec,
                 .executor = spec.executors.at(executor),
                 .layer = one,
                 .artifact = nullptr,
                 .prepared = &*prepared.prepared};
    std::vector<Outcome> compiled;
    if (toolchain->needs(spec).compile) {
      const CompileJob compile{.layer = &one};
      compiled = compile_stage(*toolchain, spec, job.executor, {&compile, 1}, context);
      REQUIRE_MESSAGE(compiled.at(0).ending == Ending::Done, compiled.at(0).diagnostic.text);
      job.artifact = &*compiled.at(0).artifact;
    }
    const Outcome timed = time_stage(*toolchain, job, 3, context);
    REQUIRE_MESSAGE(timed.ending == Ending::Done, timed.diagnostic.text);
    CHECK(timed.timed->runs_us.size() == 3);
    const Outcome executed = execute_stage(*toolchain, job, job.executor.tolerance, context);
    REQUIRE_MESSAGE(executed.ending == Ending::Done, executed.diagnostic.text);
    REQUIRE(executed.executed->outputs.size() == 1);
    CHECK(domain::judge(executed.executed->outputs, 1, job.executor.tolerance)->status ==
          domain::Status::Success);
    return executed.executed->outputs[0];
  }
};

}  // namespace

TEST_CASE_FIXTURE(
    RealBench,
    "a layer goes through ONNX Runtime, with and without optimisation, and agrees with itself") {
  const auto spec = chip("ort-cpu");
  for (std::size_t executor = 0; executor < spec.executors.size(); ++executor)
    CHECK(through(spec, executor, add_relu()).max_abs == 0);
}

TEST_CASE_FIXTURE(
    RealBench, "a layer goes through Qualcomm's provider by a context binary, in half precision") {
  const auto spec = chip("SM8550");
  const domain::Comparison htp = through(spec, 0, add_relu());
  CHECK(htp.max_abs > 0);
  CHECK(htp.max_abs < 0.1);
  CHECK(through(spec, 1, add_relu()).max_abs == 0);
}

TEST_CASE_FIXTURE(
    RealBench,
    "what a provider does not take is refused in its own words, and the next layer is served") {
  const auto spec = chip("SM8550");
  const auto toolchain = make_toolchain(spec.toolchain);
  const domain::Layer unsupported =
      layer("sequence", {{.type = {DType::Float32, {2}}}}, {{DType::Float32, {2}}});
  const domain::Layer good = add_relu();
  const CompileJob jobs[2] = {{.layer = &unsupported}, {.layer = &good}};
  const auto out = compile_stage(*toolchain, spec, spec.executors[0], jobs, context);
  CHECK(out[0].ending == Ending::Refused);
  CHECK(out[0].diagnostic.where == "compile");
  CHECK(out[0].diagnostic.text.find("not supported") !=
        std::string::npos);  // QNN's own words, which it only logs
  CHECK(out[0].diagnostic.text.find("fallback") != std::string::npos);
  CHECK(!out[0].diagnostic.raw.is_zero());
  CHECK_MESSAGE(out[1].ending == Ending::Done, out[1].diagnostic.text);
}

TEST_CASE_FIXTURE(RealBench, "a reference that no engine can make says what the first one said") {
  const Outcome out = prepare_stage(
      layer("sequence", {{.type = {DType::Float32, {2}}}}, {{DType::Float32, {2}}}), {}, context);
  CHECK(out.ending == Ending::Refused);
  CHECK(out.diagnostic.where == "reference");
  CHECK(out.diagnostic.text.find("output 0 is no tensor") != std::string::npos);
}

TEST_CASE_FIXTURE(RealBench, "a layer that may take the helper with it harms no other one") {
  // ONNX's node test averagepool_2d_same_upper: the provider reads beside its memory there, so it
  // either ends with SIGSEGV or gives numbers of nothing.
  const domain::TensorType type{DType::Float32, {1, 3, 32, 32}};
  const domain::Layer killer = layer("averagepool_2d_same_upper", {{.type = type}}, {type});
  const auto spec = chip("SM8550");
  const auto toolchain = make_toolchain(spec.toolchain);
  const Outcome prepared = prepare_stage(killer, {}, context);
  REQUIRE_MESSAGE(prepared.ending == Ending::Done, prepared.diagnostic.text);
  const CompileJob compile{.layer = &killer};
  Outcome end = compile_stage(*toolchain, spec, spec.executors[0], {&compile, 1}, context)[0];
  if (end.ending == Ending::Done) {
    const domain::Artifact artifact = *end.artifact;
    const StageJob job{.chip = spec,
                       .executor = spec.executors[0],
                       .layer = killer,
                       .artifact = &artifact,
                       .prepared = &*prepared.prepared};
    end = execute_stage(*toolchain, job, job.executor.tolerance, context);
  }
  if (end.ending == Ending::Done) {
    CHECK(domain::judge(end.executed->outputs, 1, spec.executors[0].tolerance)->status ==
          domain::Status::Difference);
  } else {
    CHECK(end.ending == Ending::Crashed);
    CHECK(end.diagnostic.cause == "crashed: SIGSEGV");
  }
  CHECK(through(chip("ort-cpu"), 0, add_relu()).max_abs == 0);
}

}  // namespace layerfarm::worker::toolchain
