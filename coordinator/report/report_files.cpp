#include "coordinator/report/report_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdint>
#include <limits>

#include "shared/base/files.h"

namespace layerfarm::coordinator::report {
namespace fs = std::filesystem;

std::string model_name_of(const fs::path& model) { return model.stem().string(); }

std::string subgraph_suffix(const std::optional<domain::NodeRange>& subgraph) {
  if (!subgraph) return {};
  return "_subgraph_" + std::to_string(subgraph->first) + "_" + std::to_string(subgraph->last);
}

std::optional<domain::NodeRange> subgraph_in_name(const fs::path& path,
                                                  std::string_view model_name) {
  std::string name = path.stem().string();
  constexpr std::string_view kCompiler = "_compiler";
  if (name.ends_with(kCompiler)) name.erase(name.size() - kCompiler.size());
  const std::string start = report_paths("", model_name).report.stem().string() + "_subgraph_";
  if (!name.starts_with(start)) return std::nullopt;
  domain::NodeRange out;
  const char* const end = name.data() + name.size();
  const auto first = std::from_chars(name.data() + start.size(), end, out.first);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '_') return std::nullopt;
  const auto last = std::from_chars(first.ptr + 1, end, out.last);
  if (last.ec != std::errc() || last.ptr != end) return std::nullopt;
  return out;
}

ReportPaths report_paths(const fs::path& folder, std::string_view model_name,
                         std::string_view suffix) {
  const std::string stem = "torq_gen_config_" + std::string(model_name) + std::string(suffix);
  return {folder / (stem + ".json"), folder / (stem + "_compiler.json"),
          folder / (stem + "_mac_debug.json")};
}

base::Result<void> check_names_fit(const ReportPaths& paths) {
  // The longest of the three, while it is being written.
  const std::string name = paths.macs.filename().string();
  const std::size_t length = name.size() + base::kTemporarySuffixLength;
  if (length <= NAME_MAX) return {};
  const std::size_t over = length - NAME_MAX;
  return base::fail(base::ErrorCode::InvalidInput,
                    "the model's name is too long for its files: " + name + " must be " +
                        std::to_string(over) + " byte(s) shorter; rename or link the model");
}

fs::path compiler_path_of(const fs::path& report) {
  return report.parent_path() / (report.stem().string() + "_compiler.json");
}

fs::path report_path_of(const fs::path& compiler) {
  std::string name = compiler.filename().string();
  constexpr std::string_view kMark = "_compiler";
  const std::size_t at = name.find(kMark);
  if (at != std::string::npos) {
    name.erase(at, kMark.size());
    return compiler.parent_path() / name;
  }
  return compiler.parent_path() /
         (compiler.stem().string() + "_report" + compiler.extension().string());
}

std::optional<FileState> file_state(const fs::path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileState{static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino),
                   static_cast<std::uint64_t>(info.st_size),
                   std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
}

namespace {

/// The sidecar has `ops` like a report, but no verdicts.
bool is_mac_sidecar(const json::Value& file) {
  const json::Value* ops = file.get("ops");
  if (ops == nullptr || ops->object() == nullptr) return false;
  return std::any_of(ops->object()->begin(), ops->object()->end(), [](const json::Member& entry) {
    return entry.value.get("mac_breakdown") != nullptr;
  });
}

base::Error not_a_report(const fs::path& sidecar) {
  std::string text = sidecar.string() + " holds MAC counts: name the report beside it";
  std::string stem = sidecar.stem().string();
  constexpr std::string_view kMark = "_mac_debug";
  if (stem.ends_with(kMark)) {
    stem.erase(stem.size() - kMark.size());
    text += ", " + (sidecar.parent_path() / (stem + ".json")).string();
  }
  return {base::ErrorCode::InvalidInput, std::move(text)};
}

}  // namespace

base::Result<json::Value> load_config(const fs::path& path) {
  auto bytes = base::read_file(path);
  if (!bytes) return base::fail(std::move(bytes.error()));
  auto value = json::parse(*bytes, path.string());
  if (!value) return value;
  if (!value->object())
    return base::fail(base::ErrorCode::InvalidInput, path.string() + " is not a JSON object");
  for (const char* key : {"ops", "op_assignments"}) {
    const json::Value* member = value->get(key);
    if (!member) continue;
    if (!member->object()) {
      return base::fail(base::ErrorCode::InvalidInput,
                        path.string() + ": '" + key + "' is not an object");
    }
    for (const json::Member& entry : *member->object()) {
      if (entry.value.object()) continue;
      return base::fail(base::ErrorCode::InvalidInput,
                        path.string() + ": '" + key + "." + entry.key + "' is not an object");
    }
  }
  if (is_mac_sidecar(*value)) return base::fail(not_a_report(path));
  return value;
}

