// The ort and ort-ep adapters against a helper of the test's own, which says what it was asked.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/worker/toolchain_bench.h"
#include "worker/toolchain/cpu.h"
#include "worker/toolchain/ort_helper.h"
#include "worker/toolchain/toolchain.h"

using namespace layerfarm;
using namespace layerfarm::worker;
using namespace layerfarm::worker::toolchain;
using domain::DType;
using domain::Ending;
using domain::Outcome;
using nlohmann::json;

namespace {

struct OrtBench : test::ToolBench {
  domain::Layer layer;
  domain::Prepared prepared;
  std::vector<json> asked;
  json reply = {{"ok", true}};
  Ending ending = Ending::Done;
  domain::Diagnostic why;

  OrtBench() {
    layer.module.blob = blobs.put("the module").value();
    layer.module.data = {{.name = "data.bin", .blob = blobs.put("constants").value(), .bytes = 9}};
    layer.inputs = {{.type = {DType::Float32, {2}}}};
    layer.outputs = {{DType::Float32, {2}}};
    prepared.inputs = {blobs.put("12345678").value()};
    helpers.on_ort = [this](const std::string& request) {
      asked.push_back(json::parse(request));
      if (asked.back().at("op") == "compile" && ending == Ending::Done)
        compile(asked.back().at("output").get<std::string>());
      return HelperAnswer{.ending = ending, .json = reply.dump(), .diagnostic = why};
    };
  }

  /// As a provider would: a model and a binary beside it.
  void compile(const std::filesystem::path& output) {
    std::ofstream(output) << "context model";
    std::ofstream(output.parent_path() / "made_qnn.bin") << "binary";
    reply = {{"ok", true},
             {"files", {output.filename().string(), "made_qnn.bin"}},
             {"session_us", 1234}};
  }
  void reply_with_output() {
    reply = {{"ok", true},
             {"run_us", 77},
             {"session_us", 5},
             {"outputs", {{{"file", "/out/output_0.bin"}, {"dtype", 1}, {"dims", {2}}}}}};
  }
};

domain::ChipSpec chip_of(const std::string& text) {
  return domain::parse_chip(text, "chip.json").value();
}

domain::ChipSpec vendor_chip() {
  return chip_of(
      R"({"toolchain": "ort-ep", "options": {"package": "no_such_package", "library": "libplug.so", "provider": "P", "device": "NPU",
      "provider.soc_model": "43", "session.key": "v"},
      "executors": [{"name": "htp", "evidence": "emulator"}, {"name": "host", "evidence": "hardware", "same_engine": true, "options": {"engine": "cpu"}}]})");
}

}  // namespace

TEST_CASE_FIXTURE(OrtBench,
                  "ort runs the layer's module on the CPU with the options of the executor") {
  const auto chip =
      chip_of(R"({"toolchain": "ort", "options": {"threads": "3", "session.a": "b"}, "executors": [
      {"name": "cpu", "evidence": "hardware"}, {"name": "cpu-noopt", "evidence": "hardware", "options": {"optimization": "none"}}]})");
  const auto toolchain = make_toolchain("ort");
  CHECK(!toolchain->needs(chip).compile);
  reply_with_output();
  const RunResult run =
      toolchain->run(chip, chip.executors[1],
                     {.layer = &layer, .artifact = nullptr, .prepared = &prepared}, context());
  CHECK(run.ending == Ending::Done);
  CHECK(run.run_us == 77);
  REQUIRE(run.types.size() == 1);
  CHECK(run.types[0] == layer.outputs[0]);
  CHECK(run.outputs[0] == "/out/output_0.bin");
  REQUIRE(asked.size() == 1);
  const json& request = asked[0];
  CHECK(request.at("op") == "run");
  CHECK(request.at("optimize") == false);
  CHECK(request.at("threads") == 3);
  CHECK(request.at("session") == json{{"a", "b"}});
  CHECK(!request.contains("provider"));
  CHECK(request.at("inputs")[0].at("file") == blobs.path(prepared.inputs[0]).string());
  CHECK(request.at("inputs")[0].at("dims") == json::array({2}));
  CHECK(base::read_file(request.at("model").get<std::string>()).value() == "the module");
  CHECK(
      base::read_file(std::filesystem::path(request.at("model").get<std::string>()).parent_path() /
                      "data.bin")
          .value() == "constants");
  CHECK(toolchain
            ->run(chip, chip.executors[0],
                  {.layer = &layer, .artifact = nullptr, .prepared = &prepared}, context())
            .ending == Ending::Done);
  CHECK(asked[1].at("optimize") == true);
}

