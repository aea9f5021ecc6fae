#include "coordinator/report/subgraph_reports.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "coordinator/report/assignment.h"
#include "coordinator/report/ops.h"
#include "coordinator/report/report_files.h"

namespace layerfarm::coordinator::report {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;

/// Reports of the model's subgraphs in one folder, sorted.
std::vector<fs::path> reports_in(const fs::path& folder, std::string_view model_name) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator at(folder.empty() ? "." : folder, error), end; !error && at != end;
       at.increment(error)) {
    const fs::path name = at->path().filename();
    const bool is_report =
        name.extension() == ".json" && !name.stem().string().ends_with("_compiler");
    if (is_report && subgraph_in_name(name, model_name)) out.push_back(folder / name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<fs::path> folders_below(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator at(folder.empty() ? "." : folder, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored)) out.push_back(folder / at->path().filename());
  }
  return out;
}

/// The first and the last layer, in case order; nothing where the file is a whole model's that is
/// called as a subgraph's would be.
std::optional<std::pair<std::string, std::string>> ends_of(const fs::path& path,
                                                           std::string_view model_name) {
  const auto file = load_config(path);
  if (!file) return std::nullopt;
  if (!other_owner(*file, path, {model_name, subgraph_in_name(path, model_name)}).empty())
    return std::nullopt;
  const std::vector<Op> ops = ops_of(*file);
  const Op* first = nullptr;
  const Op* last = nullptr;
  for (const Op& op : ops) {
    if (!op.orig_index) continue;  // of another model
    if (first == nullptr || *op.orig_index < *first->orig_index) first = &op;
    if (last == nullptr || *op.orig_index > *last->orig_index) last = &op;
  }
  if (first == nullptr) return std::nullopt;
  return std::pair(first->id, last->id);
}

bool is_called(std::string_view layer_id, std::string_view name) {
  const std::size_t type = layer_id.find('_');
  return layer_id == name || (type != std::string_view::npos && layer_id.substr(type + 1) == name);
}

}  // namespace

base::Result<void> check_both_ends(const SubgraphEnds& ends) {
  if (ends.from.empty() == ends.to.empty()) return {};
  return base::fail(ErrorCode::InvalidInput,
                    ends.to.empty()
                        ? "--subgraph-from needs --subgraph-to, the last node of the subgraph"
                        : "--subgraph-to needs --subgraph-from, the first node of the subgraph");
}

base::Result<fs::path> find_subgraph_report(const fs::path& folder, std::string_view model_name,
                                            std::string_view chip, const SubgraphEnds& ends) {
  if (auto both = check_both_ends(ends); !both) return base::fail(both.error());
  std::vector<std::vector<fs::path>> places;
  if (!chip.empty()) places.push_back(reports_in(folder / chip, model_name));
  places.push_back(reports_in(folder, model_name));
  if (chip.empty()) {
    std::vector<fs::path>& below = places.emplace_back();
    for (const fs::path& each : folders_below(folder)) {
      for (fs::path& path : reports_in(each, model_name)) below.push_back(std::move(path));
    }
    std::sort(below.begin(), below.end());
  }
  std::string there;
  for (const std::vector<fs::path>& place : places) {
    std::vector<fs::path> found;
    for (const fs::path& path : place) {
      const auto its = ends_of(path, model_name);
      if (!its) continue;
      there += "\n  " + its->first + " to " + its->second + ": " + path.string();
      if (is_called(its->first, ends.from) && is_called(its->second, ends.to))
        found.push_back(path);
    }
    if (found.size() == 1) return found.front();
    if (found.empty()) continue;
    std::string list;
    for (const fs::path& path : found) list += "\n  " + path.string();
    return base::fail(ErrorCode::InvalidInput,
                      "several reports fit; name one of them, or its chip with --chip:" + list);
  }
  return base::fail(
      ErrorCode::NotFound,
      "no report of " + std::string(model_name) + " from " + ends.from + " to " + ends.to +
          (there.empty() ? "; none of its subgraphs has one" : "; there are:" + there));
}

}  // namespace layerfarm::coordinator::report
