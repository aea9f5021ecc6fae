#include "worker/toolchain/quantize_model.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "shared/base/files.h"
#include "worker/toolchain/tool_step.h"

namespace layerfarm::worker::toolchain {
namespace {

namespace fs = std::filesystem;
using domain::Ending;
using nlohmann::json;

/// Samples and nodes may be many; nobody else waits for this process.
constexpr std::size_t kUnits = 12;

std::string line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string failed(const std::string& why) { return line({{"ok", false}, {"text", why}}); }

}  // namespace

std::string quantize_model(const std::string& request, StepContext& context) {
  json question = json::parse(request, nullptr, /*allow_exceptions=*/false);
  if (!question.is_object() || question.value("op", "") != "quantize" ||
      !question.contains("models") || question["models"].size() != 1 ||
      !question["models"][0].contains("out") || !question["models"][0]["out"].is_string())
    return failed("the request is not one model to quantize");
  const fs::path out = question["models"][0]["out"].get<std::string>();
  const fs::path made = context.scratch / "quantized.onnx";
  question["models"][0]["out"] = made.string();
  const HelperAnswer answer =
      context.helpers.sidecar(line(question), compile_bounds(context.limits, kUnits));
  const json said = json::parse(answer.json, nullptr, /*allow_exceptions=*/false);
  if (answer.ending == Ending::Refused && said.is_object() && said.contains("text"))
    return line(said);
  if (answer.ending != Ending::Done || !said.is_object() || !said.contains("models") ||
      said["models"].size() != 1)
    return failed("the quantizer " +
                  (answer.diagnostic.cause.empty() ? "gave no answer" : answer.diagnostic.cause));
  const json& model = said["models"][0];
  if (!model.value("ok", false)) return line(model);
  const auto bytes = base::read_file(made);
  if (!bytes) return failed(bytes.error().text());
  if (auto written = base::write_file_atomically(out, *bytes, base::Sync::Yes); !written)
    return failed(written.error().text());
  return line(model);
}

}  // namespace layerfarm::worker::toolchain