TEST_CASE_FIXTURE(OrtBench, "what compiles nothing hands the module on as its artifact") {
  const auto chip = vendor_chip();
  const CompileJob job{.layer = &layer};
  for (const auto& [name, executor] : {std::pair{"ort", 0}, std::pair{"ort-ep", 1}}) {
    const auto out = make_toolchain(name)->compile(
        chip, chip.executors[static_cast<std::size_t>(executor)], {&job, 1}, context());
    REQUIRE(out.size() == 1);
    CHECK(out[0].ending == Ending::Done);
    CHECK(out[0].artifact.value().blob == layer.module.blob);
    CHECK(out[0].artifact.value().data == layer.module.data);
  }
  CHECK(asked.empty());
}

TEST_CASE_FIXTURE(OrtBench, "a provider compiles a context binary, and the run uses it") {
  const auto chip = vendor_chip();
  const auto toolchain = make_toolchain("ort-ep");
  CHECK(toolchain->needs(chip).compile);
  const CompileJob job{.layer = &layer};
  const auto compiled = toolchain->compile(chip, chip.executors[0], {&job, 1}, context());
  REQUIRE(compiled.size() == 1);
  REQUIRE_MESSAGE(compiled[0].ending == Ending::Done, compiled[0].diagnostic.text);
  const domain::Artifact artifact = compiled[0].artifact.value();
  CHECK(blobs.get(artifact.blob).value() == "context model");
  REQUIRE(artifact.data.size() == 1);
  CHECK(artifact.data[0].name == "made_qnn.bin");
  CHECK(artifact.data[0].bytes == 6);
  CHECK(artifact.compile_us == 1234);
  const json provider = asked[0].at("provider");
  CHECK(provider.at("name") == "P");
  CHECK(provider.at("device") == "NPU");
  CHECK(provider.at("options") == json{{"soc_model", "43"}});
  CHECK(provider.at("library").get<std::string>().ends_with("/no_such_package/libplug.so"));
  CHECK(asked[0].at("no_fallback") == true);
  CHECK(asked[0].at("session") == json{{"key", "v"}});

  reply_with_output();
  CHECK(toolchain
            ->run(chip, chip.executors[0],
                  {.layer = &layer, .artifact = &artifact, .prepared = &prepared}, context())
            .ending == Ending::Done);
  const std::filesystem::path model = asked.back().at("model").get<std::string>();
  CHECK(base::read_file(model).value() == "context model");
  CHECK(base::read_file(model.parent_path() / "made_qnn.bin").value() == "binary");
  CHECK(asked.back().at("no_fallback") == true);
}

TEST_CASE_FIXTURE(
    OrtBench,
    "options of the user win over the chip's, each in its own step; without a step of "
    "compilation the run takes both") {
  auto chip = vendor_chip();
  chip.options["provider_at_compile.soc_model"] = "57";
  chip.options["provider_at_run.profile"] = "on";
  const auto toolchain = make_toolchain("ort-ep");
  const CompileJob job{.layer = &layer};
  const auto compiled = toolchain->compile(chip, chip.executors[0], {&job, 1}, context());
  REQUIRE(compiled[0].ending == Ending::Done);
  CHECK(asked[0].at("provider").at("options") == json{{"soc_model", "57"}});
  const domain::Artifact artifact = compiled[0].artifact.value();
  reply_with_output();
  const auto options_of_run = [&] {
    CHECK(toolchain
              ->run(chip, chip.executors[0],
                    {.layer = &layer, .artifact = &artifact, .prepared = &prepared}, context())
              .ending == Ending::Done);
    return asked.back().at("provider").at("options");
  };
  CHECK(options_of_run() == json{{"soc_model", "43"}, {"profile", "on"}});
  chip.options["context"] = "none";
  CHECK(options_of_run() == json{{"soc_model", "57"}, {"profile", "on"}});
}

