#include "coordinator/report/whole_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "coordinator/report/case_result.h"
#include "coordinator/report/ops.h"
#include "shared/base/text.h"

namespace layerfarm::coordinator::report {
namespace {

json::Value integer(std::uint64_t number) { return json::Value(static_cast<std::int64_t>(number)); }

void set_numbers(const domain::Judgement& judgement, json::Object& out) {
  json::Object differences;
  if (judgement.max_rel_diff) differences.set("max_rel_diff", *judgement.max_rel_diff);
  if (judgement.max_abs_diff) differences.set("max_abs_diff", *judgement.max_abs_diff);
  if (!differences.empty()) out.set("max_diff", std::move(differences));
  out.set("num_diffs", integer(judgement.num_diffs));
  out.set("total", integer(judgement.total));
}

json::Value segments_json(const WholeResult& result) {
  json::Array out;
  for (std::size_t i = 0; i < result.run.segments.size(); ++i) {
    const domain::SegmentRun& segment = result.run.segments[i];
    json::Object entry;
    entry.set("executor", segment.executor);
    entry.set("operators", integer(segment.operators));
    json::Array results;
    for (const std::string& name : segment.results) results.emplace_back(name);
    entry.set("results", std::move(results));
    if (i < result.boundaries.size()) {
      entry.set("status", std::string(domain::status_name(result.boundaries[i].status)));
      set_numbers(result.boundaries[i], entry);
    }
    if (!segment.note.empty()) entry.set("note", segment.note);
    out.emplace_back(std::move(entry));
  }
  return out;
}

/// Elements that pass though they are wrong, as far as the numbers tell.
struct Excused {
  domain::Forgiven forgiven;
  std::uint64_t off_by_one = 0;  ///< of exact integers
};

Excused excused(const WholeResult& result) {
  Excused out;
  out.forgiven =
      domain::forgiven(result.run.outputs, result.tolerance).value_or(domain::Forgiven{});
  for (const domain::Comparison& output : result.run.outputs) {
    if (domain::is_exact_integer(output.dtype))
      out.off_by_one += domain::off_by_one(output).value_or(0);
  }
  return out;
}

/// What a pass does not say of itself.
std::string excused_lines(const std::string& model_name, const WholeResult& result) {
  if (result.status != domain::Status::Success) return {};
  const Excused of = excused(result);
  std::string out;
  if (of.forgiven.hides) {
    out += fmt::format(
        "\n[Tolerance] Full model {}: {} of {} element(s) pass only because the greatest element "
        "of "
        "an output excuses the small ones, which may all be wrong; with fp_abs_tol_frac 0 in the "
        "report's default_tolerance each is judged by itself (docs/tolerances.md)",
        model_name, of.forgiven.elements, result.judgement.total);
  }
  if (of.off_by_one > 0) {
    out += fmt::format(
        "\n[Tolerance] Full model {}: {} integer(s) of outputs are off by one, which passes; if "
        "they "
        "are indices or masks, set int_tol 0 in the report's default_tolerance "
        "(docs/tolerances.md)",
        model_name, of.off_by_one);
  }
  return out;
}

/// The end's step, in the words of the original.
std::string failed_step(const domain::Diagnostic& diagnostic) {
  const bool running = diagnostic.where == "run" || diagnostic.where == "compare";
  std::string out = running ? "run failed: " : "setup failed: ";
  if (!diagnostic.cause.empty() && diagnostic.cause != "refused") out += diagnostic.cause + ": ";
  const std::string line(first_line(diagnostic.text));
  return out + (line.empty() ? "no reason was given" : line);
}

std::string wrong_segment_text(std::size_t segment, std::string_view executor) {
  return fmt::format("passed at the outputs, but segment {} ({}) goes wrong", segment + 1,
                     executor);
}

}  // namespace

std::optional<WholeResult> judge_whole(const domain::Outcome& outcome,
                                       const domain::Tolerance& tolerance) {
  WholeResult out;
  out.tolerance = tolerance;
  if (outcome.ending != domain::Ending::Done || !outcome.whole) {
    out.failure = failed_step(outcome.diagnostic);
    return out;
  }
  out.run = *outcome.whole;
  auto judgement = domain::judge(out.run.outputs, out.run.expected_outputs, tolerance);
  if (!judgement || !judgement->counts_known) return std::nullopt;
  out.judgement = std::move(*judgement);
  out.status = out.judgement.status;
  for (const domain::SegmentRun& segment : out.run.segments) {
    if (segment.boundary.empty()) continue;
    auto at = domain::judge(segment.boundary, segment.results.size(), tolerance);
    if (!at) return std::nullopt;
    out.boundaries.push_back(std::move(*at));
  }
  return out;
}

std::optional<std::size_t> first_wrong(const WholeResult& result) {
  for (std::size_t i = 0; i < result.boundaries.size(); ++i) {
    if (result.boundaries[i].status != domain::Status::Success) return i;
  }
  return std::nullopt;
}

bool passed(const WholeResult& result) {
  return result.status == domain::Status::Success && !first_wrong(result);
}

std::size_t switches(const domain::WholeRun& run) {
  return run.segments.empty() ? 0 : run.segments.size() - 1;
}

std::optional<WholeModel> whole_model(const WholeResult& result) {
  if (!result.failure.empty()) return std::nullopt;
  WholeModel out;
  out.max_rel_diff = result.judgement.max_rel_diff;
  out.max_abs_diff = result.judgement.max_abs_diff;
  out.differences = {result.judgement.num_diffs, result.judgement.total};
  return out;
}

std::string whole_lines(const std::string& model_name, const WholeResult& result) {
  if (!result.failure.empty()) return "Full model " + result.failure;
  std::string out;
  const auto wrong = first_wrong(result);
  if (passed(result)) {
    out = "Full model " + model_name + ": comparison passed";
  } else if (result.status == domain::Status::Success) {
    out = fmt::format("Full model {}: {}", model_name,
                      wrong_segment_text(*wrong, result.run.segments[*wrong].executor));
  } else {
    out = "Full model comparison failed: " + result.judgement.reason;
  }
  out += excused_lines(model_name, result);
  out +=
      fmt::format("\nFull model {}: {} segment(s), {} switch(es), {} byte(s) crossed", model_name,
                  result.run.segments.size(), switches(result.run), result.run.bytes_crossed);
  for (std::size_t i = 0; i < result.boundaries.size(); ++i) {
    const domain::SegmentRun& segment = result.run.segments[i];
    const domain::Judgement& at = result.boundaries[i];
    out +=
        fmt::format("\n  Segment {} ({}, {} operator(s)) gives {}: {}", i + 1, segment.executor,
                    segment.operators, base::join(segment.results), domain::status_name(at.status));
    if (!at.reason.empty()) out += " (" + at.reason + ")";
  }
  if (wrong) {
    out += fmt::format("\nThe first segment that goes wrong is {} ({})", *wrong + 1,
                       result.run.segments[*wrong].executor);
  }
  return out;
}

std::string failed_run_line(const WholeResult& result) {
  if (passed(result)) return "";
  return "Run finished with a failing whole model: " + last_run_text(whole_json(result));
}

std::string last_run_text(const json::Value& whole) {
  if (const std::string_view failure = whole.get_text("failure"); !failure.empty())
    return std::string(failure);
  const std::string_view status = whole.get_text("status");
  if (status != domain::status_name(domain::Status::Success)) {
    const std::string_view reason = whole.get_text("reason");
    return std::string(reason.empty() ? status : reason);
  }
  const json::Value* wrong = whole.get("first_wrong_segment");
  const auto at = wrong ? wrong->integer() : std::nullopt;
  if (!at) return "passed";
  const json::Value* segments = whole.get("segments");
  const bool known = segments && segments->array() && *at >= 0 &&
                     static_cast<std::size_t>(*at) < segments->array()->size();
  const auto segment = static_cast<std::size_t>(*at);
  return wrong_segment_text(segment,
                            known ? (*segments->array())[segment].get_text("executor") : "?");
}

json::Value whole_json(const WholeResult& result) {
  json::Object out;
  out.set("status", std::string(domain::status_name(result.status)));
  out.set("tolerance_used", tolerance_json(result.tolerance));
  if (!result.failure.empty()) {
    out.set("failure", result.failure);
    return out;
  }
  set_numbers(result.judgement, out);
  if (!result.judgement.reason.empty()) out.set("reason", result.judgement.reason);
  const Excused of = excused(result);
  if (of.forgiven.elements > 0) out.set("forgiven", integer(of.forgiven.elements));
  if (of.off_by_one > 0) out.set("off_by_one", integer(of.off_by_one));
  out.set("switches", integer(switches(result.run)));
  out.set("bytes_crossed", integer(result.run.bytes_crossed));
  out.set("segments", segments_json(result));
  if (const auto wrong = first_wrong(result)) out.set("first_wrong_segment", integer(*wrong));
  if (!result.run.reference.empty()) out.set("reference", result.run.reference);
  return out;
}

void put_whole_result(json::Value& report, const std::map<std::string, std::string>& locations,
                      const WholeResult& result) {
  json::Object& file = *report.object();
  json::Value* ops = file.find("ops");
  if (ops && ops->object()) {
    for (json::Member& entry : *ops->object()) {
      const auto found = locations.find(entry.key);
      if (found != locations.end() && entry.value.object())
        entry.value.object()->set("mlir_location", found->second);
    }
  }
  // Before the closing keys, which readers look for at the end.
  for (const char* key :
       {"_whole_model", "discovery_report", "has_critical_failures", "final_report_text"})
    file.erase(key);
  const Overview all = overview(ops_of(report), executors_of(report), RowOrder::OrigIndex);
  const json::Value* name = report.get("model_name");
  const std::string model = name && name->text() ? *name->text() : "unknown";
  file.set("_whole_model", whole_json(result));
  file.set("discovery_report", discovery_report(all));
  file.set("has_critical_failures", !all.critical.empty());
  file.set("final_report_text", final_report_text(model, all, whole_model(result)));
}

}  // namespace layerfarm::coordinator::report
