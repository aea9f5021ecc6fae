#include "coordinator/report/ops.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <tuple>

namespace layerfarm::coordinator::report {
namespace {

constexpr std::string_view kClassicExecutors[] = {"nss", "css", "host"};
constexpr std::string_view kClassicChip = "SL2610";

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const json::Object* member_object(const json::Value& value, std::string_view key) {
  const json::Value* member = value.get(key);
  return member ? member->object() : nullptr;
}

std::optional<std::int64_t> member_integer(const json::Value& value, std::string_view key) {
  const json::Value* member = value.get(key);
  return member ? member->integer() : std::nullopt;
}

const OpResult* result_on(const Op& op, std::string_view executor) {
  for (const OpResult& result : op.results) {
    if (result.executor == executor) return &result;
  }
  return nullptr;
}

json::Value integer(std::size_t number) { return json::Value(static_cast<std::int64_t>(number)); }

void sort_ops(std::vector<const Op*>& ops, RowOrder order) {
  static constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  const auto key = [order](const Op* op) {
    return order == RowOrder::OrigIndex
               ? std::tuple(op->orig_index.value_or(kLast), op->node_index.value_or(kLast))
               : std::tuple(op->node_index.value_or(kLast), std::int64_t{0});
  };
  std::stable_sort(ops.begin(), ops.end(),
                   [&](const Op* a, const Op* b) { return key(a) < key(b); });
}

void count(const Op& op, Summary& summary) {
  ++summary.total_layers;
  for (const OpResult& result : op.results) {
    if (result.status == "success") ++summary.success;
    if (result.status == "difference") ++summary.difference;
    if (result.status == "error") ++summary.error;
  }
  for (ExecutorSummary& executor : summary.executors) {
    const OpResult* result = result_on(op, executor.executor);
    if (result && result->status == "success") {
      ++executor.first_working;
      break;
    }
  }
  for (ExecutorSummary& executor : summary.executors) {
    const OpResult* result = result_on(op, executor.executor);
    if (!result || !result->runtime_ms) continue;
    const double ms = *result->runtime_ms;
    if (!executor.timing) executor.timing = TimingSummary{0, ms, ms, 0};
    TimingSummary& timing = *executor.timing;
    timing.avg_ms += ms;  // the sum until all are counted
    timing.min_ms = std::min(timing.min_ms, ms);
    timing.max_ms = std::max(timing.max_ms, ms);
    ++timing.samples;
  }
}

std::optional<std::string> fastest(std::span<const Candidate> candidates, std::string_view status) {
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates) {
    if (candidate.status != status || !candidate.runtime_ms) continue;
    if (!best || *candidate.runtime_ms < *best->runtime_ms) best = &candidate;
  }
  return best ? std::optional(std::string(best->executor)) : std::nullopt;
}

std::optional<std::string> first(std::span<const Candidate> candidates, std::string_view status) {
  for (const Candidate& candidate : candidates) {
    if (candidate.status == status) return std::string(candidate.executor);
  }
  return std::nullopt;
}

std::optional<double> runtime_in(const json::Value& result) {
  const json::Value* timing = result.get("timing");
  const json::Value* runtime = timing ? timing->get("runtime_ms") : nullptr;
  return runtime ? runtime->number() : std::nullopt;
}

}  // namespace

std::vector<std::string> chip_executors_of(const json::Value& report) {
  std::vector<std::string> names;
  if (const json::Value* listed = report.get("_executors"); listed && listed->array()) {
    for (const json::Value& name : *listed->array()) {
      if (name.text() && !contains(names, *name.text())) names.push_back(*name.text());
    }
  }
  if (names.empty()) names.assign(std::begin(kClassicExecutors), std::end(kClassicExecutors));
  return names;
}

std::vector<std::string> executors_of(const json::Value& report) {
  std::vector<std::string> names = chip_executors_of(report);
  if (const json::Object* ops = member_object(report, "ops")) {
    for (const json::Member& op : *ops) {
      const json::Object* tested = member_object(op.value, "executors");
      if (!tested) continue;
      for (const json::Member& result : *tested) {
        if (!contains(names, result.key)) names.push_back(result.key);
      }
    }
  }
  return names;
}

