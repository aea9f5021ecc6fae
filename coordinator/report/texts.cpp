#include "coordinator/report/texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "coordinator/report/case_result.h"

namespace layerfarm::coordinator::report {
namespace {

constexpr std::size_t kLongestLayerColumn = 60;
constexpr std::string_view kCutMark = "\u2026";  ///< one character: an ellipsis
constexpr std::size_t kStatusColumn = 12;
constexpr std::size_t kRuleBeyondColumns = 25;
constexpr std::size_t kRefusalsShown = 20;
constexpr std::size_t kLongestReason = 160;

/// Characters, so that columns line up for names beyond ASCII too.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

std::string cut(std::string_view text, std::size_t characters) {
  std::size_t end = 0;
  while (end < text.size() && characters > 0) {
    ++end;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) ++end;
    --characters;
  }
  return std::string(text.substr(0, end));
}

/// The last characters.
std::string last(std::string_view text, std::size_t characters) {
  const std::size_t all = width(text);
  return std::string(text.substr(cut(text, all - std::min(all, characters)).size()));
}

void pad(std::string& line, std::string_view text, std::size_t columns) {
  line += text;
  const std::size_t used = width(text);
  if (used < columns) line.append(columns - used, ' ');
}

std::string_view colour_of(std::string_view status) {
  if (status == "success") return "\033[32m";
  if (status == "difference") return "\033[33m";
  if (status == "error") return "\033[31m";
  return "";
}

/// The word in its colour; spaces up to `columns` are counted on the plain word.
void pad_status(std::string& line, std::string_view status, std::size_t columns, Colour colour) {
  const std::string_view start = colour == Colour::Yes ? colour_of(status) : "";
  line += start;
  line += status;
  if (!start.empty()) line += "\033[0m";
  if (status.size() < columns) line.append(columns - status.size(), ' ');
}

std::string number(std::uint64_t n) { return std::to_string(n); }

std::string status_block(const Summary& summary, Colour colour) {
  std::string out = "Status Summary:";
  const std::pair<std::string_view, std::size_t> counts[] = {
      {"success", summary.success}, {"difference", summary.difference}, {"error", summary.error}};
  for (const auto& [status, count] : counts) {
    out += "\n  ";
    pad_status(out, status, 0, colour);
    out += ": " + number(count);
  }
  return out;
}

std::string distribution_block(const Summary& summary) {
  std::string out = "First Working Executor Distribution:";
  for (const ExecutorSummary& executor : summary.executors) {
    out += "\n  " + upper(executor.executor) + ": " + number(executor.first_working);
  }
  return out;
}

std::string index_text(std::optional<std::int64_t> index) {
  return index ? std::to_string(*index) : "None";
}

std::string critical_block(const Overview& overview) {
  if (overview.critical.empty())
    return "No critical failures - all layers have at least one working executor";
  std::string out =
      "CRITICAL: " + number(overview.critical.size()) + " layer(s) with ALL executors ERRORS\n";
  for (const CriticalFailure& failure : overview.critical) {
    out +=
        "\n  - " + one_line(failure.layer_id) + " (node: " + index_text(failure.node_index) + ")";
  }
  return out;
}

std::string critical_details(const Overview& overview) {
  std::string out = "CRITICAL FAILURES: " + number(overview.critical.size()) +
                    " layers with ALL executors ERRORS\n\n" +
                    "These layers cannot run on any executor that was tested.\n";
  std::size_t place = 0;
  for (const CriticalFailure& failure : overview.critical) {
    const std::string location = one_line(failure.location.value_or("N/A"));
    out += fmt::format(
        "\n  {}. Layer: {}\n     Node index: {}\n     MLIR location: {}\n     Full MLIR location: "
        "{}\n"
        "     Executor errors:\n",
        ++place, one_line(failure.layer_id), index_text(failure.node_index), location, location);
    for (const OpResult& error : failure.errors) {
      out += fmt::format("       - {}: {} - {}", upper(error.executor), error.status,
                         cut_diagnostic(error.failure_report.get_text("summary")));
      // The summary of a failed run does not say why.
      if (!error.failure_report.get_text("_text").empty())
        out += " (" + reason_line(error.failure_report) + ")";
      out += "\n";
    }
  }
  return out;
}

}  // namespace

std::string upper(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

std::string one_line(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const auto code = static_cast<unsigned char>(c);
    if (code >= 0x20 && code != 0x7f) {
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += fmt::format("\\x{:02x}", code);
    }
  }
  return out;
}

