#include "worker/toolchain/layer_quantizer.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "shared/base/files.h"
#include "shared/protocol/codec.h"
#include "worker/cache/materialise.h"
#include "worker/toolchain/diagnostic.h"
#include "worker/toolchain/reader_call.h"
#include "worker/toolchain/second_try.h"
#include "worker/toolchain/tool_step.h"

namespace layerfarm::worker::toolchain {
namespace {

namespace fs = std::filesystem;
using domain::Ending;
using domain::Layer;
using nlohmann::json;

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Layers that have one float module and may be fed the same, so that one quantized module serves
/// them all.
struct Kind {
  std::vector<std::uint32_t> layers;
  fs::path quantized;                ///< where the quantized module goes
  std::vector<std::string> inputs;   ///< its names, once it is there
  std::vector<std::string> outputs;  ///< same
  bool done = false;
};

class LayerQuantizer {
 public:
  LayerQuantizer(const domain::AnalyzeRequest& request, fs::path model, fs::path folder,
                 domain::ModelAnalysis& analysis, StepContext& context)
      : request_(request),
        quantize_(*request.quantize),
        model_(std::move(model)),
        folder_(std::move(folder)),
        analysis_(analysis),
        context_(context) {}

  /// Done without a file where the model is used as it is.
  QuantizeAnswer whole() {
    QuantizeAnswer out;
    out.whole = folder_ / "whole.onnx";
    const json whole = quantize_whole(out.whole);
    if (stopped_) return std::move(*stopped_);
    already_ = whole.value("already", false);
    if (already_) {
      analysis_.notes.emplace_back(
          "[Quantize] the model is quantized already; it is used as it is");
      out.whole.clear();
      out.ending = Ending::Done;
      return out;
    }
    if (!whole.value("quantized", false)) {
      out.whole.clear();
      const std::string why =
          whole.value("text", whole.value("note", std::string("no reason was given")));
      analysis_.notes.push_back(
          "[Quantize] the model as a whole stays in float, and so do places: " +
          normalised(why.substr(0, why.find('\n'))));
    } else {
      out.operators = operator_names(whole);
    }
    out.ending = Ending::Done;
    return out;
  }

  QuantizeAnswer layers() {
    std::vector<Kind> kinds = find_kinds();
    for (std::size_t first = 0; first < kinds.size() && !stopped_; first += kLayersPerRequest) {
      const std::size_t count = std::min(kLayersPerRequest, kinds.size() - first);
      quantize_kinds(std::span(kinds).subspan(first, count));
    }
    if (!stopped_) take_modules(kinds);
    if (stopped_) return std::move(*stopped_);
    return {.ending = Ending::Done, .diagnostic = {}, .whole = {}, .operators = {}};
  }

  /// The model was quantized before, and so its layers are left as they are.
  [[nodiscard]] bool already() const { return already_; }

 private:
  void stop(Ending ending, domain::Diagnostic diagnostic) {
    stopped_ = QuantizeAnswer{
        .ending = ending, .diagnostic = std::move(diagnostic), .whole = {}, .operators = {}};
  }

  /// None where the answer is not as it should be: order alone says then what is what.
  static std::vector<OperatorName> operator_names(const json& answer) {
    std::vector<OperatorName> out;
    for (const json& names : answer.value("operators", json::array())) {
      if (!names.is_array() || names.size() != 2 || !names[0].is_string() || !names[1].is_string())
        return {};
      out.push_back({names[0].get<std::string>(), names[1].get<std::string>()});
    }
    return out;
  }

  static json range_of(const domain::InputSpec& spec) {
    json out = {{"lo", spec.lo}, {"hi", spec.hi}};
    if (!spec.values.empty()) out["values"] = spec.values;
    return out;
  }

  [[nodiscard]] json question() const {
    json out = {{"op", "quantize"},
                {"format", domain::quant_format_name(quantize_.format)},
                {"per_channel", quantize_.per_channel},
                {"full_integer", quantize_.full_integer},
                {"samples", quantize_.samples},
                {"dims", json::object()},
                {"models", json::array()}};
    for (const auto& [dim, value] : request_.dims) out["dims"][dim] = value;
    if (!quantize_.calibration_path.empty())
      out["calibration"] = {{"folder", quantize_.calibration_path}, {"model", model_.string()}};
    return out;
  }

  HelperAnswer ask(const json& question, std::size_t units) const {
    process::Bounds bounds = compile_bounds(context_.limits, units);
    bounds.file_bytes = std::max(bounds.file_bytes, kLargestModelFile);
    return context_.helpers.sidecar(dump(question), bounds);
  }