std::string chip_of(const json::Value& report, const domain::ChipSpec& ours) {
  const std::string_view named = report.get_text("_chip");
  const json::Object* entries = member_object(report, "ops");
  if (!named.empty() || !entries) return std::string(named);
  const auto is_classic = [](std::string_view name) {
    return std::find(std::begin(kClassicExecutors), std::end(kClassicExecutors), name) !=
           std::end(kClassicExecutors);
  };
  bool foreign = false;
  for (const json::Member& entry : *entries) {
    const json::Object* tested = member_object(entry.value, "executors");
    if (!tested) continue;
    for (const json::Member& result : *tested) {
      if (!is_classic(result.key)) return {};
      foreign = foreign || ours.executor(result.key) == nullptr;
    }
  }
  const bool ours_is_classic =
      std::all_of(ours.executors.begin(), ours.executors.end(),
                  [&](const domain::ExecutorSpec& executor) { return is_classic(executor.name); });
  return foreign && !ours_is_classic ? std::string(kClassicChip) : std::string();
}

std::vector<Op> ops_of(const json::Value& report) {
  std::vector<Op> ops;
  const json::Object* entries = member_object(report, "ops");
  if (!entries) return ops;
  ops.reserve(entries->size());
  for (const json::Member& entry : *entries) {
    Op op;
    op.id = entry.key;
    const json::Value* gone = entry.value.get("_not_in_model");
    if (!(gone && gone->flag() ==
                      true)) {  // else its indices are those of another model, and it comes last
      op.node_index = member_integer(entry.value, "_node_index");
      op.orig_index = member_integer(entry.value, "_orig_index");
    }
    if (const json::Value* location = entry.value.get("mlir_location");
        location && location->text()) {
      op.location = *location->text();
    }
    op.recommended = recommendation_in(entry.value);
    if (const json::Object* tested = member_object(entry.value, "executors")) {
      for (const json::Member& result : *tested) {
        const json::Value* failure = result.value.get("failure_report");
        op.results.push_back({result.key, std::string(result.value.get_text("status")),
                              runtime_in(result.value), failure ? *failure : json::Value()});
      }
    }
    ops.push_back(std::move(op));
  }
  return ops;
}

std::optional<std::string> recommendation_in(const json::Value& entry) {
  const std::string_view name = entry.get_text("recommended_executor");
  if (name.empty() || name == "null") return std::nullopt;
  return std::string(name);
}

