#include "coordinator/report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "coordinator/report/compiler_map.h"
#include "coordinator/report/ops.h"
#include "coordinator/report/report_state.h"
#include "coordinator/report/texts.h"

namespace layerfarm::coordinator::report {
namespace {

/// A threshold of 10 % is not passed by 1.0 -> 1.1, whatever binary fractions make of it.
constexpr double kRounding = 1e-9;

using OpsById = std::unordered_map<std::string_view, const Op*>;

OpsById by_id(const std::vector<Op>& ops) {
  OpsById out;
  for (const Op& op : ops) out.emplace(op.id, &op);
  return out;
}

const OpResult* result_on(const Op& op, const std::string& executor) {
  const auto found =
      std::find_if(op.results.begin(), op.results.end(),
                   [&executor](const OpResult& result) { return result.executor == executor; });
  return found == op.results.end() ? nullptr : &*found;
}

/// Empty where there is no verdict; tables of reports read the word `unknown` of older tools so.
std::string status_of(const OpResult* result) {
  return result == nullptr || result->status == "unknown" ? "" : result->status;
}

void compare_times(const Op& a, const OpResult& before, const OpResult& after, Differences& out) {
  if (!before.runtime_ms || !after.runtime_ms) return;
  const double first = *before.runtime_ms;
  const double change = *after.runtime_ms - first;
  const double allowed = out.time_threshold_percent / 100 * std::abs(first);
  if (std::abs(change) <= allowed * (1 + kRounding)) return;
  const double percent = first == 0 ? std::copysign(std::numeric_limits<double>::infinity(), change)
                                    : change / std::abs(first) * 100;
  out.timings.push_back({a.id, before.executor, first, *after.runtime_ms, percent});
}

void compare_layers(const Op& a, const Op& b, const std::vector<std::string>& executors,
                    Differences& out) {
  ++out.compared;
  for (const std::string& executor : executors) {
    const OpResult* before = result_on(a, executor);
    const OpResult* after = result_on(b, executor);
    const std::string status_a = status_of(before);
    const std::string status_b = status_of(after);
    if (status_a != status_b) {
      auto& changes = status_a.empty() || status_b.empty() ? out.tested_once : out.verdicts;
      changes.push_back({a.id, executor, status_a, status_b});
    }
    if (before != nullptr && after != nullptr) compare_times(a, *before, *after, out);
  }
  if (a.recommended != b.recommended) out.choices.push_back({a.id, a.recommended, b.recommended});
}

/// Executors of the first, then those that only the second has.
std::vector<std::string> executors_of_both(const json::Value& a, const json::Value& b) {
  std::vector<std::string> out = executors_of(a);
  for (const std::string& name : executors_of(b)) {
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  }
  return out;
}

void compare_reports(const json::Value& a, const json::Value& b, Differences& out) {
  const std::vector<Op> ops_a = ops_of(a);
  const std::vector<Op> ops_b = ops_of(b);
  const OpsById in_a = by_id(ops_a);
  const OpsById in_b = by_id(ops_b);
  const std::vector<std::string> executors = executors_of_both(a, b);
  for (const Op& op : ops_a) {
    const auto found = in_b.find(op.id);
    if (found == in_b.end()) {
      out.only_in_a.push_back(op.id);
    } else {
      compare_layers(op, *found->second, executors, out);
    }
  }
  for (const Op& op : ops_b) {
    if (!in_a.contains(op.id)) out.only_in_b.push_back(op.id);
  }
}

std::optional<std::string> executor_in(const json::Value& assignment) {
  const std::string_view name = assignment.get_text("executor");
  return name.empty() ? std::nullopt : std::optional<std::string>(name);
}

void compare_assignments(const json::Object& a, const json::Object& b, Differences& out) {
  for (const json::Member& member : a) {
    const json::Value* other = b.find(member.key);
    if (other == nullptr) {
      out.only_in_a.push_back(member.key);
      continue;
    }
    ++out.compared;
    auto before = executor_in(member.value);
    auto after = executor_in(*other);
    if (before != after) out.choices.push_back({member.key, std::move(before), std::move(after)});
  }
  for (const json::Member& member : b) {
    if (!a.has(member.key)) out.only_in_b.push_back(member.key);
  }
}

void note_texts(std::string_view key, std::string_view what, const json::Value& a,
                const json::Value& b, std::vector<std::string>& notes) {
  const std::string_view in_a = a.get_text(key);
  const std::string_view in_b = b.get_text(key);
  if (!in_a.empty() && !in_b.empty() && in_a != in_b)
    notes.push_back(fmt::format("{} differ: {} (A), {} (B)", what, in_a, in_b));
}

/// Verdicts that were judged by other bounds are no change of what was measured.
void note_tolerances(const json::Value& a, const json::Value& b, std::vector<std::string>& notes) {
  const auto note = [&notes](const std::string& whose, const json::Value& in_a,
                             const json::Value& in_b) {
    notes.push_back(fmt::format("{} differ: {} (A), {} (B)", whose, json::python_text(in_a),
                                json::python_text(in_b)));
  };
  const json::Value* by_executor_a = a.get("_default_tolerances");
  const json::Value* by_executor_b = b.get("_default_tolerances");
  if (by_executor_a && by_executor_a->object() && by_executor_b) {
    for (const json::Member& member : *by_executor_a->object()) {
      const json::Value* other = by_executor_b->get(member.key);
      if (other && *other != member.value)
        note("tolerances of " + upper(member.key), member.value, *other);
    }
  } else if (const json::Value* in_a = a.get("default_tolerance"),
             *in_b = b.get("default_tolerance");
             in_a && in_b && *in_a != *in_b) {
    note("tolerances", *in_a, *in_b);
  }
  const json::Value* ops = a.get("ops");
  const json::Value* others = b.get("ops");
  if (!ops || !ops->object() || !others) return;
  std::vector<std::string> layers;
  const json::Value none;
  for (const json::Member& op : *ops->object()) {
    const json::Value* other = others->get(op.key);
    if (!other) continue;
    const json::Value* own_a = op.value.get("tolerance_used");
    const json::Value* own_b = other->get("tolerance_used");
    if ((own_a ? *own_a : none) != (own_b ? *own_b : none)) layers.push_back(op.key);
  }
  if (!layers.empty()) {
    notes.push_back(fmt::format("edited tolerances differ in {} layer(s): {}", layers.size(),
                                first_ten(layers)));
  }
}

std::vector<std::string> notes_on(const json::Value& a, const json::Value& b) {
  std::vector<std::string> notes;
  note_texts("model_name", "models", a, b, notes);
  note_texts("_chip", "chips", a, b, notes);
  const json::Value* settings_a = a.get("_settings");
  const json::Value* settings_b = b.get("_settings");
  if (settings_a != nullptr && settings_b != nullptr) {
    const std::string difference = settings_difference(*settings_a, *settings_b);
    if (!difference.empty()) notes.push_back("settings differ (A there, B here): " + difference);
  }
  note_tolerances(a, b, notes);
  return notes;
}

std::string shown(const std::string& status) { return status.empty() ? "-" : status; }
std::string shown(const std::optional<std::string>& choice) { return choice.value_or("-"); }

std::string percent_text(double percent) {
  return std::isinf(percent) ? (percent > 0 ? "from nothing" : "to nothing")
                             : fmt::format("{:+.1f} %", percent);
}

template <typename Items, typename Line>
std::string block(const std::string& title, const Items& items, Line line) {
  if (items.empty()) return "";
  std::string out = fmt::format("\n{}: {}\n", title, items.size());
  for (const auto& item : items) out += "  " + line(item) + "\n";
  return out;
}

json::Value text_or_null(const std::optional<std::string>& text) {
  return text ? json::Value(*text) : json::Value();
}
json::Value text_or_null(const std::string& text) {
  return text.empty() ? json::Value() : json::Value(text);
}

template <typename Items, typename ToValue>
json::Array array_of(const Items& items, ToValue to_value) {
  json::Array out;
  for (const auto& item : items) out.push_back(to_value(item));
  return out;
}

json::Value verdict_json(const VerdictChange& change) {
  json::Object out;
  out.set("layer_id", change.layer_id);
  out.set("executor", change.executor);
  out.set("a", text_or_null(change.a));
  out.set("b", text_or_null(change.b));
  return out;
}

json::Value timing_json(const TimingChange& change) {
  json::Object out;
  out.set("layer_id", change.layer_id);
  out.set("executor", change.executor);
  out.set("a_ms", change.a_ms);
  out.set("b_ms", change.b_ms);
  out.set("percent", change.percent);
  return out;
}

}  // namespace

std::size_t Differences::count() const {
  return verdicts.size() + tested_once.size() + choices.size() + timings.size() + only_in_a.size() +
         only_in_b.size();
}

base::Result<FileKind> kind_of(const json::Value& file, const std::string& name) {
  if (is_compiler_file(file)) return FileKind::Compiler;
  if (file.get("ops") != nullptr) return FileKind::Report;
  return base::fail(base::ErrorCode::InvalidInput,
                    name +
                        " is neither a report (no 'ops') nor a compiler file (no "
                        "'op_assignments')");
}

base::Result<Differences> compare(const json::Value& a, const json::Value& b,
                                  double time_threshold_percent) {
  const auto kind_a = kind_of(a, "A");
  if (!kind_a) return base::fail(kind_a.error());
  const auto kind_b = kind_of(b, "B");
  if (!kind_b) return base::fail(kind_b.error());
  if (*kind_a != *kind_b) {
    const bool first = *kind_a == FileKind::Report;
    return base::fail(
        base::ErrorCode::InvalidInput,
        fmt::format("A is a {} and B a {}: name two files of one kind",
                    first ? "report" : "compiler file", first ? "compiler file" : "report"));
  }
  Differences out;
  out.kind = *kind_a;
  out.time_threshold_percent = time_threshold_percent;
  out.notes = notes_on(a, b);
  if (out.kind == FileKind::Report) {
    compare_reports(a, b, out);
    return out;
  }
  const json::Object none;
  const auto assignments = [&none](const json::Value& file) -> const json::Object& {
    const json::Object* found = file.get("op_assignments")->object();
    return found != nullptr ? *found : none;
  };
  compare_assignments(assignments(a), assignments(b), out);
  return out;
}

std::string compare_text(const Differences& differences, const ComparedNames& names) {
  const bool report = differences.kind == FileKind::Report;
  const std::string unit = report ? "layer(s)" : "assignment(s)";
  std::string out = "A: " + names.a + "\nB: " + names.b + "\n";
  for (const std::string& note : differences.notes) out += "Note: " + note + "\n";
  const auto verdict = [](const VerdictChange& change) {
    return fmt::format("{} on {}: {} -> {}", one_line(change.layer_id), upper(change.executor),
                       shown(change.a), shown(change.b));
  };
  const auto same = [](const std::string& id) { return one_line(id); };
  out += block("Verdicts that changed", differences.verdicts, verdict);
  out += block("Tested in one of them only", differences.tested_once, verdict);
  out += block(report ? "Recommendations that changed" : "Assignments that changed",
               differences.choices, [](const ChoiceChange& change) {
                 return fmt::format("{}: {} -> {}", one_line(change.layer_id), shown(change.a),
                                    shown(change.b));
               });
  out += block(
      fmt::format("Run times that changed by more than {} %", differences.time_threshold_percent),
      differences.timings, [](const TimingChange& change) {
        return fmt::format("{} on {}: {} ms -> {} ms ({})", one_line(change.layer_id),
                           upper(change.executor), json::float_text(change.a_ms),
                           json::float_text(change.b_ms), percent_text(change.percent));
      });
  out += block(report ? "Layers only in A" : "Assignments only in A", differences.only_in_a, same);
  out += block(report ? "Layers only in B" : "Assignments only in B", differences.only_in_b, same);
  const std::size_t count = differences.count();
  if (count == 0) return out + fmt::format("\nNo difference: {} {}\n", differences.compared, unit);
  return out +
         fmt::format("\n{} difference(s); {} {} in both\n", count, differences.compared, unit);
}

json::Value compare_json(const Differences& differences, const ComparedNames& names) {
  const auto same = [](const std::string& text) { return json::Value(text); };
  const bool report = differences.kind == FileKind::Report;
  json::Object out;
  out.set("a", names.a);
  out.set("b", names.b);
  out.set("kind", report ? "report" : "compiler");
  out.set("same", differences.count() == 0);
  out.set("compared", static_cast<std::int64_t>(differences.compared));
  out.set("notes", array_of(differences.notes, same));
  if (report) {
    out.set("time_threshold_percent", differences.time_threshold_percent);
    out.set("verdicts", array_of(differences.verdicts, verdict_json));
    out.set("tested_once", array_of(differences.tested_once, verdict_json));
    out.set("timings", array_of(differences.timings, timing_json));
  }
  out.set(report ? "recommendations" : "assignments",
          array_of(differences.choices, [report](const ChoiceChange& change) {
            json::Object one;
            one.set(report ? "layer_id" : "location", change.layer_id);
            one.set("a", text_or_null(change.a));
            one.set("b", text_or_null(change.b));
            return json::Value(std::move(one));
          }));
  out.set("only_in_a", array_of(differences.only_in_a, same));
  out.set("only_in_b", array_of(differences.only_in_b, same));
  return out;
}

}  // namespace layerfarm::coordinator::report