std::vector<std::string> column_names(const std::vector<std::string>& names, std::size_t columns) {
  std::vector<std::string> out;
  out.reserve(names.size());
  std::unordered_map<std::string, std::size_t> shown;  // how often
  for (const std::string& name : names) {
    out.push_back(width(name) <= columns ? name : cut(name, columns - 1) + std::string(kCutMark));
    ++shown[out.back()];
  }
  std::unordered_map<std::string, std::size_t> before;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (shown[out[i]] == 1 || width(names[i]) <= columns) continue;
    const std::size_t tail = (columns - 1) / 2;
    std::string name =
        cut(names[i], columns - 1 - tail) + std::string(kCutMark) + last(names[i], tail);
    // Equal at both ends: a number parts them.
    if (const std::size_t other = ++before[name]; other > 1) {
      const std::string count = std::string(kCutMark) + std::to_string(other);
      name = cut(name, columns - width(count)) + count;
    }
    out[i] = std::move(name);
  }
  return out;
}

std::string whole_model_block(const WholeModel& whole_model) {
  std::string out = "--- Full Model Comparison ---";
  if (whole_model.max_rel_diff)
    out += "\n  Max relative difference: " + json::float_text(*whole_model.max_rel_diff);
  if (whole_model.max_abs_diff)
    out += "\n  Max absolute difference: " + json::float_text(*whole_model.max_abs_diff);
  if (whole_model.differences) {
    out += "\n  " + count_line(whole_model.differences->first, whole_model.differences->second);
  }
  return out;
}

std::string reason_line(const json::Value& failure_report) {
  constexpr std::string_view kSetup = "Fixture/setup failed: ";
  constexpr std::string_view kRun = ": Test execution failed";
  std::string_view text = failure_report.get_text("summary");
  std::string out;
  if (const std::string_view said = failure_report.get_text("_text");
      !said.empty() && text.ends_with(kRun)) {
    // How the run ended, unless the tool just said no.
    const std::string_view how = text.substr(0, text.size() - kRun.size());
    if (how != "ToolError" && !said.starts_with(how)) out = std::string(how) + ": ";
    text = said;
  } else if (text.starts_with(kSetup)) {
    text.remove_prefix(kSetup.size());
  }
  std::string_view shown = first_line(text);
  // Of "Error invoking tool" and "Diagnostics:" the line with the error in it tells more; of a
  // traceback no line of the program does.
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = first_line(rest);
    if (line.starts_with("Traceback (")) break;
    if (const std::size_t at = line.find("error: "); at != std::string_view::npos) {
      shown = line.substr(at + 7);
      break;
    }
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return cut(out.append(shown), kLongestReason);
}

std::string layer_table(const Overview& overview, Colour colour) {
  std::string out = "Per-Layer Status:";
  if (overview.rows.empty()) return out + "\n  (no layers)";
  std::vector<std::string> names;
  names.reserve(overview.rows.size());
  for (const Row& row : overview.rows) names.push_back(one_line(row.layer_id));
  names = column_names(names, kLongestLayerColumn);
  std::size_t longest = 0;
  for (const std::string& name : names) longest = std::max(longest, width(name));

  out += "\n  ";
  pad(out, "Layer", longest);
  out += "  ";
  for (const std::string& executor : overview.executors) {
    pad(out, upper(executor), kStatusColumn);
    out += ' ';
  }
  out += "Recommended\n";
  out.append(longest + kStatusColumn * overview.executors.size() + kRuleBeyondColumns, '-');
  for (std::size_t i = 0; i < overview.rows.size(); ++i) {
    const Row& row = overview.rows[i];
    out += "\n  ";
    pad(out, names[i], longest);
    out += "  ";
    for (const std::string& status : row.statuses) {
      pad_status(out, status, kStatusColumn, colour);
      out += ' ';
    }
    out += row.recommended;
  }
  return out;
}

std::string first_ten(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == 10) return out + "...";
    out.append(out.empty() ? "" : ", ").append(one_line(names[i]));
  }
  return out;
}

std::string final_report_text(const std::string& model_name, const Overview& overview,
                              const std::optional<WholeModel>& whole_model) {
  std::string out = "FINAL EXECUTOR DISCOVERY REPORT\n\nModel: " + one_line(model_name) +
                    "\nTotal layers tested: " + number(overview.summary.total_layers) + "\n\n" +
                    status_block(overview.summary, Colour::No) + "\n\n" +
                    distribution_block(overview.summary) + "\n\n" + critical_block(overview) +
                    "\n\n";
  if (whole_model) out += whole_model_block(*whole_model) + "\n\n";
  return out + layer_table(overview, Colour::No);
}

std::string end_report(const EndReport& report, Colour colour) {
  const Overview& overview = *report.overview;
  if (overview.rows.empty() && !report.whole_model) return "";
  const std::string rule(80, '=');
  std::string out = "\n\n" + rule + "\nFINAL EXECUTOR DISCOVERY REPORT\n" + rule +
                    "\n\nModel: " + one_line(report.model_name) +
                    "\nTotal layers tested: " + number(overview.summary.total_layers) +
                    "\nOutput file: " + report.report_path + "\n\n--- Status Summary ---\n" +
                    status_block(overview.summary, colour) +
                    "\n\n--- First Working Executor Distribution ---\n" +
                    distribution_block(overview.summary) + "\n\n";
  if (overview.critical.empty()) {
    out += "--- No Critical Failures ---\nAll layers have at least one working executor.\n";
  } else {
    out += critical_details(overview);
  }
  if (report.whole_model) out += "\n" + whole_model_block(*report.whole_model) + "\n";
  return out + "\n--- Per-Layer Detailed Status ---\n" + layer_table(overview, colour) + "\n\n";
}

