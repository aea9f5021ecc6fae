#include "coordinator/report/view_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "coordinator/report/ops.h"
#include "coordinator/report/whole_report.h"

namespace layerfarm::coordinator::report {
namespace {

constexpr std::size_t kSummaryShown = 70;

/// As Python prints it: a text as itself, all else by its repr.
std::string shown(const json::Value& value) {
  return value.text() ? *value.text() : json::python_text(value);
}

std::string member_or(const json::Value& object, std::string_view key,
                      const std::string& otherwise) {
  const json::Value* member = object.get(key);
  return member && !member->is_null() ? shown(*member) : otherwise;
}

/// "4.125ms"; "N/A" where it is null, missing or NaN.
std::string ms_text(const json::Value& object, std::string_view key) {
  return object.get_number(key) ? shown(*object.get(key)) + "ms" : "N/A";
}

std::string cut_summary(const std::string& text) {
  std::size_t end = 0;
  for (std::size_t characters = 0; end < text.size() && characters < kSummaryShown; ++characters) {
    ++end;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) ++end;
  }
  return end == text.size() ? text : text.substr(0, end) + "...";
}

std::string timing_block(const json::Value& summary) {
  const json::Value* timings = summary.get("timing_summary");
  if (!timings || !timings->object() || timings->object()->empty()) return "";
  std::string out = "\nTIMING SUMMARY (average runtime):\n";
  for (const json::Member& timing : *timings->object()) {
    out += "  " + upper(timing.key) + ": " + ms_text(timing.value, "avg_ms") +
           " (min: " + ms_text(timing.value, "min_ms") +
           ", max: " + ms_text(timing.value, "max_ms") +
           ", samples: " + member_or(timing.value, "samples", "N/A") + ")\n";
  }
  return out;
}

std::string critical_block(const json::Value& report, const Overview& overview) {
  std::size_t count = 0;
  std::string lines;
  const json::Value* stored = report.get("discovery_report");
  const json::Value* failures = stored ? stored->get("critical_failures") : nullptr;
  if (failures && failures->array()) {
    for (const json::Value& failure : *failures->array()) {
      ++count;
      lines += "  - " + one_line(member_or(failure, "layer_id", "unknown")) +
               " (node: " + member_or(failure, "node_index", "None") + ")\n";
    }
  } else {
    for (const CriticalFailure& failure : overview.critical) {
      ++count;
      lines += "  - " + one_line(failure.layer_id) +
               " (node: " + (failure.node_index ? std::to_string(*failure.node_index) : "None") +
               ")\n";
    }
  }
  return "\nCRITICAL FAILURES (all executors error): " + std::to_string(count) + "\n" + lines;
}

std::string object_block(const json::Value& report, std::string_view key, std::string_view title) {
  const json::Value* object = report.get(key);
  if (!object || !object->object()) return "";
  std::string out = "\n" + std::string(title) + "\n";
  for (const json::Member& member : *object->object())
    out += "  " + member.key + ": " + shown(member.value) + "\n";
  return out;
}

std::string unsettled_block(const json::Value& report) {
  const json::Value* unsettled = report.get("_unsettled");
  if (!unsettled || !unsettled->object() || unsettled->object()->empty()) return "";
  std::string out = "\nUNSETTLED (no verdict; run again):\n";
  for (const json::Member& layer : *unsettled->object()) {
    if (!layer.value.object()) continue;
    for (const json::Member& reason : *layer.value.object()) {
      out += "  " + one_line(layer.key) + " on " + upper(reason.key) + ": " + shown(reason.value) +
             "\n";
    }
  }
  return out;
}

std::string last_run_block(const json::Value& report) {
  const json::Value* whole = report.get("_whole_model");
  if (!whole || !whole->object()) return "";
  return "\nLAST RUN OF THE WHOLE MODEL: " + last_run_text(*whole) + "\n";
}

/// Lines of one executor in the view of a layer.
std::string result_lines(const json::Value& result) {
  std::string out;
  if (const json::Value* diff = result.get("max_diff"); diff && !diff->is_null())
    out += "    Max Diff: " + shown(*diff) + "\n";
  if (const json::Value* failure = result.get("failure_report"); failure && failure->object()) {
    if (failure->get("type")) out += "    Type: " + member_or(*failure, "type", "") + "\n";
    if (failure->get("summary"))
      out += "    Summary: " + cut_summary(member_or(*failure, "summary", "")) + "\n";
    if (!failure->get_text("_text").empty()) out += "    Reason: " + reason_line(*failure) + "\n";
  }
  if (const json::Value* used = result.get("tolerance_used"); used && !used->is_null()) {
    out += "    Tolerance: " + shown(*used) + "\n";
  }
  if (const json::Value* timing = result.get("timing"); timing && timing->object()) {
    if (timing->get_number("runtime_ms"))
      out += "    Runtime: " + ms_text(*timing, "runtime_ms") + "\n";
    const json::Value* runs = timing->get("runs");
    if (runs && runs->number().value_or(0) > 1) out += "    Runs: " + shown(*runs) + "\n";
  }
  return out;
}

/// Keys of ours in `value` that nothing else shows, a line each.
std::string other_marks(const json::Value& value, std::string_view indent,
                        std::initializer_list<std::string_view> shown_elsewhere) {
  std::string out;
  if (!value.object()) return out;
  for (const json::Member& member : *value.object()) {
    if (member.key.empty() || member.key.front() != '_' ||
        std::find(shown_elsewhere.begin(), shown_elsewhere.end(), member.key) !=
            shown_elsewhere.end())
      continue;
    out.append(indent).append(member.key).append(": ").append(shown(member.value)).append("\n");
  }
  return out;
}

/// Keys of ours in a result, for people who want to know what the verdict rests on.
std::string mark_lines(const json::Value& report, const std::string& executor,
                       const json::Value& result) {
  std::string out;
  const json::Value* evidence = result.get("_evidence");
  if (!evidence && report.get("_evidence")) evidence = report.get("_evidence")->get(executor);
  if (evidence) out += "    Evidence: " + shown(*evidence) + "\n";
  return out + other_marks(result, "    ", {"_evidence"});
}

}  // namespace

