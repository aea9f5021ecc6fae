#include "coordinator/report/assignment.h"

#include <algorithm>

#include "coordinator/report/compiler_map.h"
#include "coordinator/report/ops.h"
#include "coordinator/report/report_files.h"

namespace layerfarm::coordinator::report {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;

bool is_gone(const json::Value& entry) {
  const json::Value* gone = entry.get("_not_in_model");
  return gone && gone->flag() == true;
}

/// Files of a report's family in a folder, sorted; MAC sidecars are none.
std::vector<fs::path> family(const fs::path& folder) {
  constexpr std::string_view kStart = "torq_gen_config_";
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(kStart) && at->path().extension() == ".json" &&
        !name.ends_with("_mac_debug.json"))
      out.push_back(folder / name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// By what files say of themselves, since people rename them.
std::optional<AssignmentSource> by_model_name(const fs::path& folder, std::string_view model_name,
                                              bool reports) {
  for (const fs::path& path : family(folder)) {
    auto file = load_config(path);
    if (!file || file->get_text("model_name") != model_name) continue;
    const bool is_report = file->get("ops") != nullptr;
    const bool fits = reports ? is_report : is_compiler_file(*file);
    if (fits) return AssignmentSource{path, std::move(*file), is_report};
  }
  return std::nullopt;
}

}  // namespace

Result<AssignmentFile> read_assignment(const json::Value& file, const std::string& path) {
  AssignmentFile out;
  const json::Value* ops = file.get("ops");
  const json::Value* places = file.get("op_assignments");
  if (!ops && !places) {
    return base::fail(ErrorCode::InvalidInput,
                      path +
                          " has neither 'ops' nor 'op_assignments': it is no report and no "
                          "compiler file");
  }
  if (ops && ops->object()) {
    for (const json::Member& entry : *ops->object()) {
      if (is_gone(entry.value)) continue;
      if (auto executor = recommendation_in(entry.value)) out.by_layer[entry.key] = *executor;
    }
  }
  if (places && places->object()) {
    for (const json::Member& entry : *places->object()) {
      const std::string_view executor = entry.value.get_text("executor");
      if (!executor.empty() && is_line_and_column(entry.key)) out.by_place[entry.key] = executor;
    }
  }
  return out;
}

Assigned assign(const AssignmentFile& file, std::span<const OperatorPlace> operators,
                std::span<const std::string> executors) {
  Assigned out;
  std::size_t used_layers = 0;
  std::size_t used_places = 0;
  for (const OperatorPlace& one : operators) {
    const std::string* chosen = nullptr;
    if (const auto found = file.by_place.find(one.place); found != file.by_place.end()) {
      chosen = &found->second;
      ++used_places;
    }
    if (const auto found = file.by_layer.find(one.layer_id); found != file.by_layer.end()) {
      chosen = &found->second;
      ++used_layers;
    }
    std::string& executor = out.executors.emplace_back();
    if (chosen != nullptr &&
        std::find(executors.begin(), executors.end(), *chosen) == executors.end()) {
      ++out.unknown_executors;
      chosen = nullptr;
    }
    if (chosen != nullptr) executor = *chosen;
    if (executor.empty() && !one.layer_id.empty()) ++out.unassigned;
  }
  out.unmatched = file.by_layer.size() - used_layers + (file.by_place.size() - used_places);
  return out;
}

Result<AssignmentSource> find_assignment(const fs::path& folder, std::string_view model_name,
                                         std::string_view chip) {
  const auto named = find_report(folder, model_name, chip);
  if (named) {
    auto file = load_config(*named);
    if (!file) return base::fail(std::move(file.error()));
    const bool is_report = file->get("ops") != nullptr;
    return AssignmentSource{*named, std::move(*file), is_report};
  }
  if (named.error().code != ErrorCode::NotFound) return base::fail(named.error());
  std::vector<fs::path> places = {folder};
  if (!chip.empty()) places.insert(places.begin(), folder / chip);
  for (const fs::path& place : places) {
    if (auto found = by_model_name(place, model_name, /*reports=*/true)) return std::move(*found);
  }
  if (const auto compiler = find_config(folder, model_name, chip)) {
    auto file = load_config(*compiler);
    if (!file) return base::fail(std::move(file.error()));
    return AssignmentSource{*compiler, std::move(*file), false};
  }
  for (const fs::path& place : places) {
    if (auto found = by_model_name(place, model_name, /*reports=*/false)) return std::move(*found);
  }
  return base::fail(ErrorCode::NotFound, "Config not found for " + std::string(model_name));
}

}  // namespace layerfarm::coordinator::report
