#include "worker/toolchain/layer_quantizer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shared/protocol/codec.h"
#include "tests/support/worker/toolchain_bench.h"

using namespace layerfarm;
using domain::Ending;
using nlohmann::json;
using worker::toolchain::HelperAnswer;
using worker::toolchain::kLayersPerRequest;
using worker::toolchain::quantize_layers;
using worker::toolchain::QuantizeAnswer;

namespace {

std::string value_after(const std::vector<std::string>& argv, const std::string& flag) {
  const auto found = std::find(argv.begin(), argv.end(), flag);
  return found == argv.end() || found + 1 == argv.end() ? std::string() : *(found + 1);
}

HelperAnswer ended(Ending ending, std::string cause, std::string json = {}) {
  HelperAnswer out;
  out.ending = ending;
  out.json = std::move(json);
  out.diagnostic.cause = std::move(cause);
  return out;
}

json quantized(const json& model) {
  json names = json::array();
  for (const json& input : model.at("inputs")) names.push_back(input.at("name"));
  return {{"ok", true}, {"quantized", true}, {"already", false}, {"format", ""},
          {"note", ""}, {"inputs", names},   {"outputs", {"o0"}}};
}

/// A quantizer that is a function of one model, and a reader that marks what it is to replace.
struct Bench : test::ToolBench {
  domain::ModelAnalysis analysis;
  domain::AnalyzeRequest request{.model_path = "/models/net.onnx"};
  std::function<json(const json&)> quantizer = quantized;
  std::vector<json> asked;
  json replaced;

  Bench() {
    request.quantize = domain::Quantization{};
    helpers.on_sidecar = [this](const std::string& text) {
      asked.push_back(json::parse(text));
      json answers = json::array();
      for (const json& model : asked.back().at("models")) answers.push_back(quantizer(model));
      return test::answered(json({{"ok", true}, {"models", answers}}).dump());
    };
    runner.add("layerfarm-onnx", [this](const worker::process::Command& command) {
      CHECK(command.argv.at(1) == "replace");
      replaced = json::parse(base::read_file(value_after(command.argv, "--modules")).value());
      auto read = protocol::decode_analysis(
          base::read_file(value_after(command.argv, "--analysis")).value());
      REQUIRE(read);
      for (const json& module : replaced) {
        for (const auto& place : module.at("layers"))
          read->layers.at(place.get<std::size_t>()).quantized = true;
      }
      CHECK(base::write_file_atomically(value_after(command.argv, "--result"),
                                        protocol::encode_analysis(*read), base::Sync::No));
      return test::FakeRun{};
    });
  }

  domain::Layer& add(const std::string& id, const std::string& module) {
    domain::Layer layer;
    layer.id = id;
    layer.op_type = "Conv";
    layer.module.blob = *blobs.put(module);
    layer.inputs = {{.type = {domain::DType::Float32, {1, 3}}}};
    layer.input_names = {"in_" + id};
    layer.output_names = {"out_" + id};
    analysis.layers.push_back(layer);
    return analysis.layers.back();
  }
  QuantizeAnswer run() {
    context();
    return quantize_layers(request, request.model_path, step.scratch, analysis, step);
  }
};

}  // namespace

