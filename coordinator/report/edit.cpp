#include "coordinator/report/edit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "coordinator/report/compiler_map.h"
#include "coordinator/report/ops.h"
#include "coordinator/report/texts.h"
#include "coordinator/report/view_text.h"
#include "shared/base/near_names.h"
#include "shared/base/text.h"

namespace layerfarm::coordinator::report {
namespace {

constexpr std::string_view kNoExecutor = "null";
constexpr std::string_view kByRule = "auto";

/// Set of characters after '[' at `at`; moved behind ']'. False when there is no ']' (then '['
/// stands for itself).
bool set_matches(std::string_view pattern, std::size_t& at, char c, bool& matched) {
  std::size_t end = at + 1;
  if (end < pattern.size() && pattern[end] == '!') ++end;
  if (end < pattern.size() && pattern[end] == ']') ++end;
  while (end < pattern.size() && pattern[end] != ']') ++end;
  if (end >= pattern.size()) return false;
  std::string_view set = pattern.substr(at + 1, end - at - 1);
  const bool inverted = !set.empty() && set.front() == '!';
  if (inverted) set.remove_prefix(1);
  bool found = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (i + 2 < set.size() && set[i + 1] == '-') {
      found = found || (set[i] <= c && c <= set[i + 2]);
      i += 2;
    } else {
      found = found || set[i] == c;
    }
  }
  matched = found != inverted;
  at = end + 1;
  return true;
}

/// Whether the edit's executor is this word, and no executor of the report's chip is called so.
bool says(const json::Value& report, const Edit& edit, std::string_view word) {
  return edit.executor && lower(*edit.executor) == word &&
         !base::find_any_case(chip_executors_of(report), *edit.executor);
}

void edit_tolerance(json::Object& entry, const Edit& edit) {
  json::Value& tolerance = entry["tolerance_used"];
  if (!tolerance.object()) tolerance = json::Object();
  json::Object& bounds = *tolerance.object();
  if (edit.fp_avg_tol) bounds.set("fp_avg_tol", *edit.fp_avg_tol);
  if (edit.fp_max_tol) bounds.set("fp_max_tol", *edit.fp_max_tol);
  if (edit.fp_abs_tol_frac) bounds.set("fp_abs_tol_frac", *edit.fp_abs_tol_frac);
  if (edit.int_tol) bounds.set("int_tol", std::int64_t{*edit.int_tol});
  for (const std::string& key : edit.automatic) bounds.erase(key);
  if (bounds.empty()) entry.erase("tolerance_used");
}

}  // namespace

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool matches_pattern(std::string_view text, std::string_view pattern) {
  // On a mismatch the last '*' takes one more character; so no backtracking beyond it is needed.
  std::size_t t = 0;
  std::size_t p = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_text = 0;
  while (t < text.size()) {
    bool matched = false;
    std::size_t next = p;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
      continue;
    }
    if (p < pattern.size()) {
      if (pattern[p] == '[' && set_matches(pattern, next, text[t], matched)) {
        // `next` and `matched` are set
      } else {
        matched = pattern[p] == '?' || pattern[p] == text[t];
        next = p + 1;
      }
    }
    if (matched) {
      ++t;
      p = next;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<std::string> select_layers(const json::Value& report, std::string_view query) {
  std::vector<std::string> chosen;
  const json::Value* ops = report.get("ops");
  if (!ops || !ops->object()) return chosen;
  const std::string wanted = lower(query);
  const bool all = wanted == "all";
  const bool pattern = wanted.find_first_of("*?") != std::string::npos;
  std::vector<std::string> exact;
  for (const json::Member& op : *ops->object()) {
    const std::string id = lower(op.key);
    if (!all && !pattern && id == wanted) exact.push_back(op.key);
    const bool fits =
        all || (pattern ? matches_pattern(id, wanted) : id.find(wanted) != std::string::npos);
    if (fits) chosen.push_back(op.key);
  }
  if (!exact.empty()) chosen = exact;
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

base::Result<Edit> check_edit(const json::Value& report, Edit edit) {
  if (edit.executor && !says(report, edit, kNoExecutor) && !says(report, edit, kByRule)) {
    const std::vector<std::string> known = chip_executors_of(report);
    auto found = base::find_any_case(known, *edit.executor);
    if (!found) {
      const std::string_view chip = report.get_text("_chip");
      return base::fail(base::ErrorCode::InvalidInput,
                        "'" + *edit.executor + "' is no executor of " +
                            (chip.empty() ? "this report's chip" : "chip " + std::string(chip)) +
                            "; choose one of " + base::join(known) + ", null or auto");
    }
    edit.executor = std::move(*found);
  }
  for (const auto& tolerance : {edit.fp_avg_tol, edit.fp_max_tol, edit.fp_abs_tol_frac}) {
    if (tolerance && !(std::isfinite(*tolerance) && *tolerance >= 0)) {
      return base::fail(base::ErrorCode::InvalidInput, "a tolerance must be a number from 0 on");
    }
  }
  return edit;
}

Rejudged apply_edit(json::Value& report, const std::vector<std::string>& layers, const Edit& edit) {
  json::Value* ops = report.object() ? report.object()->find("ops") : nullptr;
  if (!ops || !ops->object()) return {};
  Rejudged rejudged;
  const bool by_rule = says(report, edit, kByRule);
  const bool none = says(report, edit, kNoExecutor);
  for (const std::string& layer : layers) {
    json::Value* entry = ops->object()->find(layer);
    if (!entry || !entry->object()) continue;
    if (edit.executor && !by_rule) {
      set_recommendation(report, layer, none ? std::nullopt : edit.executor);
      entry->object()->set("_edited", true);
    }
    if (edit.has_bounds()) edit_tolerance(*entry->object(), edit);
  }
  if (by_rule) recommend_by_rule(report, layers);
  if (edit.has_bounds()) rejudged = rejudge(report, layers, edit.automatic);
  report.object()->erase("_whole_model");      // of another assignment, or judged otherwise
  if (is_unfinished(report)) return rejudged;  // a run that goes on writes its text at its end
  const Overview all = overview(ops_of(report), executors_of(report), RowOrder::OrigIndex);
  const json::Value* name = report.get("model_name");
  const std::string model = name && name->text() ? *name->text() : "unknown";
  report.object()->set("final_report_text", final_report_text(model, all, std::nullopt));
  return rejudged;
}

std::string idle_bound_lines(const json::Value& report, const std::vector<std::string>& layers,
                             const Edit& edit) {
  std::vector<std::string> floats;  // bounds of them
  if (edit.fp_avg_tol) floats.emplace_back("fp_avg_tol");
  if (edit.fp_max_tol) floats.emplace_back("fp_max_tol");
  if (edit.fp_abs_tol_frac) floats.emplace_back("fp_abs_tol_frac");
  std::vector<std::string> without_floats;
  std::vector<std::string> without_integers;
  const json::Value* ops = report.get("ops");
  for (const std::string& layer : layers) {
    const json::Value* entry = ops ? ops->get(layer) : nullptr;
    const ResultKinds kinds = entry ? kinds_in(*entry) : ResultKinds{};
    if (!kinds.known) continue;
    if (!kinds.floats && !floats.empty()) without_floats.push_back(layer);
    if (!kinds.integers && edit.int_tol) without_integers.push_back(layer);
  }
  std::string out;
  const auto add = [&out](const std::string& bounds, const std::vector<std::string>& of,
                          const char* kind) {
    if (of.empty()) return;
    out += bounds + " has no effect on " + std::to_string(of.size()) +
           " layer(s), since no result of them has " + kind + ": " + first_ten(of) + "\n";
  };
  add(base::join(floats), without_floats, "floats");
  add("int_tol", without_integers, "integers");
  return out;
}

std::string edit_lines(const json::Value& report, const std::vector<std::string>& layers,
                       const Edit& edit, const std::string& compiler_path) {
  std::string out;
  const std::string many = std::to_string(layers.size()) + " layer(s)";
  const bool one = layers.size() == 1;
  const json::Value* entry =
      one && report.get("ops") ? report.get("ops")->get(layers.front()) : nullptr;
  if (edit.executor) {
    out += "Updated recommended_executor for " +
           (one ? "'" + one_line(layers.front()) + "'" : many) + " to '" + *edit.executor + "'";
    if (says(report, edit, kByRule) && entry)
      out += " (now " + recommendation_in(*entry).value_or("null") + ")";
    out += "\n";
  }
  if (edit.has_bounds()) {
    if (one) {
      const json::Value* tolerance = entry ? entry->get("tolerance_used") : nullptr;
      out += "Updated tolerance for '" + one_line(layers.front()) + "' to " +
             (tolerance ? json::python_text(*tolerance) : std::string(kByRule)) + "\n";
    } else {
      out += "Updated tolerance for " + many + "\n";
    }
  }
  if (out.empty())
    return "No changes made: give --executor, or one of --tolerance-avg, --tolerance-max, "
           "--tolerance-abs-frac and --tolerance-int.\n";
  return out + "Updated compiler JSON: " + compiler_path + "\n";
}

std::string unplaced_lines(const json::Value& report, const std::vector<std::string>& layers) {
  struct Reason {
    std::string_view why;
    std::vector<std::string> ids;
  };
  Reason fused{"fused into their neighbours in the quantized model, so they have no place there",
               {}};
  Reason moved{"moved by the quantizer, so their place in the quantized model cannot be told", {}};
  Reason gone{"not in the model any more", {}};
  Reason without_line{"without a line in the imported module", {}};
  const json::Value* ops = report.get("ops");
  for (const std::string& layer : layers) {
    const json::Value* entry = ops ? ops->get(layer) : nullptr;
    if (!entry) continue;
    const auto marked = [entry](std::string_view key) {
      const json::Value* mark = entry->get(key);
      return mark && mark->flag() == true;
    };
    if (marked("_fused")) {
      fused.ids.push_back(layer);
    } else if (marked("_moved")) {
      moved.ids.push_back(layer);
    } else if (marked("_not_in_model")) {
      gone.ids.push_back(layer);
    } else if (!is_line_and_column(entry->get_text("mlir_location"))) {
      without_line.ids.push_back(layer);
    }
  }
  std::string out;
  for (const Reason& reason : {fused, moved, gone, without_line}) {
    if (reason.ids.empty()) continue;
    out.append("Note: ").append(std::to_string(reason.ids.size())).append(" layer(s) ");
    out.append(reason.why).append("; the compiler JSON does not name them: ");
    out.append(first_ten(reason.ids)).append("\n");
  }
  return out;
}

std::string list_layers(const json::Value& report, const std::string& filter) {
  std::vector<Op> ops = ops_of(report);
  if (ops.empty()) return "No layers found in config.\n";
  const std::size_t all = ops.size();
  std::vector<std::string> ids;
  for (const Op& op : ops) ids.push_back(op.id);
  const std::string wanted = lower(filter);
  std::erase_if(ops, [&](const Op& op) { return lower(op.id).find(wanted) == std::string::npos; });
  if (ops.empty())
    return "No layers match '" + filter + "'.\nAvailable layers: " + first_ten(ids) + "\n";
  std::string out =
      layer_table(overview(ops, executors_of(report), RowOrder::NodeIndex), Colour::No) +
      "\n\nTotal: " + std::to_string(ops.size()) + " layer(s)";
  if (!filter.empty()) out += " (filtered from " + std::to_string(all) + ")";
  return out + "\n";
}

}  // namespace layerfarm::coordinator::report
