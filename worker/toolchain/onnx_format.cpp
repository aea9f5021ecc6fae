// ONNX models: layerfarm-onnx reads them in a bounded child, layerfarm-ort runs them where shapes
// stay unknown, the sidecar's importer places their operators.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "shared/base/files.h"
#include "shared/protocol/codec.h"
#include "worker/toolchain/diagnostic.h"
#include "worker/toolchain/layer_quantizer.h"
#include "worker/toolchain/model_format.h"
#include "worker/toolchain/operator_map.h"
#include "worker/toolchain/reader_call.h"
#include "worker/toolchain/second_try.h"
#include "worker/toolchain/tool_step.h"

namespace layerfarm::worker::toolchain {
namespace {

namespace fs = std::filesystem;
using domain::Ending;
using nlohmann::json;

/// The files by which one analysis and its helpers talk.
struct Files {
  fs::path request;
  fs::path result;
  fs::path shapes_request;
  fs::path shapes_answer;
  fs::path changed_model;
};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

class OnnxFormat final : public ModelFormat {
 public:
  [[nodiscard]] std::string_view name() const override { return "onnx"; }
  /// The format of last resort: a file of another kind gets a reason from the reader.
  [[nodiscard]] bool reads(const std::string&) const override { return true; }

  FormatAnswer layers(const domain::AnalyzeRequest& request, StepContext& context) override {
    auto scratch = base::ScratchFolder::make(context.scratch, "analyze");
    if (!scratch) return broken(scratch.error());
    const auto kept = std::make_shared<const base::ScratchFolder>(std::move(*scratch));
    if (request.quantize && !request.assignment.empty())
      return quantized_segments(request, kept, context);
    FormatAnswer out = take_apart(request, kept, kept->path(), context);
    if (out.ending == Ending::Done && request.quantize)
      quantize(request, kept->path(), out, context);
    return out;
  }

  FormatLocations locations(const domain::AnalyzeRequest& request, const FormatAnswer& taken,
                            StepContext& context) override {
    return locate(taken_apart(request, taken), request, context);
  }

 private:
  /// The file that the layers are of.
  static std::string taken_apart(const domain::AnalyzeRequest& request,
                                 const FormatAnswer& answer) {
    return answer.changed_model.empty() ? request.model_path : answer.changed_model.string();
  }

  /// What the reader makes of a model; `folder` is in `kept` and holds its files.
  static FormatAnswer take_apart(const domain::AnalyzeRequest& request,
                                 const std::shared_ptr<const base::ScratchFolder>& kept,
                                 const fs::path& folder, StepContext& context) {
    const Files files{folder / "request", folder / "result", folder / "shapes" / "request.json",
                      folder / "shapes" / "answer.json", folder / "changed.onnx"};
    std::error_code error;
    fs::create_directories(folder / "shapes", error);
    if (auto written = base::write_file_atomically(
            files.request, protocol::encode_analyze_request(request), base::Sync::No);
        !written) {
      return broken(written.error());
    }
    ToolEnd end = read(request, files, folder, /*ask_for_shapes=*/true, context);
    if (end.ending == Ending::Done && fs::exists(files.shapes_request)) {
      FormatAnswer asked = ask_for_shapes(files, context);
      if (asked.ending != Ending::Done) return asked;
      end = read(request, files, folder, /*ask_for_shapes=*/false, context);
    }
    if (end.ending != Ending::Done)
      return {.ending = end.ending, .diagnostic = std::move(end.diagnostic)};
    const auto bytes = base::read_file(files.result);
    if (!bytes) return broken(bytes.error());
    auto analysis = protocol::decode_analysis(*bytes);
    if (!analysis) return broken(analysis.error());
    FormatAnswer out{.ending = Ending::Done, .analysis = std::move(*analysis)};
    if (fs::exists(files.changed_model)) {
      out.changed_model = files.changed_model;
      out.folder = kept;
    }
    return out;
  }