TEST_CASE("the model and each kind of layer are quantized, and the reader takes what came of it") {
  Bench bench;
  bench.add("Conv_a", "one");
  bench.add("Conv_b", "two");
  bench.add("Conv_c", "one");
  bench.request.dims = {{"n", 4}};
  bench.request.quantize->format = domain::QuantFormat::Hybrid;
  bench.request.quantize->per_channel = true;
  bench.request.quantize->full_integer = true;
  bench.request.quantize->samples = 7;
  const QuantizeAnswer done = bench.run();
  REQUIRE(done.ending == Ending::Done);
  CHECK(done.whole.filename() == "whole.onnx");
  REQUIRE(bench.asked.size() == 2);
  for (const json& question : bench.asked) {
    CHECK(question.at("op") == "quantize");
    CHECK(question.at("format") == "hybrid");
    CHECK(question.at("per_channel") == true);
    CHECK(question.at("full_integer") == true);
    CHECK(question.at("samples") == 7);
    CHECK(question.at("dims") == json({{"n", 4}}));
    CHECK_FALSE(question.contains("calibration"));
  }
  CHECK(bench.asked[0].at("models")[0].at("model") == "/models/net.onnx");
  REQUIRE(bench.asked[1].at("models").size() == 2);
  const std::string module = bench.asked[1]["models"][0].at("model");
  CHECK(base::read_file(module).value() == "one");
  REQUIRE(bench.replaced.size() == 2);
  CHECK(bench.replaced[0].at("layers") == json({0, 2}));
  CHECK(bench.replaced[0].at("inputs") == json({"i0"}));
  CHECK(bench.replaced[0].at("outputs") == json({"o0"}));
  CHECK(bench.replaced[1].at("layers") == json({1}));
  for (const domain::Layer& layer : bench.analysis.layers) CHECK(layer.quantized == true);
  CHECK(bench.analysis.notes.empty());
}

TEST_CASE("layers of one module that are fed differently are quantized each for itself") {
  Bench bench;
  bench.add("Gather_a", "one").inputs[0].hi = 5;
  bench.add("Gather_b", "one").inputs[0].hi = 9;
  bench.add("Gather_c", "one").inputs[0].values = {1, 2, 3};
  REQUIRE(bench.run().ending == Ending::Done);
  const json& models = bench.asked.at(1).at("models");
  REQUIRE(models.size() == 3);
  CHECK(models[0].at("inputs")[0].at("hi") == 5);
  CHECK(models[1].at("inputs")[0].at("hi") == 9);
  CHECK(models[2].at("inputs")[0].at("values") == json({1, 2, 3}));
}

TEST_CASE("with samples of the user every layer gets the values of its own place") {
  Bench bench;
  bench.add("Conv_a", "one");
  bench.add("Conv_b", "one");
  bench.request.quantize->calibration_path = "/samples";
  REQUIRE(bench.run().ending == Ending::Done);
  const json& question = bench.asked.at(1);
  CHECK(question.at("calibration") ==
        json({{"folder", "/samples"}, {"model", "/models/net.onnx"}}));
  REQUIRE(question.at("models").size() == 2);
  CHECK(question.at("models")[1].at("inputs")[0].at("from") == "in_Conv_b");

  bench.helpers.on_sidecar = [](const std::string&) {
    return ended(Ending::Refused, "refused",
                 R"({"ok":false,"where":"calibration","text":"sample 0 has no array"})");
  };
  const QuantizeAnswer refused = bench.run();
  CHECK(refused.ending == Ending::Refused);
  CHECK(refused.diagnostic.text == "--calibration: sample 0 has no array");
}

TEST_CASE("a model that is quantized already is left alone") {
  Bench bench;
  bench.add("Conv_a", "one");
  bench.quantizer = [](const json&) {
    return json({{"ok", true}, {"quantized", false}, {"already", true}, {"note", "it is"}});
  };
  const QuantizeAnswer done = bench.run();
  CHECK(done.ending == Ending::Done);
  CHECK(done.whole.empty());
  CHECK(bench.asked.size() == 1);
  CHECK_FALSE(bench.analysis.layers[0].quantized);
  CHECK(bench.analysis.notes ==
        std::vector<std::string>{"[Quantize] the model is quantized already; it is used as it is"});
}