bool is_unfinished(const json::Value& report) {
  return report.get("_chip") && !report.get("discovery_report");
}

std::string some_layers(const json::Value& report) {
  const json::Value* ops = report.get("ops");
  if (!ops || !ops->object()) return "";
  std::vector<std::string> ids;
  for (const json::Member& op : *ops->object()) ids.push_back(op.key);
  return first_ten(ids);
}

std::string view_summary(const json::Value& report, Colour colour) {
  const std::string rule(80, '=');
  const std::vector<Op> ops = ops_of(report);
  const Overview all = overview(ops, executors_of(report), RowOrder::NodeIndex);
  std::string out = rule + "\nMODEL: " + one_line(member_or(report, "model_name", "unknown")) +
                    "\n" + rule + "\n" + last_run_block(report) + "\nSTATUS COUNTS:\n";
  const json::Value* stored = report.get("discovery_report");
  const json::Value* summary = stored ? stored->get("summary") : nullptr;
  const json::Value* counts = summary ? summary->get("status_counts") : nullptr;
  if (counts && counts->object()) {
    for (const json::Member& count : *counts->object())
      out += "  " + count.key + ": " + shown(count.value) + "\n";
  }
  if (summary) out += timing_block(*summary);
  out += critical_block(report, all);
  out += unsettled_block(report);
  out += "\n" + layer_table(all, colour) + "\n\nDEFAULT TOLERANCE:\n";
  if (const json::Value* tolerance = report.get("default_tolerance");
      tolerance && tolerance->object()) {
    for (const json::Member& bound : *tolerance->object())
      out += "  " + bound.key + ": " + shown(bound.value) + "\n";
  }
  return out + object_block(report, "_evidence", "EVIDENCE:") + "\n" + rule + "\n";
}

std::optional<std::string> view_layer(const json::Value& report, std::string_view layer_id) {
  const json::Value* ops = report.get("ops");
  const json::Value* entry = ops ? ops->get(layer_id) : nullptr;
  if (!entry) return std::nullopt;
  std::string out = "\nLAYER: " + one_line(layer_id) + "\n" + std::string(80, '=') +
                    "\n\nNode Index: " + member_or(*entry, "_node_index", "N/A") +
                    "\nMLIR Location: " + one_line(member_or(*entry, "mlir_location", "N/A")) +
                    "\nRecommended Executor: " + recommendation_in(*entry).value_or("None") + "\n" +
                    other_marks(*entry, "", {"_node_index", "_orig_index"}) +
                    "\nExecutor Results:\n";
  const json::Value* tested = entry->get("executors");
  const json::Value nothing;
  for (const std::string& executor : executors_of(report)) {
    const json::Value* found = tested ? tested->get(executor) : nullptr;
    const json::Value& result = found ? *found : nothing;
    out += "\n  [" + upper(executor) + "]: " + member_or(result, "status", "unknown");
    const json::Value* timing = result.get("timing");
    if (timing && timing->get_number("runtime_ms"))
      out += " (" + ms_text(*timing, "runtime_ms") + ")";
    out += "\n" + result_lines(result);
    if (found) out += mark_lines(report, executor, result);
  }
  return out;
}

std::string view_compiler(const json::Value& file) {
  const std::string rule(60, '=');
  const json::Value* assignments = file.get("op_assignments");
  const json::Object none;
  const json::Object& ops = assignments && assignments->object() ? *assignments->object() : none;
  std::string out = rule + "\nMODEL: " + member_or(file, "model_name", "unknown") +
                    "  (compiler format)\n" + rule +
                    "\n\nTotal assignments: " + std::to_string(ops.size()) + "\n";
  if (ops.empty()) return out;

  std::vector<std::pair<std::string, std::string>> sorted;
  std::map<std::string, std::size_t> counts;
  std::vector<std::string> order = {"nss", "css", "host"};
  for (const json::Member& op : ops) {
    const std::string executor = member_or(op.value, "executor", "unknown");
    sorted.emplace_back(op.key, executor);
    ++counts[executor];
    if (std::find(order.begin(), order.end(), executor) == order.end()) order.push_back(executor);
  }
  std::sort(sorted.begin(), sorted.end());
  out += "\nExecutor distribution:\n";
  for (const std::string& executor : order) {
    if (counts.contains(executor))
      out += "  " + upper(executor) + ": " + std::to_string(counts[executor]) + "\n";
  }
  out += "\nAssignments:\n";
  for (const auto& [location, executor] : sorted) {
    out += fmt::format("  {} → {}\n", one_line(location), one_line(executor));
  }
  return out + "\n";
}

}  // namespace layerfarm::coordinator::report