std::string op_type_of(std::string_view layer_id) {
  const bool upper = std::all_of(layer_id.begin(), layer_id.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  const std::size_t last = layer_id.rfind('_');
  if (upper && last != std::string_view::npos && last + 1 < layer_id.size() && last > 0) {
    const std::string_view tail = layer_id.substr(last + 1);
    if (std::all_of(tail.begin(), tail.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      return std::string(layer_id.substr(0, last));
    }
  }
  return std::string(layer_id.substr(0, layer_id.find('_')));
}

Overview overview(std::span<const Op> ops, std::vector<std::string> executors, RowOrder order) {
  Overview out;
  out.executors = std::move(executors);
  for (const std::string& name : out.executors)
    out.summary.executors.push_back({name, 0, std::nullopt});

  std::vector<const Op*> sorted;
  sorted.reserve(ops.size());
  for (const Op& op : ops) sorted.push_back(&op);
  sort_ops(sorted, order);

  for (const Op* op : sorted) {
    Row row{op->id, {}, op->recommended.value_or("-")};
    for (const std::string& name : out.executors) {
      const OpResult* result = result_on(*op, name);
      const bool shown = result && !result->status.empty() && result->status != "unknown";
      row.statuses.push_back(shown ? result->status : "-");
    }
    out.rows.push_back(std::move(row));
    if (op->results.empty()) continue;
    count(*op, out.summary);
    const bool all_errors =
        std::all_of(op->results.begin(), op->results.end(),
                    [](const OpResult& result) { return result.status == "error"; });
    if (all_errors) out.critical.push_back({op->id, op->results, op->node_index, op->location});
  }
  for (ExecutorSummary& executor : out.summary.executors) {
    if (!executor.timing) continue;
    executor.timing->avg_ms =
        round3(executor.timing->avg_ms / static_cast<double>(executor.timing->samples));
    executor.timing->min_ms = round3(executor.timing->min_ms);
    executor.timing->max_ms = round3(executor.timing->max_ms);
  }
  return out;
}

json::Value discovery_report(const Overview& overview) {
  const Summary& counts = overview.summary;
  json::Object summary;
  summary.set("total_layers", integer(counts.total_layers));
  json::Object statuses;
  statuses.set("success", integer(counts.success));
  statuses.set("difference", integer(counts.difference));
  statuses.set("error", integer(counts.error));
  summary.set("status_counts", std::move(statuses));
  json::Object working;
  json::Object timings;
  for (const ExecutorSummary& executor : counts.executors) {
    working.set(executor.executor, integer(executor.first_working));
    if (!executor.timing) continue;
    json::Object timing;
    timing.set("avg_ms", executor.timing->avg_ms);
    timing.set("min_ms", executor.timing->min_ms);
    timing.set("max_ms", executor.timing->max_ms);
    timing.set("samples", executor.timing->samples);
    timings.set(executor.executor, std::move(timing));
  }
  summary.set("executor_counts", std::move(working));
  if (!timings.empty()) summary.set("timing_summary", std::move(timings));

  json::Array failures;
  for (const CriticalFailure& critical : overview.critical) {
    json::Object details;
    for (const OpResult& error : critical.errors) {
      json::Object detail;
      detail.set("status", error.status);
      detail.set("report", error.failure_report);
      details.set(error.executor, std::move(detail));
    }
    json::Object failure;
    failure.set("layer_id", critical.layer_id);
    failure.set("error_details", std::move(details));
    failure.set("node_index",
                critical.node_index ? json::Value(*critical.node_index) : json::Value());
    failure.set("mlir_location",
                critical.location ? json::Value(*critical.location) : json::Value());
    failures.emplace_back(std::move(failure));
  }
  json::Object report;
  report.set("summary", std::move(summary));
  report.set("critical_failures", std::move(failures));
  return report;
}

std::optional<std::string> recommend(std::span<const Candidate> candidates, Rule rule) {
  for (const std::string_view status :
       {std::string_view("success"), std::string_view("difference")}) {
    if (rule == Rule::Timing) {
      if (auto choice = fastest(candidates, status)) return choice;
    }
    if (auto choice = first(candidates, status)) return choice;
  }
  return std::nullopt;
}

bool times_compare(const domain::ChipSpec& chip) {
  const auto& all = chip.executors;
  return std::adjacent_find(all.begin(), all.end(), [](const auto& a, const auto& b) {
           return a.evidence != b.evidence;
         }) == all.end();
}

void set_recommendation(json::Value& report, std::string_view layer_id,
                        const std::optional<std::string>& executor) {
  const auto set_in = [&](std::string_view key, std::string_view name, bool make) {
    json::Value* all = report.object() ? report.object()->find(key) : nullptr;
    if (!all || !all->object()) return;
    json::Value* entry = all->object()->find(layer_id);
    if (!entry && !make) return;
    if (!entry) entry = &all->object()->set(layer_id, json::Object());
    if (!entry->object()) *entry = json::Object();
    entry->object()->set(name, executor ? json::Value(*executor) : json::Value());
  };
  set_in("ops", "recommended_executor", /*make=*/false);
  set_in("_assignments", "executor", /*make=*/true);
}

std::vector<Candidate> candidates_in(const json::Value& entry,
                                     std::span<const std::string> executors) {
  std::vector<Candidate> out;
  const json::Object* tested = member_object(entry, "executors");
  if (!tested) return out;
  for (const std::string& name : executors) {
    if (const json::Value* result = tested->find(name))
      out.push_back({name, result->get_text("status"), runtime_in(*result)});
  }
  return out;
}

bool pooling_is_fused(const json::Value& settings, bool is_subgraph) {
  return settings.get("quantize") != nullptr && !is_subgraph;
}

HandEdits::HandEdits(const json::Value& report)
    // What a chip does not have any more no rule recommends.
    : executors_(report.get("_executors") ? chip_executors_of(report) : executors_of(report)) {
  // Reports of other tools do not say whether the model was quantized.
  const json::Value* settings = report.get("_settings");
  pooling_may_be_fused_ = !settings || settings->get("quantize");
}

bool HandEdits::is_one(std::string_view layer_id, const json::Value& entry) const {
  if (const json::Value* mark = entry.get("_edited"); mark && mark->flag() == true) return true;
  if (!entry.get("recommended_executor")) return false;
  const std::vector<Candidate> candidates = candidates_in(entry, executors_);
  const std::optional<std::string> stored = recommendation_in(entry);
  if (stored == recommend(candidates, Rule::Priority) ||
      stored == recommend(candidates, Rule::Timing))
    return false;
  // The original's timing rule took a timed difference before an untimed success.
  std::optional<std::string> timed = fastest(candidates, "success");
  if (!timed) timed = fastest(candidates, "difference");
  if (timed && stored == timed) return false;
  // Pooling of a quantized model is fused by the compiler and has no recommendation.
  return stored || !pooling_may_be_fused_ || !layer_id.starts_with("MaxPool_");
}

double round3(double number) {
  char text[400];
  std::snprintf(text, sizeof text, "%.3f", number);
  return std::strtod(text, nullptr);
}

}  // namespace layerfarm::coordinator::report
