#include "worker/toolchain/prepare_stage.h"

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "shared/domain/half.h"
#include "tests/support/worker/toolchain_bench.h"

using namespace layerfarm;
using namespace layerfarm::worker;
using namespace layerfarm::worker::toolchain;
using domain::DType;
using domain::Ending;
using domain::Outcome;
using nlohmann::json;

namespace {

template <typename T>
std::string raw(const std::vector<T>& values) {
  std::string out(values.size() * sizeof(T), '\0');
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

struct PrepareBench : test::ToolBench {
  domain::Layer layer;
  domain::InputSet inputs;
  std::vector<json> asked;
  std::vector<Ending> ort_endings;  ///< of the requests in turn; Done beyond
  DType output_type = DType::Float32;
  std::string output = raw<float>({1.5F, 2.0F});

  PrepareBench() {
    layer.module.blob = blobs.put("module").value();
    layer.inputs = {{.type = {DType::Float64, {3}}}, {.type = {DType::Int32, {3}}}};
    layer.input_names = {"a", "b"};
    layer.draw_order = {0, 1};
    layer.outputs = {{DType::Float32, {2}}};
    helpers.on_ort = [this](const std::string& request) { return run(json::parse(request)); };
    runner.add("layerfarm-onnx",
               [](const process::Command&) { return test::FakeRun{.exit_code = 1}; });
  }

  HelperAnswer run(const json& request) {
    asked.push_back(request);
    HelperAnswer out;
    out.ending = asked.size() <= ort_endings.size() ? ort_endings[asked.size() - 1] : Ending::Done;
    if (out.ending != Ending::Done) {
      out.diagnostic = {.where = "run",
                        .cause = "cause " + std::to_string(asked.size()),
                        .text = "text " + std::to_string(asked.size()),
                        .raw = {}};
      return out;
    }
    const std::string file = request.at("output_folder").get<std::string>() + "/output_0.bin";
    std::ofstream(file, std::ios::binary) << output;
    out.json = json{{"ok", true},
                    {"run_us", 1},
                    {"outputs",
                     {{{"file", file}, {"dtype", static_cast<int>(output_type)}, {"dims", {2}}}}}}
                   .dump();
    return out;
  }
};

}  // namespace

TEST_CASE_FIXTURE(PrepareBench, "inputs are drawn, the reference is run, all is stored") {
  const Outcome out = prepare_stage(layer, inputs, context());
  REQUIRE_MESSAGE(out.ending == Ending::Done, out.diagnostic.text);
  CHECK(out.stage == domain::Stage::Prepare);
  const domain::Prepared prepared = out.prepared.value();
  REQUIRE(prepared.inputs.size() == 2);
  CHECK(blobs.get(prepared.inputs[0]).value() ==
        raw<double>({38.13598133585137, -9.584341198430579, 33.85969870111643}));
  CHECK(blobs.get(prepared.inputs[1]).value() == raw<std::int32_t>({-32, -20, -29}));
  REQUIRE(prepared.expected.size() == 1);
  CHECK(blobs.get(prepared.expected[0]).value() == output);
  CHECK(prepared.expected_types == layer.outputs);
  CHECK(prepared.reference.rfind("onnxruntime ", 0) == 0);
  CHECK(out.tool == prepared.reference);
  CHECK(asked.at(0).at("threads") == 1);
  CHECK(asked.at(0).at("inputs")[1].at("dtype") == 6);
  CHECK(std::filesystem::is_empty(step.scratch));
}

TEST_CASE_FIXTURE(PrepareBench, "a type that the engine lacks is computed in float32 and rounded") {
  layer.wide_module =
      domain::LayerModule{.format = "onnx", .blob = blobs.put("wide").value(), .data = {}};
  layer.inputs = {{.type = {DType::BFloat16, {2}}}};
  layer.draw_order = {0};
  layer.outputs = {{DType::BFloat16, {2}}};
  layer.op_type = "MatMul";
  ort_endings = {Ending::Refused};
  const Outcome out = prepare_stage(layer, inputs, context());
  REQUIRE_MESSAGE(out.ending == Ending::Done, out.diagnostic.text);
  CHECK(out.prepared->reference.find("(float32, rounded)") != std::string::npos);
  CHECK(out.prepared->expected_types == layer.outputs);
  CHECK(blobs.get(out.prepared->expected[0]).value() ==
        raw<std::uint16_t>({domain::float_to_bfloat16(1.5F), domain::float_to_bfloat16(2.0F)}));
  REQUIRE(asked.size() == 2);
  CHECK(base::read_file(asked[0].at("model").get<std::string>()).error().code ==
        base::ErrorCode::NotFound);  // scratch is gone by now
  CHECK(asked[1].at("inputs")[0].at("dtype") == 1);
  CHECK(blobs.get(out.prepared->inputs[0]).value().size() == 4);  // stored inputs keep their type
}

TEST_CASE_FIXTURE(
    PrepareBench,
    "most operators in a type that the engine lacks are asked of IREE before they are computed "
    "wide") {
  layer.wide_module =
      domain::LayerModule{.format = "onnx", .blob = blobs.put("wide").value(), .data = {}};
  layer.inputs = {{.type = {DType::BFloat16, {2}}}};
  layer.draw_order = {0};
  layer.outputs = {{DType::BFloat16, {2}}};
  layer.op_type = "Sigmoid";
  ort_endings = {Ending::Refused};
  int imports = 0;
  helpers.on_sidecar = [&imports](const std::string&) {
    ++imports;
    return test::answered(
        R"({"ok":true,"layers":[{"ok":false,"where":"import","text":"no such operator","opset":17}]})");
  };
  const Outcome out = prepare_stage(layer, inputs, context());
  REQUIRE_MESSAGE(out.ending == Ending::Done, out.diagnostic.text);
  CHECK(imports == 1);
  CHECK(out.prepared->reference.find("(float32, rounded)") != std::string::npos);
}

TEST_CASE_FIXTURE(PrepareBench, "when every engine refuses, the first one's words are the reason") {
  ort_endings = {Ending::Refused, Ending::Refused};
  helpers.on_sidecar = [](const std::string&) {
    return test::answered(
        R"({"ok":true,"layers":[{"ok":false,"where":"import","text":"no such operator","opset":17}]})");
  };
  const Outcome out = prepare_stage(layer, inputs, context());
  CHECK(out.ending == Ending::Refused);
  CHECK(out.diagnostic.where == "reference");
  CHECK(out.diagnostic.text == "text 1");
  CHECK(!out.prepared);
}

TEST_CASE_FIXTURE(
    PrepareBench,
    "an engine that dies is asked once more, before another one makes the reference") {
  ort_endings = {Ending::Crashed};
  Outcome out = prepare_stage(layer, inputs, context());
  REQUIRE_MESSAGE(out.ending == Ending::Done, out.diagnostic.text);
  CHECK(asked.size() == 2);
  CHECK(out.prepared->reference.rfind("onnxruntime ", 0) == 0);

  asked.clear();
  ort_endings = {Ending::Crashed, Ending::Crashed};
  helpers.on_sidecar = [](const std::string&) {
    return test::answered(
        R"({"ok":true,"layers":[{"ok":false,"where":"import","text":"no such operator","opset":17}]})");
  };
  out = prepare_stage(layer, inputs, context());
  CHECK(out.ending == Ending::Crashed);
  CHECK(asked.size() == 2);
}

TEST_CASE_FIXTURE(
    PrepareBench,
    "a limit that was met ends the job as it is, so that it is tried again as a whole") {
  for (const Ending ending :
       {Ending::TimedOut, Ending::OverMemory, Ending::Cancelled, Ending::Infrastructure}) {
    asked.clear();
    ort_endings = {ending};
    CHECK(prepare_stage(layer, inputs, context()).ending == ending);
    CHECK(asked.size() == 1);
  }
}

TEST_CASE_FIXTURE(PrepareBench,
                  "arrays of the user take the place of drawn ones where the folder has them") {
  inputs.path = "/some/folder";
  inputs.folder.bytes[0] = 1;
  json request;
  helpers.on_sidecar = [&request](const std::string& text) {
    request = json::parse(text);
    std::ofstream(request.at("inputs")[1].at("out").get<std::string>(), std::ios::binary)
        << raw<std::int32_t>({7, 8, 9});
    return test::answered(R"({"ok":true,"files":[null,"b.npy"]})");
  };
  const Outcome out = prepare_stage(layer, inputs, context());
  REQUIRE_MESSAGE(out.ending == Ending::Done, out.diagnostic.text);
  CHECK(request.at("folder") == "/some/folder");
  CHECK(request.at("inputs")[0].at("name") == "a");
  CHECK(request.at("inputs")[0].at("optional") == true);
  CHECK(blobs.get(out.prepared->inputs[0]).value() ==
        raw<double>({38.13598133585137, -9.584341198430579, 33.85969870111643}));
  CHECK(blobs.get(out.prepared->inputs[1]).value() == raw<std::int32_t>({7, 8, 9}));
}

TEST_CASE_FIXTURE(PrepareBench,
                  "an array that does not fit is refused, a folder that cannot be read says so") {
  inputs.path = "/some/folder";
  inputs.folder.bytes[0] = 1;
  helpers.on_sidecar = [](const std::string& text) {
    std::ofstream(json::parse(text).at("inputs")[0].at("out").get<std::string>()) << "short";
    return test::answered(R"({"ok":true,"files":["a.npy",null]})");
  };
  Outcome out = prepare_stage(layer, inputs, context());
  CHECK(out.ending == Ending::Refused);
  CHECK(out.diagnostic.where == "inputs");
  CHECK(out.diagnostic.text.find("'a'") != std::string::npos);
  helpers.on_sidecar = [](const std::string&) {
    HelperAnswer refused;
    refused.ending = Ending::Refused;
    refused.diagnostic = {
        .where = "inputs", .cause = "refused", .text = "no such folder", .raw = {}};
    return refused;
  };
  out = prepare_stage(layer, inputs, context());
  CHECK(out.ending == Ending::Refused);
  CHECK(out.diagnostic.text == "no such folder");
}

TEST_CASE_FIXTURE(
    PrepareBench,
    "inputs that cannot be drawn or are larger than the memory limit never reach an engine") {
  layer.inputs[0].type.dtype = DType::String;
  CHECK(prepare_stage(layer, inputs, context()).ending == Ending::Refused);
  layer.inputs[0].type = {DType::Float32, {std::int64_t{1} << 40}};
  const Outcome out = prepare_stage(layer, inputs, context());
  CHECK(out.ending == Ending::OverMemory);
  CHECK(out.diagnostic.where == "inputs");
  CHECK(asked.empty());
}

TEST_CASE_FIXTURE(PrepareBench, "a module that was pruned is lost") {
  CHECK(blobs.remove(layer.module.blob));
  const Outcome out = prepare_stage(layer, inputs, context());
  CHECK(out.ending == Ending::LostBlob);
  CHECK(out.lost == std::vector<base::Digest>{layer.module.blob});
}