  /// The segments of the model that the quantizer makes: the float model says what it may be
  /// calibrated with, and what the model is.
  static FormatAnswer quantized_segments(const domain::AnalyzeRequest& request,
                                         const std::shared_ptr<const base::ScratchFolder>& kept,
                                         StepContext& context) {
    domain::AnalyzeRequest plain = request;
    plain.assignment.clear();
    FormatAnswer model = take_apart(plain, kept, kept->path() / "float", context);
    if (model.ending != Ending::Done || !model.analysis.skipped.empty()) return model;
    QuantizeAnswer done =
        quantize_whole(request, taken_apart(request, model), kept->path(), model.analysis, context);
    if (done.ending != Ending::Done)
      return {.ending = done.ending, .diagnostic = std::move(done.diagnostic)};
    domain::AnalyzeRequest split = request;
    if (done.whole.empty()) {
      split.quantize.reset();  // it is used as it is
    } else {
      split.model_path = done.whole.string();
      split.convert = {};
      split.subgraph.reset();
    }
    FormatAnswer out = take_apart(split, kept, kept->path() / "segments", context);
    if (out.ending != Ending::Done || done.whole.empty()) return out;
    out.changed_model = done.whole;
    out.folder = kept;
    out.analysis.model_digest = model.analysis.model_digest;
    out.analysis.files = std::move(model.analysis.files);
    out.analysis.dim_names = std::move(model.analysis.dim_names);
    out.analysis.subgraph = model.analysis.subgraph;
    return out;
  }

  /// Quantized layers in the place of the float ones, and their places in the quantized model.
  static void quantize(const domain::AnalyzeRequest& request, const fs::path& folder,
                       FormatAnswer& answer, StepContext& context) {
    QuantizeAnswer done =
        quantize_layers(request, taken_apart(request, answer), folder, answer.analysis, context);
    answer.ending = done.ending;
    answer.diagnostic = std::move(done.diagnostic);
    if (answer.ending != Ending::Done || done.whole.empty()) return;
    FormatLocations found = locate(done.whole.string(), request, context);
    if (found.ending == Ending::Cancelled) {
      answer.ending = Ending::Cancelled;
      return;
    }
    domain::ModelAnalysis& analysis = answer.analysis;
    answer.located = true;
    // Also where nothing could be imported: places in the float model would be wrong ones.
    const std::size_t placed = place_layers(found.locations, done.operators, analysis);
    if (found.ending != Ending::Done) {
      analysis.location_problem = "quantized, " + found.problem;
      return;
    }
    analysis.importer_version = std::move(found.importer);
    analysis.notes.push_back("[QuantizedONNXtoMLIR] Mapped " + std::to_string(placed) + "/" +
                             std::to_string(analysis.layers.size()) + " original layers to " +
                             std::to_string(analysis.locations.size()) + " quantized compute ops");
  }

