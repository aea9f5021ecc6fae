#include "coordinator/report/assignment.h"

#include <algorithm>
#include <set>

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
std::optional<AssignmentSource> by_content(const fs::path& folder, const Wanted& wanted,
                                           bool reports) {
  for (const fs::path& path : family(folder)) {
    auto file = load_config(path);
    if (!file || file->get_text("model_name") != wanted.model_name ||
        subgraph_of(*file, path) != wanted.subgraph)
      continue;
    const bool is_report = file->get("ops") != nullptr;
    const bool fits = reports ? is_report : is_compiler_file(*file);
    if (fits) return AssignmentSource{path, std::move(*file), is_report};
  }
  return std::nullopt;
}

std::string part_text(const std::optional<domain::NodeRange>& subgraph) {
  return subgraph
             ? "nodes " + std::to_string(subgraph->first) + " to " + std::to_string(subgraph->last)
             : std::string("the whole model");
}

/// A file that the model's name leads to.
Result<AssignmentSource> by_name(const fs::path& path, const Wanted& wanted) {
  auto file = load_config(path);
  if (!file) return base::fail(std::move(file.error()));
  if (const std::string owner = other_owner(*file, path, wanted); !owner.empty()) {
    return base::fail(ErrorCode::Incompatible, path.string() + " is of " + owner + ", not of " +
                                                   part_text(wanted.subgraph) +
                                                   "; give it back its name");
  }
  const bool is_report = file->get("ops") != nullptr;
  return AssignmentSource{path, std::move(*file), is_report};
}

/// A file that is there and can be read.
std::optional<json::Value> readable(const fs::path& path) {
  auto file = load_config(path);
  return file ? std::optional(std::move(*file)) : std::nullopt;
}

}  // namespace

std::string other_owner(const json::Value& file, const fs::path& path, const Wanted& wanted) {
  const std::string name(file.get_text("model_name"));
  // Old files of subgraphs do not say that they are; then the name that led here does.
  if (wanted.subgraph && !file.get("_subgraph")) {
    const bool whole = name == std::string(wanted.model_name) + subgraph_suffix(wanted.subgraph);
    return whole ? "the model " + name : std::string();
  }
  const auto part = subgraph_of(file, path);
  if (part == wanted.subgraph) return {};
  return part_text(part) + (name.empty() ? "" : " of " + name);
}

Result<void> check_owner(const ReportPaths& paths, const Wanted& wanted) {
  const auto refuse = [&](const fs::path& path, const std::string& owner) {
    return base::fail(ErrorCode::Incompatible,
                      path.string() + " is of " + owner + ", and " +
                          std::string(wanted.model_name) +
                          " would write to the same name; rename or link the model, or give "
                          "another --output-dir");
  };
  if (const auto report = readable(paths.report)) {
    if (is_compiler_file(*report))
      return refuse(paths.report, "another model: it is a compiler file");
    if (const std::string owner = other_owner(*report, paths.report, wanted); !owner.empty())
      return refuse(paths.report, owner);
  }
  for (const fs::path& path : {paths.compiler, paths.macs}) {
    const auto file = readable(path);
    if (file && file->get("default_tolerance"))
      return refuse(path, "another model: it is a report");
  }
  return {};
}

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
  std::set<std::string_view> used_layers;
  std::set<std::string_view> used_places;
  for (const OperatorPlace& one : operators) {
    const std::string* chosen = nullptr;
    if (const auto found = file.by_place.find(one.place); found != file.by_place.end()) {
      chosen = &found->second;
      used_places.insert(found->first);
    }
    if (const auto found = file.by_layer.find(one.layer_id); found != file.by_layer.end()) {
      chosen = &found->second;
      used_layers.insert(found->first);
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
  for (const auto& [id, executor] : file.by_layer) {
    if (!used_layers.contains(id)) out.unmatched_layers.push_back(id);
  }
  for (const auto& [place, executor] : file.by_place) {
    if (!used_places.contains(place)) out.unmatched_places.push_back(place);
  }
  return out;
}

std::optional<domain::NodeRange> subgraph_of(const json::Value& file, const fs::path& path) {
  const json::Value* own = file.get("_subgraph");
  if (!own || !own->array() || own->array()->size() != 2)
    return subgraph_in_name(path, file.get_text("model_name"));
  const auto place = [&](std::size_t i) {
    return static_cast<std::uint32_t>((*own->array())[i].integer().value_or(0));
  };
  return domain::NodeRange{place(0), place(1)};
}

Result<AssignmentSource> find_assignment(const fs::path& folder, const Wanted& wanted,
                                         std::string_view chip) {
  const std::string suffix = subgraph_suffix(wanted.subgraph);
  const auto named = find_report(folder, wanted.model_name, chip, suffix);
  if (named) return by_name(*named, wanted);
  if (named.error().code != ErrorCode::NotFound) return base::fail(named.error());
  std::vector<fs::path> places = {folder};
  if (!chip.empty()) places.insert(places.begin(), folder / chip);
  for (const fs::path& place : places) {
    if (auto found = by_content(place, wanted, /*reports=*/true)) return std::move(*found);
  }
  if (const auto compiler = find_config(folder, wanted.model_name, chip, suffix))
    return by_name(*compiler, wanted);
  for (const fs::path& place : places) {
    if (auto found = by_content(place, wanted, /*reports=*/false)) return std::move(*found);
  }
  return base::fail(ErrorCode::NotFound, "Config not found for " + std::string(wanted.model_name));
}

}  // namespace layerfarm::coordinator::report