TEST_CASE_FIXTURE(
    OrtBench, "a layer for which the provider writes no binary runs from its module, and says so") {
  const auto chip = vendor_chip();
  const auto toolchain = make_toolchain("ort-ep");
  reply = {{"ok", true}, {"files", json::array()}, {"session_us", 9}};
  helpers.on_ort = [this](const std::string& request) {
    asked.push_back(json::parse(request));
    return HelperAnswer{.ending = Ending::Done, .json = reply.dump(), .diagnostic = {}};
  };
  const CompileJob job{.layer = &layer};
  const auto compiled = toolchain->compile(chip, chip.executors[0], {&job, 1}, context());
  REQUIRE(compiled[0].ending == Ending::Done);
  const domain::Artifact artifact = compiled[0].artifact.value();
  CHECK(artifact.blob == layer.module.blob);
  CHECK(!artifact.note.empty());
  reply_with_output();
  const RunResult run =
      toolchain->run(chip, chip.executors[0],
                     {.layer = &layer, .artifact = &artifact, .prepared = &prepared}, context());
  CHECK(run.ending == Ending::Done);
  CHECK(run.note == artifact.note);
  CHECK(asked.back().contains("provider"));
  CHECK(base::read_file(asked.back().at("model").get<std::string>()).value() == "the module");
  // Binaries that no model names are no answer.
  reply = {{"ok", true}, {"files", {"stray.bin"}}, {"session_us", 9}};
  CHECK(toolchain->compile(chip, chip.executors[0], {&job, 1}, context())[0].ending ==
        Ending::Infrastructure);
}

TEST_CASE_FIXTURE(OrtBench, "the host executor of a vendor's chip runs on the CPU provider") {
  const auto chip = vendor_chip();
  reply_with_output();
  const RunResult run = make_toolchain("ort-ep")->run(
      chip, chip.executors[1], {.layer = &layer, .artifact = nullptr, .prepared = &prepared},
      context());
  CHECK(run.ending == Ending::Done);
  CHECK(!asked[0].contains("provider"));
}

TEST_CASE_FIXTURE(OrtBench,
                  "a provider without context binaries needs no compile and runs the module") {
  auto chip = vendor_chip();
  chip.options["context"] = "none";
  const auto toolchain = make_toolchain("ort-ep");
  CHECK(!toolchain->needs(chip).compile);
  reply_with_output();
  CHECK(toolchain
            ->run(chip, chip.executors[0],
                  {.layer = &layer, .artifact = nullptr, .prepared = &prepared}, context())
            .ending == Ending::Done);
  CHECK(base::read_file(asked[0].at("model").get<std::string>()).value() == "the module");
  CHECK(asked[0].contains("provider"));
}

TEST_CASE_FIXTURE(OrtBench,
                  "endings and words of the helper reach the outcome, with the step that failed") {
  const auto chip = vendor_chip();
  const auto toolchain = make_toolchain("ort-ep");
  const CompileJob job{.layer = &layer};
  for (const Ending bad : {Ending::Refused, Ending::Crashed, Ending::TimedOut, Ending::OverMemory,
                           Ending::Cancelled}) {
    ending = bad;
    why = {
        .where = "layerfarm-ort", .cause = "the cause", .text = "MEM_ALLOC, Code: 1002", .raw = {}};
    const auto compiled = toolchain->compile(chip, chip.executors[0], {&job, 1}, context());
    CHECK(compiled[0].ending == bad);
    CHECK(compiled[0].diagnostic.where == "compile");
    CHECK(compiled[0].diagnostic.cause == "the cause");
    CHECK(compiled[0].diagnostic.text == "MEM_ALLOC, Code: 1002");
    CHECK(!compiled[0].artifact);
    const RunResult run =
        toolchain->run(chip, chip.executors[1],
                       {.layer = &layer, .artifact = nullptr, .prepared = &prepared}, context());
    CHECK(run.ending == bad);
    CHECK(run.diagnostic.where == "run");
    CHECK(toolchain
              ->time(chip, chip.executors[1],
                     {.layer = &layer, .artifact = nullptr, .prepared = &prepared}, 3, context())
              .ending == bad);
  }
}

TEST_CASE_FIXTURE(OrtBench,
                  "what the helper could not write or understand is no fault of the layer") {
  ending = Ending::Refused;
  const auto chip = vendor_chip();
  for (const char* where : {"store", "request"}) {
    why = {.where = where, .cause = "refused", .text = "disk full", .raw = {}};
    CHECK(make_toolchain("ort-ep")
              ->run(chip, chip.executors[1],
                    {.layer = &layer, .artifact = nullptr, .prepared = &prepared}, context())
              .ending == Ending::Infrastructure);
  }
  ending = Ending::Done;
  for (const char* odd : {R"({"ok":true})", R"({"ok":true,"outputs":[1],"run_us":2})", R"([])"}) {
    reply = json::parse(odd);
    CHECK(make_toolchain("ort")
              ->run(chip, chip.executors[1],
                    {.layer = &layer, .artifact = nullptr, .prepared = &prepared}, context())
              .ending == Ending::Infrastructure);
    CHECK(make_toolchain("ort")
              ->time(chip, chip.executors[1],
                     {.layer = &layer, .artifact = nullptr, .prepared = &prepared}, 2, context())
              .ending == Ending::Infrastructure);
  }
}

