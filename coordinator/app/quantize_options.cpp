#include "coordinator/app/quantize_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "coordinator/app/unplaced_layers.h"
#include "shared/base/text.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
namespace json = report::json;
using base::ErrorCode;
using base::fail;
using base::Result;

namespace {

bool is_sample(const fs::path& file) {
  const std::string extension = file.extension().string();
  return extension == ".npz" || extension == ".npy" || extension == ".pb";
}

}  // namespace

void add_quantize_flags(CLI::App& app, QuantizeOptions& options, bool with_switch) {
  if (with_switch) {
    app.add_flag("--quantize", options.enabled,
                 "Test the layers quantized to int8, at their places in the quantized model");
  }
  app.add_flag("--per-channel", options.per_channel, "Weights get a scale for each output channel");
  app.add_flag("--full-integer", options.full_integer,
               "Inputs and outputs become int8 where only conversions stand at them");
  app.add_option("--quant-format", options.format,
                 "How quantized operators are written: qdq (conversions around float ones), "
                 "qoperator (operators of their own), hybrid (that where all have one)")
      ->check(CLI::IsMember({"qdq", "qoperator", "hybrid"}))
      ->capture_default_str()
      ->type_name("FORMAT");
  app.add_option("--quant-dtype", options.dtype, "Types of activations and weights: A8W8 (int8)")
      ->check(CLI::IsMember({"A8W8"}))
      ->capture_default_str()
      ->type_name("TYPES");
  app.add_option("--calibration", options.calibration,
                 "Folder of samples by input name, .npz files or subfolders of .npz, .npy and .pb "
                 "files, instead of random ones")
      ->type_name("DIR");
}

Result<void> find_calibration(QuantizeOptions& options) {
  if (options.calibration.empty()) return {};
  std::error_code error;
  if (!fs::is_directory(options.calibration, error))
    return fail(ErrorCode::NotFound, "--calibration: no folder " + options.calibration);
  const fs::path folder = fs::absolute(options.calibration).lexically_normal();
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_regular_file() && is_sample(entry.path())) files.insert(entry.path());
    if (!entry.is_directory()) continue;
    for (const auto& inner : fs::directory_iterator(entry.path(), error)) {
      if (inner.is_regular_file() && is_sample(inner.path())) files.insert(inner.path());
    }
  }
  if (error)
    return fail(ErrorCode::InvalidInput, "--calibration: cannot read the folder " +
                                             options.calibration + ": " + error.message());
  if (files.empty())
    return fail(ErrorCode::NotFound,
                "--calibration: " + options.calibration + " holds no .npz, .npy or .pb file");
  base::Hasher hasher("layerfarm.calibration.1");
  for (const fs::path& file : files) {
    auto digest = base::digest_of_file(file.string());
    if (!digest) return fail(digest.error());
    hasher.add(file.lexically_relative(folder).string()).add(*digest);
  }
  options.calibration = folder.string();
  options.calibration_digest = hasher.finish();
  return {};
}

std::optional<domain::Quantization> quantization_of(const QuantizeOptions& options) {
  if (!options.enabled) return std::nullopt;
  return domain::Quantization{
      .format = domain::quant_format_from_name(options.format).value_or(domain::QuantFormat::Qdq),
      .per_channel = options.per_channel,
      .full_integer = options.full_integer,
      .samples = options.samples,
      .calibration = options.calibration_digest,
      .calibration_path = options.calibration};
}

std::string idle_quantize_flags(const QuantizeOptions& options) {
  if (options.enabled) return {};
  std::vector<std::string> flags;
  if (options.per_channel) flags.emplace_back("--per-channel");
  if (options.full_integer) flags.emplace_back("--full-integer");
  if (options.format != QuantizeOptions().format) flags.emplace_back("--quant-format");
  if (!options.calibration.empty()) flags.emplace_back("--calibration");
  return flags.empty() ? std::string()
                       : "[Quantize] without --quantize nothing follows from " + base::join(flags);
}

void add_quantize_settings(const QuantizeOptions& options, json::Object& settings) {
  if (!options.enabled) return;
  json::Object out;
  out.set("format", options.format);
  out.set("per_channel", options.per_channel);
  out.set("full_integer", options.full_integer);
  if (!options.calibration_digest.is_zero())
    out.set("calibration", options.calibration_digest.hex());
  settings.set("quantize", std::move(out));
}

json::Value quantization_counts(const domain::ModelAnalysis& model) {
  std::int64_t quantized = 0;
  std::int64_t in_float = 0;
  for (const domain::Layer& layer : model.layers) {
    if (layer.quantized) ++(*layer.quantized ? quantized : in_float);
  }
  if (quantized + in_float == 0) return {};
  const std::vector<Unplaced> places = unplaced_layers(model);
  const std::int64_t fused = std::count(places.begin(), places.end(), Unplaced::Fused);
  const std::int64_t moved = std::count(places.begin(), places.end(), Unplaced::Moved);
  json::Object out;
  out.set("quantized", quantized);
  out.set("float", in_float);
  out.set("fused", fused);
  if (moved > 0) out.set("moved", moved);
  return out;
}

std::string quantization_line(const domain::ModelAnalysis& model) {
  std::size_t asked = 0;
  std::size_t quantized = 0;
  std::map<std::string, std::vector<std::string>> reasons;
  for (const domain::Layer& layer : model.layers) {
    if (!layer.quantized) continue;
    ++asked;
    quantized += *layer.quantized ? 1 : 0;
    if (!*layer.quantized) reasons[layer.quantize_note].push_back(layer.id);
  }
  if (asked == 0) return {};
  std::string out = fmt::format("{} of {} layers are quantized", quantized, asked);
  constexpr std::size_t kMostNamed = 3;
  for (const auto& [reason, layers] : reasons) {
    const std::vector<std::string> named(
        layers.begin(),
        layers.begin() + static_cast<std::ptrdiff_t>(std::min(layers.size(), kMostNamed)));
    out += fmt::format("\n  {} stay{} in float: {} ({}{})", layers.size(),
                       layers.size() == 1 ? "s" : "", reason, base::join(named),
                       layers.size() > named.size() ? ", ..." : "");
  }
  return out;
}

}  // namespace layerfarm::coordinator::app