  /// The sidecar's answers in the order of the models; null when it gave none. What concerns all
  /// models alike stops the work.
  json answers_of(const HelperAnswer& answer, std::size_t count) {
    if (answer.ending == Ending::Cancelled || answer.ending == Ending::Infrastructure) {
      stop(answer.ending, answer.diagnostic);
      return nullptr;
    }
    const json said = json::parse(answer.json, nullptr, /*allow_exceptions=*/false);
    if (answer.ending == Ending::Refused && said.is_object() &&
        said.value("where", "") == "calibration") {
      stop(Ending::Refused, diagnostic("quantize", "refused",
                                       "--calibration: " + normalised(said.value("text", ""))));
      return nullptr;
    }
    if (answer.ending != Ending::Done || !said.is_object() || !said.contains("models") ||
        !said["models"].is_array() || said["models"].size() != count)
      return nullptr;
    return said["models"];
  }

  json quantize_whole(const fs::path& out) {
    json whole = question();
    json model = {{"model", model_.string()}, {"out", out.string()}, {"inputs", json::array()}};
    // What a layer may be fed at an input of the model, the model may be fed too.
    std::map<std::string, const domain::InputSpec*> known;
    for (const Layer& layer : analysis_.layers) {
      for (std::size_t i = 0; i < layer.inputs.size(); ++i)
        known.emplace(layer.input_names[i], &layer.inputs[i]);
    }
    for (const auto& [name, spec] : known) {
      json entry = range_of(*spec);
      entry["name"] = name;
      model["inputs"].push_back(std::move(entry));
    }
    whole["models"].push_back(std::move(model));
    // The calibration runs the whole model once for each sample.
    const HelperAnswer answer = second_try([&] { return ask(whole, kLayersPerRequest); });
    const json answers = answers_of(answer, 1);
    if (answers.is_array() && answers[0].is_object()) return answers[0];
    return {{"ok", false}, {"text", "the quantizer " + answer.diagnostic.cause}};
  }

  /// What keeps two layers from sharing a quantized module.
  [[nodiscard]] std::string identity(std::uint32_t place) const {
    const Layer& layer = analysis_.layers[place];
    json out = {layer.module.blob.hex()};
    for (const domain::InputSpec& spec : layer.inputs) out.push_back(range_of(spec));
    // A person's samples give each layer values of its own.
    if (!quantize_.calibration_path.empty()) out.push_back(layer.input_names);
    return dump(out);
  }

  std::vector<Kind> find_kinds() {
    std::vector<Kind> out;
    std::map<std::string, std::size_t> known;
    for (std::uint32_t place = 0; place < analysis_.layers.size(); ++place) {
      Layer& layer = analysis_.layers[place];
      layer.quantized = false;
      if (!layer.problem.empty()) {
        layer.quantize_note = "it cannot be tested";
        continue;
      }
      if (layer.inputs.empty()) {
        layer.quantize_note = "it has no inputs to calibrate with";
        continue;
      }
      const auto [found, is_new] = known.emplace(identity(place), out.size());
      if (is_new) out.emplace_back();
      out[found->second].layers.push_back(place);
    }
    return out;
  }

  void leave_in_float(const Kind& kind, const std::string& note) {
    for (const std::uint32_t place : kind.layers) analysis_.layers[place].quantize_note = note;
  }

  /// Puts the float module where the sidecar can read it; an empty answer: the work has stopped.
  json place_kind(Kind& kind, std::size_t number) {
    const Layer& layer = analysis_.layers[kind.layers.front()];
    const fs::path folder = folder_ / ("layer" + std::to_string(number));
    std::error_code error;
    fs::create_directories(folder, error);
    const cache::Placed placed = cache::place_module(context_.blobs, layer.module, folder, "float");
    if (!placed.ok()) {
      stop(Ending::Infrastructure,
           diagnostic("quantize", "infrastructure",
                      placed.problem.empty() ? "a layer's module is gone" : placed.problem));
      return nullptr;
    }
    kind.quantized = folder / "int8.onnx";
    json out = {{"model", placed.module.string()},
                {"out", kind.quantized.string()},
                {"inputs", json::array()}};
    for (std::size_t i = 0; i < layer.inputs.size(); ++i) {
      json entry = range_of(layer.inputs[i]);
      entry["name"] = "i" + std::to_string(i);  // canonical modules name them so
      if (!quantize_.calibration_path.empty()) entry["from"] = layer.input_names[i];
      out["inputs"].push_back(std::move(entry));
    }
    return out;
  }