// ---- placement ----

namespace {

struct Share {
  std::uint64_t layers = 0;
  std::int64_t macs = 0;
  double ms = 0;
  std::uint64_t timed = 0;
};

std::string percent_of(std::int64_t part, std::int64_t whole) {
  if (whole <= 0) return "";
  return " (" + std::to_string(part * 100 / whole) + "%)";
}

std::string share_line(const std::string& name, const Share& share, std::int64_t all_macs) {
  std::string out = "  " + name + ": " + number(share.layers) + " layer(s), " +
                    std::to_string(share.macs) + " MACs" + percent_of(share.macs, all_macs);
  if (share.timed > 0) {
    out += ", " + json::float_text(round3(share.ms)) + " ms";
    if (share.timed < share.layers) out += " (" + number(share.timed) + " timed)";
  }
  return out + "\n";
}

std::string refusal_lines(const std::vector<Op>& ops, const std::vector<std::string>& executors) {
  // (executor's place, op type, reason) -> layers; a map, so that the order is that of its key
  std::map<std::tuple<std::size_t, std::string, std::string>, std::uint64_t> refusals;
  for (const Op& op : ops) {
    for (const OpResult& result : op.results) {
      if (result.status != "error") continue;
      const auto place =
          std::find(executors.begin(), executors.end(), result.executor) - executors.begin();
      ++refusals[{static_cast<std::size_t>(place), op_type_of(op.id),
                  reason_line(result.failure_report)}];
    }
  }
  if (refusals.empty()) return "";
  std::string out = "Refused:\n";
  std::size_t shown = 0;
  for (const auto& [key, layers] : refusals) {
    if (shown == kRefusalsShown) {
      out += "  ... and " + number(refusals.size() - shown) + " more\n";
      break;
    }
    ++shown;
    const auto& [place, op_type, reason] = key;
    const std::string name = place < executors.size() ? upper(executors[place]) : "?";
    out += fmt::format("  {} on {} ({} layer(s)): {}\n", one_line(op_type), name, layers,
                       one_line(reason));
  }
  return out;
}

std::string evidence_line(const PlacementFacts& facts) {
  if (facts.evidence.empty()) return "";
  std::string out = "Evidence:";
  for (const auto& [executor, word] : facts.evidence) {
    out += (out.back() == ':' ? " " : ", ") + upper(executor) + " " + word;
    const bool same = std::find(facts.same_engine.begin(), facts.same_engine.end(), executor) !=
                      facts.same_engine.end();
    if (same) out += " (same engine as the reference)";
  }
  return out + "\n";
}

}  // namespace

std::string placement_summary(const std::vector<Op>& ops, const std::vector<std::string>& executors,
                              const PlacementFacts& facts) {
  const std::unordered_map<std::string, std::int64_t> macs(facts.macs.begin(), facts.macs.end());
  std::map<std::string, Share> shares;
  Share none;
  std::int64_t all_macs = 0;
  for (const Op& op : ops) {
    const auto found = macs.find(op.id);
    const std::int64_t layer_macs = found == macs.end() ? 0 : found->second;
    all_macs += layer_macs;
    Share& share = op.recommended ? shares[*op.recommended] : none;
    ++share.layers;
    share.macs += layer_macs;
    for (const OpResult& result : op.results) {
      if (!op.recommended || result.executor != *op.recommended || !result.runtime_ms) continue;
      share.ms += *result.runtime_ms;
      ++share.timed;
    }
  }
  std::string out = "--- Placement" + (facts.chip.empty() ? "" : " on " + facts.chip) + " ---\n";
  for (const std::string& executor : executors)
    out += share_line(upper(executor), shares[executor], all_macs);
  if (none.layers > 0) out += share_line("no executor", none, all_macs);
  out += refusal_lines(ops, executors) + evidence_line(facts);
  if (!facts.reference.empty()) out += "Reference: " + facts.reference + "\n";
  if (!facts.tools.empty()) {
    out += "Tools:";
    for (const auto& [name, version] : facts.tools) {
      out += fmt::format("{}{} {}", out.back() == ':' ? " " : ", ", name, version);
    }
    out += "\n";
  }
  out += "Results: " + number(facts.fresh) + " fresh, " + number(facts.stored) + " from the store";
  if (facts.timed > 0) out += ", " + number(facts.timed) + " timed";
  if (facts.unsettled > 0) out += ", " + number(facts.unsettled) + " unsettled";
  return out + "\n";
}

}  // namespace layerfarm::coordinator::report
