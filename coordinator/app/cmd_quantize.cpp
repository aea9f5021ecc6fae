#include "coordinator/app/cmd_quantize.h"

#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "coordinator/app/model_list.h"
#include "coordinator/app/worker_probe.h"
#include "shared/base/exit_code.h"
#include "shared/base/places.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::ExitCode;
using nlohmann::json;

namespace {

/// Longer than the worker's own limit: its line says more than ours would.
constexpr std::chrono::hours kPatience(3);

int refuse(const std::string& text) {
  std::cerr << "Error: " << text << "\n";
  return static_cast<int>(ExitCode::Failed);
}

int cannot(const std::string& why) {
  std::cerr << "Error quantizing model: " << why << "\n";
  return static_cast<int>(ExitCode::Failed);
}

/// As the worker passes it on to the sidecar (docs/helpers.md).
json request_of(const QuantizeCommandOptions& options, const fs::path& model, const fs::path& out) {
  const QuantizeOptions& how = options.how;
  json request = {{"op", "quantize"},
                  {"format", how.format},
                  {"per_channel", how.per_channel},
                  {"full_integer", how.full_integer},
                  {"samples", how.samples},
                  {"keep", true},
                  {"models", json::array({{{"model", model.string()}, {"out", out.string()}}})}};
  if (!how.calibration.empty())
    request["calibration"] = {{"folder", how.calibration}, {"model", model.string()}};
  return request;
}

}  // namespace

std::string default_quantized_path(const std::string& model) {
  return fs::path(model).replace_extension(".int8.onnx").string();
}

int cmd_quantize(QuantizeCommandOptions options) {
  if (!options.dataset.empty())
    return refuse("--dataset is not implemented; --calibration DIR takes samples of your own");
  if (options.model.empty()) return refuse("--model is required");
  std::error_code error;
  if (!fs::exists(options.model, error)) return refuse("Model not found: " + options.model);
  if (auto checked = check_model_file(options.model); !checked)
    return refuse(checked.error().text());
  if (!fs::is_regular_file(options.model, error))
    return refuse("Model is not a regular file: " + options.model);
  if (auto found = find_calibration(options.how); !found) return refuse(found.error().text());
  if (options.output.empty()) options.output = default_quantized_path(options.model);
  const fs::path model = fs::absolute(options.model).lexically_normal();
  const fs::path out = fs::absolute(options.output).lexically_normal();
  if (fs::equivalent(model, out, error))
    return cannot("the output is the model itself: " + options.output);
  fs::create_directories(out.parent_path(), error);
  if (error)
    return cannot("cannot make the folder " + out.parent_path().string() + ": " + error.message());

  std::string request;
  try {
    request = request_of(options, model, out).dump();
  } catch (const json::type_error&) {
    return cannot("the quantizer takes paths in UTF-8 only; rename or link " + options.model +
                  " and name the output with --output");
  }
  const auto said =
      ask_worker(base::program_folder() / "layerfarm-worker", "--quantize", request, kPatience);
  if (!said) return cannot(said.error().text());
  const json answer = json::parse(*said, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return cannot("the worker's answer cannot be read");
  if (!answer.value("ok", false)) return cannot(answer.value("text", "no reason was given"));
  if (answer.value("already", false)) {
    std::cerr << "[Quantize] the model is quantized already; it is copied as it is\n";
  } else if (!answer.value("quantized", false)) {
    std::cerr << "[Quantize] nothing was quantized: " << answer.value("note", "") << "\n";
  }
  std::cout << (options.how.full_integer ? "Full-integer quantized" : "Quantized")
            << " model saved to: " << options.output << "\n";
  return static_cast<int>(ExitCode::Success);
}

}  // namespace layerfarm::coordinator::app
