#include "coordinator/plan/plan_request.h"

#include <fnmatch.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace layerfarm::coordinator::plan {
namespace {

using Json = nlohmann::json;

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::optional<double> number(const Json& json) {
  return json.is_number() ? std::optional<double>(json.get<double>()) : std::nullopt;
}

Json tool_json(const domain::ToolIdentity& tool) {
  return {{"version", tool.version}, {"files", tool.files.hex()}, {"cpu", tool.cpu}};
}

domain::ToolIdentity tool_from(const Json& json) {
  domain::ToolIdentity out;
  out.version = json.at("version").get<std::string>();
  out.cpu = json.at("cpu").get<std::string>();
  if (const auto files = base::Digest::from_hex(json.at("files").get<std::string>()))
    out.files = *files;
  return out;
}

const char* dedup_name(Dedup dedup) {
  switch (dedup) {
    case Dedup::Off:
      return "off";
    case Dedup::Loose:
      return "loose";
    case Dedup::Exact:
      return "exact";
  }
  return "off";
}

Dedup dedup_from(const std::string& name) {
  return name == "loose" ? Dedup::Loose : name == "exact" ? Dedup::Exact : Dedup::Off;
}

}  // namespace

std::vector<bool> choose_layers(const std::vector<domain::Layer>& layers,
                                const std::vector<std::string>& patterns) {
  if (patterns.empty()) return std::vector<bool>(layers.size(), true);
  std::vector<bool> out(layers.size(), false);
  std::vector<std::string> ids;
  ids.reserve(layers.size());
  for (const domain::Layer& layer : layers) ids.push_back(lower(layer.id));
  for (const std::string& given : patterns) {
    const std::string pattern = lower(given);
    const auto mark = [&](const auto& selects) {
      bool any = false;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (!selects(ids[i])) continue;
        out[i] = true;
        any = true;
      }
      return any;
    };
    if (pattern == "all") {
      out.assign(out.size(), true);
    } else if (pattern.find_first_of("*?") != std::string::npos) {
      mark([&](const std::string& id) {
        return ::fnmatch(pattern.c_str(), id.c_str(), FNM_NOESCAPE) == 0;
      });
    } else if (!mark([&](const std::string& id) { return id == pattern; })) {
      mark([&](const std::string& id) { return id.find(pattern) != std::string::npos; });
    }
  }
  return out;
}

domain::Tolerance tolerance_in_force(const domain::ExecutorSpec& executor,
                                     const ToleranceFlags& flags, const ToleranceEdit* edit) {
  domain::Tolerance out = executor.tolerance;
  out.fp_avg_tol = flags.fp_avg_tol.value_or(out.fp_avg_tol);
  out.fp_max_tol = flags.fp_max_tol.value_or(out.fp_max_tol);
  out.fp_abs_tol_frac = flags.fp_abs_tol_frac.value_or(out.fp_abs_tol_frac);
  return edit == nullptr ? out : edit->over(out);
}

std::string request_json(const PlanRequest& request, const PlanChip& chip) {
  const PlanOptions& options = request.options;
  const Json json = {
      {"options",
       {{"skip_mode", options.skip_mode},
        {"recompute", options.recompute},
        {"dedup", dedup_name(options.dedup)},
        {"skip_executors", options.skip_executors},
        {"skip_ops", options.skip_ops},
        {"executors", options.executors},
        {"layers", options.layers},
        {"collect_timing", options.collect_timing},
        {"timing_runs", options.timing_runs},
        {"fp_avg_tol", number_or_null(options.tolerance.fp_avg_tol)},
        {"fp_max_tol", number_or_null(options.tolerance.fp_max_tol)},
        {"fp_abs_tol_frac", number_or_null(options.tolerance.fp_abs_tol_frac)}}},
      {"inputs",
       {{"seed", request.inputs.seed},
        {"folder", request.inputs.folder.hex()},
        {"path", request.inputs.path}}},
      {"reference", tool_json(request.reference)},
      {"chip",
       {{"tool", tool_json(chip.tool)},
        {"needs_prepare", chip.needs_prepare},
        {"needs_compile", chip.needs_compile},
        {"batch", chip.batch},
        {"place", chip.place}}},
  };
  // Paths may be any bytes; what is no text is kept readable and never refused.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

base::Result<StoredRequest> request_from_json(const std::string& text) {
  StoredRequest out;
  try {
    const Json json = Json::parse(text);
    const Json& options = json.at("options");
    out.options.skip_mode = options.at("skip_mode").get<bool>();
    out.options.recompute = options.at("recompute").get<bool>();
    out.options.dedup = dedup_from(options.at("dedup").get<std::string>());
    out.options.skip_executors = options.at("skip_executors").get<std::vector<std::string>>();
    out.options.skip_ops = options.at("skip_ops").get<std::vector<std::string>>();
    out.options.executors = options.at("executors").get<std::vector<std::string>>();
    out.options.layers = options.at("layers").get<std::vector<std::string>>();
    out.options.collect_timing = options.at("collect_timing").get<bool>();
    out.options.timing_runs = options.at("timing_runs").get<int>();
    out.options.tolerance.fp_avg_tol = number(options.at("fp_avg_tol"));
    out.options.tolerance.fp_max_tol = number(options.at("fp_max_tol"));
    out.options.tolerance.fp_abs_tol_frac = number(options.at("fp_abs_tol_frac"));
    const Json& inputs = json.at("inputs");
    out.inputs.seed = inputs.at("seed").get<std::uint64_t>();
    out.inputs.path = inputs.at("path").get<std::string>();
    if (const auto folder = base::Digest::from_hex(inputs.at("folder").get<std::string>()))
      out.inputs.folder = *folder;
    out.reference = tool_from(json.at("reference"));
    const Json& chip = json.at("chip");
    out.chip.tool = tool_from(chip.at("tool"));
    out.chip.needs_prepare = chip.at("needs_prepare").get<bool>();
    out.chip.needs_compile = chip.at("needs_compile").get<bool>();
    out.chip.batch = chip.at("batch").get<std::uint32_t>();
    out.chip.place = chip.at("place").get<std::string>();
  } catch (const Json::exception& error) {
    return base::fail(base::ErrorCode::Corrupt,
                      std::string("the stored plan of a run cannot be read: ") + error.what());
  }
  return out;
}

}  // namespace layerfarm::coordinator::plan