TEST_CASE_FIXTURE(OrtBench, "timing asks for one warm-up and says what was measured") {
  const auto chip = vendor_chip();
  reply = {{"ok", true}, {"runs_us", {5, 6, 7}}, {"session_us", 1}};
  const TimeResult timed = make_toolchain("ort-ep")->time(
      chip, chip.executors[1], {.layer = &layer, .artifact = nullptr, .prepared = &prepared}, 3,
      context());
  CHECK(timed.ending == Ending::Done);
  CHECK(timed.runs_us == std::vector<std::int64_t>{5, 6, 7});
  CHECK(timed.what == "session run");
  CHECK(asked[0].at("op") == "time");
  CHECK(asked[0].at("warm_up") == 1);
  CHECK(asked[0].at("runs") == 3);
}

TEST_CASE_FIXTURE(OrtBench, "a module that was pruned is lost, not refused") {
  CHECK(blobs.remove(layer.module.blob));
  const auto chip = vendor_chip();
  const RunJob job{.layer = &layer, .artifact = nullptr, .prepared = &prepared};
  for (const char* name : {"ort", "ort-ep"}) {
    const RunResult run = make_toolchain(name)->run(chip, chip.executors[1], job, context());
    CHECK(run.ending == Ending::LostBlob);
    CHECK(run.lost == std::vector<base::Digest>{layer.module.blob});
    CHECK(make_toolchain(name)->time(chip, chip.executors[1], job, 1, context()).ending ==
          Ending::LostBlob);
  }
  const CompileJob compile{.layer = &layer};
  CHECK(make_toolchain("ort-ep")
            ->compile(chip, chip.executors[0], {&compile, 1}, context())[0]
            .ending == Ending::LostBlob);
  CHECK(asked.empty());
}

TEST_CASE("each executor's own plug-in is looked for, none for one on the CPU") {
  const auto toolchain = make_toolchain("ort-ep");
  const std::string self = std::filesystem::canonical("/proc/self/exe").string();
  domain::ChipSpec chip = vendor_chip();
  const domain::Options plugin = {{"library", self}, {"provider", "P"}};
  chip.options.clear();
  chip.executors[0].options = plugin;
  const Probe probe = toolchain->probe(chip);
  CHECK_MESSAGE(probe.found, probe.missing);
  // Where an option is written makes no other tool.
  domain::ChipSpec shared = chip;
  shared.options = plugin;
  shared.executors[0].options.clear();
  CHECK(toolchain->probe(shared).identity == probe.identity);
  chip.executors[1].options.clear();
  CHECK(toolchain->probe(chip).missing ==
        "the options 'library' and 'provider' of the chip file or its executor host");
  chip.executors[1].options = {{"library", "/no/such.so"}, {"provider", "P"}};
  CHECK(toolchain->probe(chip).missing == "the plug-in such.so");
}

TEST_CASE("the probe names what is missing") {
  const auto toolchain = make_toolchain("ort-ep");
  domain::ChipSpec chip = vendor_chip();
  Probe probe = toolchain->probe(chip);
  CHECK(!probe.found);
  CHECK(probe.missing == "the plug-in libplug.so of the package no_such_package");
  CHECK(probe.how_to_get ==
        "correct 'package' in the chip file; layerfarm installs none of that name");
  chip.options.erase("provider");
  CHECK(toolchain->probe(chip).missing.find("'provider'") != std::string::npos);
  chip = vendor_chip();
  chip.options.erase("package");
  chip.options["library"] = (std::filesystem::canonical("/proc/self/exe")).string();
  probe = toolchain->probe(chip);
  CHECK_MESSAGE(probe.found, probe.missing);
  CHECK(probe.identity.version.find("onnxruntime " + onnxruntime_version()) != std::string::npos);
  chip.options["cpu_vendor"] = "Nobody";
  probe = toolchain->probe(chip);
  CHECK(!probe.found);
  CHECK(probe.missing == "a processor of the vendor Nobody (this one is " + cpu_vendor() + ")");
}