  static FormatLocations locate(const std::string& model, const domain::AnalyzeRequest& request,
                                StepContext& context) {
    json question = {{"op", "locations"}, {"model", model}, {"dims", json::object()}};
    for (const auto& [dim, value] : request.dims) question["dims"][dim] = value;
    const HelperAnswer answer = second_try(
        [&] { return context.helpers.sidecar(dump(question), compile_bounds(context.limits)); });
    if (answer.ending == Ending::Refused && !answer.diagnostic.text.empty()) {
      return {.ending = Ending::Refused,
              .problem =
                  "the model cannot be imported as a whole: " + first_line(answer.diagnostic.text)};
    }
    if (answer.diagnostic.cause == "not started" && !answer.diagnostic.text.empty())
      return {.ending = answer.ending, .problem = first_line(answer.diagnostic.text)};
    if (answer.ending != Ending::Done) {
      return {.ending = answer.ending,
              .problem =
                  "the importer " +
                  (answer.diagnostic.cause.empty() ? "gave no answer" : answer.diagnostic.cause)};
    }
    const json said = json::parse(answer.json, nullptr, /*allow_exceptions=*/false);
    if (!said.is_object() || said.value("ok", json(false)) != true || !said.contains("locations") ||
        !said["locations"].is_array()) {
      const std::string text = said.is_object() && said.contains("text") && said["text"].is_string()
                                   ? said["text"].get<std::string>()
                                   : "";
      return {
          .ending = Ending::Refused,
          .problem = "the model cannot be imported as a whole: " + first_line(normalised(text))};
    }
    FormatLocations out{.ending = Ending::Done};
    for (const json& place : said["locations"]) {
      if (!place.is_array() || place.size() != 3 || !place[0].is_number_unsigned() ||
          !place[1].is_number_unsigned() || !place[2].is_string())
        continue;
      out.locations.push_back({place[0].get<std::uint32_t>(), place[1].get<std::uint32_t>(),
                               place[2].get<std::string>()});
    }
    if (said.contains("importer") && said["importer"].is_string())
      out.importer = said["importer"].get<std::string>();
    return out;
  }

  static std::string dump(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
  }

  static FormatAnswer broken(const base::Error& error) {
    return {.ending = Ending::Infrastructure,
            .analysis = {},
            .diagnostic = infrastructure("import", error)};
  }

  static ToolEnd read(const domain::AnalyzeRequest& request, const Files& files,
                      const fs::path& folder, bool ask_for_shapes, StepContext& context) {
    std::vector<std::string> arguments = {"analyze",
                                          "--request",
                                          files.request.string(),
                                          "--blobs",
                                          context.blobs.root().string(),
                                          "--result",
                                          files.result.string(),
                                          "--changed-model",
                                          files.changed_model.string()};
    if (ask_for_shapes) {
      arguments.insert(arguments.end(), {"--shapes-request", files.shapes_request.string()});
    } else {
      arguments.insert(arguments.end(), {"--shapes", files.shapes_answer.string()});
    }
    ToolEnd end = run_tool(reader_call("import", std::move(arguments), folder, context), context);
    if (end.ending != Ending::Refused && end.ending != Ending::Done &&
        end.ending != Ending::Cancelled && end.diagnostic.text.empty()) {
      end.diagnostic.text = "the model reader " + end.diagnostic.cause;
    }
    // The reader names the file in full; people know where it lies.
    const std::string prefix = request.model_path + ": ";
    const std::string file = fs::path(request.model_path).filename().string();
    if (end.ending == Ending::Refused && end.result.errors.text.starts_with(prefix)) {
      end.diagnostic.text = file + ": " + first_line(end.result.errors.text.substr(prefix.size()));
    } else if (end.ending != Ending::Done && end.ending != Ending::Cancelled) {
      end.diagnostic.text = file + ": " + end.diagnostic.text;
    }
    return end;
  }

  /// Leaves an answer for the second reading in any case but a cancel: what a run cannot show, the
  /// reader reports layer by layer.
  static FormatAnswer ask_for_shapes(const Files& files, StepContext& context) {
    const auto question = base::read_file(files.shapes_request);
    if (!question) return broken(question.error());
    const HelperAnswer answer =
        second_try([&] { return context.helpers.ort(*question, run_bounds(context.limits)); });
    if (answer.ending == Ending::Cancelled) return {.ending = Ending::Cancelled};
    const std::string text =
        answer.ending == Ending::Done
            ? answer.json
            : dump({{"ok", false}, {"where", "run"}, {"text", answer.diagnostic.cause}});
    if (auto written = base::write_file_atomically(files.shapes_answer, text, base::Sync::No);
        !written)
      return broken(written.error());
    return {.ending = Ending::Done};
  }
};

}  // namespace

std::unique_ptr<ModelFormat> make_onnx_format() { return std::make_unique<OnnxFormat>(); }

}  // namespace layerfarm::worker::toolchain