TEST_CASE("what stays in float says why, layer by layer and for the whole") {
  Bench bench;
  bench.add("Conv_a", "good");
  bench.add("Relu_b", "float");
  bench.add("If_c", "bad");
  bench.add("Loop_d", "problem").problem = "the shape of input 'x' is unknown";
  bench.add("Random_e", "no inputs").inputs.clear();
  bench.quantizer = [](const json& model) -> json {
    const auto text = base::read_file(model.at("model").get<std::string>());
    if (!text) return {{"ok", false}, {"text", "no such operator\nat line 3"}};
    if (*text == "bad") return {{"ok", false}, {"text", "unsupported body"}};
    if (*text == "float")
      return {{"ok", true}, {"quantized", false}, {"already", false}, {"note", "left in float"}};
    return quantized(model);
  };
  const QuantizeAnswer done = bench.run();
  REQUIRE(done.ending == Ending::Done);
  CHECK(done.whole.empty());
  REQUIRE(bench.analysis.notes.size() == 1);
  CHECK(bench.analysis.notes[0] ==
        "[Quantize] the model as a whole stays in float, and so do places: no such operator");
  const auto& layers = bench.analysis.layers;
  CHECK(layers[0].quantized == true);
  const std::vector<std::string> notes = {
      "left in float", "the quantizer refuses it: unsupported body", "it cannot be tested",
      "it has no inputs to calibrate with"};
  for (std::size_t i = 1; i < layers.size(); ++i) {
    CHECK(layers[i].quantized == false);
    CHECK(layers[i].quantize_note == notes[i - 1]);
  }
}

TEST_CASE("a layer that ends the quantizer costs itself alone") {
  Bench bench;
  for (std::size_t i = 0; i < kLayersPerRequest + 3; ++i)
    bench.add("Conv_" + std::to_string(i), i == 5 ? "poison" : "module " + std::to_string(i));
  const auto good = bench.helpers.on_sidecar;
  bench.helpers.on_sidecar = [&](const std::string& text) {
    const json question = json::parse(text);
    for (const json& model : question.at("models")) {
      const auto bytes = base::read_file(model.at("model").get<std::string>());
      if (bytes && *bytes == "poison") return ended(Ending::Crashed, "crashed: SIGSEGV");
    }
    return good(text);
  };
  REQUIRE(bench.run().ending == Ending::Done);
  for (std::size_t i = 0; i < bench.analysis.layers.size(); ++i)
    CHECK(bench.analysis.layers[i].quantized == (i != 5));
  CHECK(bench.analysis.layers[5].quantize_note == "the quantizer crashed: SIGSEGV");
  // Whole, the rest of the first request one by one, the second request.
  CHECK(bench.asked.size() == 1 + (kLayersPerRequest - 1) + 1);
}

TEST_CASE(
    "one death of the quantizer over a single layer or the whole model is no lasting answer") {
  Bench bench;
  bench.add("Conv_a", "one");
  const auto good = bench.helpers.on_sidecar;
  int asked = 0;
  bench.helpers.on_sidecar = [&](const std::string& text) {
    return ++asked % 2 == 1 ? ended(Ending::Crashed, "crashed: SIGKILL") : good(text);
  };
  const QuantizeAnswer done = bench.run();
  REQUIRE(done.ending == Ending::Done);
  CHECK_FALSE(done.whole.empty());
  CHECK(bench.analysis.layers[0].quantized == true);
  CHECK(asked == 4);
}

TEST_CASE("a cancel, a missing quantizer and a reader that fails end the work as such") {
  Bench bench;
  bench.add("Conv_a", "one");
  const auto good = bench.helpers.on_sidecar;
  bench.helpers.on_sidecar = [](const std::string&) { return ended(Ending::Cancelled, ""); };
  CHECK(bench.run().ending == Ending::Cancelled);
  bench.helpers.on_sidecar = [](const std::string&) {
    return ended(Ending::Infrastructure, "the sidecar is missing");
  };
  const QuantizeAnswer missing = bench.run();
  CHECK(missing.ending == Ending::Infrastructure);
  CHECK(missing.diagnostic.cause == "the sidecar is missing");
  bench.helpers.on_sidecar = good;
  bench.runner.add("layerfarm-onnx", [](const worker::process::Command&) {
    return test::FakeRun{.exit_code = 1, .errors = "modules.json: no list\n"};
  });
  const QuantizeAnswer refused = bench.run();
  CHECK(refused.ending == Ending::Refused);
  CHECK(refused.diagnostic.text.find("no list") != std::string::npos);
}