base::Result<void> check_bounds(const json::Value* tolerance, const fs::path& path,
                                const std::string& where) {
  if (tolerance == nullptr) return {};
  const auto refuse = [&](const std::string& key, const json::Value& value, const char* must) {
    return base::fail(base::ErrorCode::InvalidInput,
                      path.string() + ": '" + where + key + "' is " + json::text_of(value) +
                          ", and must be " + must +
                          "; correct it there, or take it out and discover again");
  };
  if (tolerance->object() == nullptr) return refuse("", *tolerance, "an object");
  for (const char* key : {"fp_avg_tol", "fp_max_tol", "fp_abs_tol_frac"}) {
    const json::Value* value = tolerance->get(key);
    if (value == nullptr) continue;
    // The tokens NaN and Infinity are read as null.
    const auto number = value->number();
    if (!number || !std::isfinite(*number) || *number < 0)
      return refuse("." + std::string(key), *value, "a number from 0 on");
  }
  if (const json::Value* value = tolerance->get("int_tol")) {
    const auto number = value->integer();
    if (!number || *number < 0 || *number > std::numeric_limits<std::uint32_t>::max())
      return refuse(".int_tol", *value, "a whole number from 0 on");
  }
  return {};
}

base::Result<void> check_edited_bounds(const json::Value& report, const fs::path& path) {
  const json::Value* ops = report.get("ops");
  if (ops == nullptr || ops->object() == nullptr) return {};
  for (const json::Member& entry : *ops->object()) {
    const json::Value* edited = entry.value.get("tolerance_used");
    if (edited == nullptr || edited->is_null()) continue;
    if (auto fine = check_bounds(edited, path, "ops." + entry.key + ".tolerance_used"); !fine)
      return fine;
  }
  return {};
}

base::Result<fs::path> find_report(const fs::path& folder, std::string_view model_name,
                                   std::string_view chip, std::string_view suffix) {
  const fs::path name = report_paths("", model_name, suffix).report;
  std::error_code ignored;
  if (!chip.empty() && fs::exists(folder / chip / name, ignored)) return folder / chip / name;
  fs::path plain = folder / name;
  if (fs::exists(plain, ignored)) return plain;
  std::vector<fs::path> found;
  if (chip.empty()) {
    for (fs::directory_iterator at(folder.empty() ? fs::path(".") : folder, ignored), end;
         at != end; at.increment(ignored)) {
      if (ignored) break;
      const fs::path below = folder / at->path().filename() / name;
      if (fs::exists(below, ignored)) found.push_back(below);
    }
  }
  std::sort(found.begin(), found.end());
  if (found.size() == 1) return found.front();
  if (found.empty())
    return base::fail(base::ErrorCode::NotFound, "Config file not found: " + plain.string());
  std::string list;
  for (const fs::path& path : found) list += "\n  " + path.string();
  return base::fail(base::ErrorCode::InvalidInput,
                    "several reports fit " + std::string(model_name) +
                        "; name one of them, or its chip with --chip:" + list);
}

base::Result<fs::path> find_config(const fs::path& folder, std::string_view model_name,
                                   std::string_view chip, std::string_view suffix) {
  auto found = find_report(folder, model_name, chip, suffix);
  if (found || found.error().code != base::ErrorCode::NotFound) return found;
  std::error_code ignored;
  for (const fs::path& place : {chip.empty() ? folder : folder / chip, folder}) {
    fs::path compiler = report_paths(place, model_name, suffix).compiler;
    if (fs::exists(compiler, ignored)) return compiler;
  }
  return found;
}

ReportPaths in_chip_folder(const ReportPaths& paths, const std::string& chip) {
  const auto moved = [&](const fs::path& path) {
    return path.parent_path() / chip / path.filename();
  };
  return {moved(paths.report), moved(paths.compiler), moved(paths.macs)};
}

base::Result<std::vector<Move>> moves_aside(const ReportPaths& paths, const std::string& chip) {
  const ReportPaths to = in_chip_folder(paths, chip);
  std::error_code error;
  if (fs::exists(to.report, error)) {
    return base::fail(base::ErrorCode::InvalidInput,
                      paths.report.string() + " is of chip " + chip + ", and " +
                          to.report.string() + " is there already; move one of them away");
  }
  std::vector<Move> out;
  for (const Move& move : {Move{paths.report, to.report}, Move{paths.compiler, to.compiler},
                           Move{paths.macs, to.macs}}) {
    if (fs::exists(move.from, error)) out.push_back(move);
  }
  return out;
}

base::Result<void> carry_out(const std::vector<Move>& moves) {
  for (const Move& move : moves) {
    const fs::path folder = move.to.parent_path();
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
      return base::fail(base::ErrorCode::Internal,
                        "cannot make the folder " + folder.string() + ": " + error.message());
    fs::rename(move.from, move.to, error);
    if (error) {
      return base::fail(base::ErrorCode::Internal, "cannot move " + move.from.string() + " to " +
                                                       move.to.string() + ": " + error.message());
    }
  }
  return {};
}

}  // namespace layerfarm::coordinator::report