  void quantize_kinds(std::span<Kind> kinds) {
    json request = question();
    for (Kind& kind : kinds) {
      json model = place_kind(kind, kind.layers.front());
      if (stopped_) return;
      request["models"].push_back(std::move(model));
    }
    // Several are asked for one by one when the quantizer dies, which is their second try.
    const HelperAnswer answer =
        kinds.size() > 1 ? ask(request, kinds.size()) : second_try([&] { return ask(request, 1); });
    const json answers = answers_of(answer, kinds.size());
    if (stopped_) return;
    if (!answers.is_array() && kinds.size() > 1) {  // one of them ended the quantizer
      for (Kind& kind : kinds) {
        if (!stopped_) quantize_kinds(std::span(&kind, 1));
      }
      return;
    }
    if (!answers.is_array())
      return leave_in_float(kinds.front(), "the quantizer " + answer.diagnostic.cause);
    for (std::size_t i = 0; i < kinds.size(); ++i) take_answer(answers[i], kinds[i]);
  }

  void take_answer(const json& answer, Kind& kind) {
    try {
      if (!answer.at("ok").get<bool>()) {
        const std::string why = answer.at("text").get<std::string>();
        return leave_in_float(
            kind, "the quantizer refuses it: " + normalised(why.substr(0, why.find('\n'))));
      }
      if (!answer.at("quantized").get<bool>())
        return leave_in_float(kind, answer.at("note").get<std::string>());
      kind.inputs = answer.at("inputs").get<std::vector<std::string>>();
      kind.outputs = answer.at("outputs").get<std::vector<std::string>>();
      kind.done = true;
    } catch (const json::exception& error) {
      leave_in_float(kind, std::string("the quantizer's answer cannot be read: ") + error.what());
    }
  }

  /// layerfarm-onnx makes canonical modules of what the sidecar wrote.
  void take_modules(const std::vector<Kind>& kinds) {
    json modules = json::array();
    for (const Kind& kind : kinds) {
      if (!kind.done) continue;
      modules.push_back({{"file", kind.quantized.string()},
                         {"layers", kind.layers},
                         {"inputs", kind.inputs},
                         {"outputs", kind.outputs}});
    }
    if (modules.empty()) return;
    const fs::path before = folder_ / "float.analysis";
    const fs::path list = folder_ / "modules.json";
    const fs::path after = folder_ / "int8.analysis";
    for (const auto& [path, bytes] : {std::pair(before, protocol::encode_analysis(analysis_)),
                                      std::pair(list, base::Bytes(dump(modules)))}) {
      if (auto written = base::write_file_atomically(path, bytes, base::Sync::No); !written)
        return stop(Ending::Infrastructure, infrastructure("quantize", written.error()));
    }
    const ToolEnd end = run_tool(
        reader_call("quantize",
                    {"replace", "--analysis", before.string(), "--modules", list.string(),
                     "--blobs", context_.blobs.root().string(), "--result", after.string()},
                    folder_, context_),
        context_);
    if (end.ending != Ending::Done) return stop(end.ending, end.diagnostic);
    const auto bytes = base::read_file(after);
    if (!bytes) return stop(Ending::Infrastructure, infrastructure("quantize", bytes.error()));
    auto analysis = protocol::decode_analysis(*bytes);
    if (!analysis)
      return stop(Ending::Infrastructure, infrastructure("quantize", analysis.error()));
    analysis_ = std::move(*analysis);
  }

  const domain::AnalyzeRequest& request_;
  const domain::Quantization& quantize_;
  const fs::path model_;
  const fs::path folder_;
  domain::ModelAnalysis& analysis_;
  StepContext& context_;
  std::optional<QuantizeAnswer> stopped_;
  bool already_ = false;
};

}  // namespace

QuantizeAnswer quantize_layers(const domain::AnalyzeRequest& request, const fs::path& model,
                               const fs::path& folder, domain::ModelAnalysis& analysis,
                               StepContext& context) {
  LayerQuantizer quantizer(request, model, folder, analysis, context);
  QuantizeAnswer whole = quantizer.whole();
  if (whole.ending != Ending::Done || quantizer.already()) return whole;
  QuantizeAnswer out = quantizer.layers();
  if (out.ending == Ending::Done) {
    out.whole = std::move(whole.whole);
    out.operators = std::move(whole.operators);
  }
  return out;
}

QuantizeAnswer quantize_whole(const domain::AnalyzeRequest& request, const fs::path& model,
                              const fs::path& folder, domain::ModelAnalysis& analysis,
                              StepContext& context) {
  return LayerQuantizer(request, model, folder, analysis, context).whole();
}

}  // namespace layerfarm::worker::toolchain
