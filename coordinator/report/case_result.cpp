#include "coordinator/report/case_result.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "coordinator/report/ops.h"

namespace layerfarm::coordinator::report {
namespace {

constexpr std::size_t kDiagnosticLimit = 512;  ///< characters of a diagnostic that a summary holds
constexpr int kResultDepth = 4;                ///< nesting of a member of `executors` in the report

std::string number_or_na(std::optional<double> number) {
  return number ? json::float_text(*number) : "n/a";
}

/// NaN and infinities cannot stand in the file; what is left out there the summary says.
std::optional<double> finite(std::optional<double> number) {
  return number && std::isfinite(*number) ? number : std::nullopt;
}

/// Whether the reason says more than the three lines do.
bool is_structural(std::string_view reason) {
  for (const std::string_view words :
       {"positions differ", "size differs", "outputs differ", "all zero"}) {
    if (reason.find(words) != std::string_view::npos) return true;
  }
  return false;
}

/// Greatest relative difference; integers, which have none, by their absolute one.
bool is_worse(const domain::Comparison& a, const domain::Comparison& b) {
  if (domain::is_floating(a.dtype) != domain::is_floating(b.dtype))
    return domain::is_floating(a.dtype) && a.max_rel > 0;
  return domain::is_floating(a.dtype) ? a.max_rel > b.max_rel : a.max_abs > b.max_abs;
}

Numbers numbers_of(const std::vector<domain::Comparison>& outputs,
                   const domain::Tolerance& tolerance) {
  Numbers numbers;
  numbers.forgiven = domain::forgiven(outputs, tolerance);
  double rel_sum = 0;
  bool known = true;
  std::uint64_t rel_total = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const domain::Comparison& output = outputs[i];
    numbers.num_diffs += output.num_diffs;
    numbers.total += output.total;
    numbers.cosine = i == 0 ? output.cosine : std::min(numbers.cosine, output.cosine);
    if (i == 0 || is_worse(output, outputs[numbers.worst_output])) {
      numbers.worst_output = i;
      numbers.worst_index = output.worst_index;
    }
    if (!domain::is_floating(output.dtype)) {
      if (output.dtype != domain::DType::Bool) numbers.integers += output.total;
      numbers.off_by_one += domain::off_by_one(output).value_or(0);
      continue;
    }
    rel_sum += output.mean_rel * static_cast<double>(output.total);
    rel_total += output.total;
    numbers.required_tolerance =
        std::max(numbers.required_tolerance.value_or(0), output.required_max_tol);
    // What would pass with another fraction is another number.
    known = known && output.counted_at.fp_abs_tol_frac == tolerance.fp_abs_tol_frac;
  }
  if (!known) numbers.required_tolerance.reset();
  if (rel_total > 0) numbers.mean_rel_diff = rel_sum / static_cast<double>(rel_total);
  return numbers;
}

void write_tolerance(const domain::Tolerance& tolerance, json::Builder& out) {
  out.open("tolerance_used");
  out.number("fp_avg_tol", tolerance.fp_avg_tol);
  out.number("fp_max_tol", tolerance.fp_max_tol);
  if (tolerance.fp_abs_tol_frac != 0) out.number("fp_abs_tol_frac", tolerance.fp_abs_tol_frac);
  if (tolerance.integer_bound() != domain::kIntegerTolerance)
    out.integer("int_tol", tolerance.integer_bound());
  out.close();
}

void write_failure(const CaseResult& result, json::Builder& out) {
  if (result.status == domain::Status::Success) return;
  out.open("failure_report");
  out.text("type", result.status == domain::Status::Difference ? "accuracy_failure" : "error");
  out.text("summary", failure_summary(result));
  if (result.failure && !result.failure->where.empty()) out.text("_where", result.failure->where);
  // The summary of a failed run has no room for what the tool said.
  if (result.failure && !result.failure->in_setup && !result.failure->text.empty()) {
    out.text("_text", cut_diagnostic(result.failure->text));
  }
  out.close();
}

void write_timing(const Timing& timing, json::Builder& out) {
  out.open("timing");
  out.number("runtime_ms", timing.runtime_ms);
  out.integer("runs", timing.runs);
  out.text("_what_ms", timing.what);
  out.number("_min_ms", timing.min_ms);
  out.number("_median_ms", timing.median_ms);
  out.number("_spread_ms", timing.spread_ms);
  out.close();
}

void write_numbers(const CaseResult& result, json::Builder& out) {
  if (!result.reason.empty()) out.text("_reason", result.reason);
  if (!result.numbers) return;
  const Numbers& numbers = *result.numbers;
  out.integer("_num_diffs", static_cast<std::int64_t>(numbers.num_diffs));
  out.integer("_num_elements", static_cast<std::int64_t>(numbers.total));
  if (numbers.mean_rel_diff) out.number("_mean_rel_diff", *numbers.mean_rel_diff);
  if (numbers.required_tolerance) out.number("_required_tolerance", *numbers.required_tolerance);
  if (numbers.forgiven && numbers.forgiven->elements > 0)
    out.integer("_forgiven", static_cast<std::int64_t>(numbers.forgiven->elements));
  if (numbers.integers > 0)
    out.integer("_num_integers", static_cast<std::int64_t>(numbers.integers));
  if (numbers.off_by_one > 0)
    out.integer("_off_by_one", static_cast<std::int64_t>(numbers.off_by_one));
  // Engines that give equal results need not agree in the last bits of a sum from run to run.
  out.number("_cosine", std::round(numbers.cosine * 1e9) / 1e9);
  if (numbers.worst_output != 0)
    out.integer("_worst_output", static_cast<std::int64_t>(numbers.worst_output));
  out.integer("_worst_index", static_cast<std::int64_t>(numbers.worst_index));
}

void write_marks(const CaseResult& result, std::string_view reference, json::Builder& out) {
  if (result.evidence) out.text("_evidence", domain::evidence_name(*result.evidence));
  if (!result.reference.empty() && result.reference != reference)
    out.text("_reference", result.reference);
  if (result.same_engine) out.flag("_same_engine", true);
  if (!result.copied_from.empty()) out.text("_copied_from", result.copied_from);
  if (result.flaky) {
    out.open("_flaky");
    out.integer("success", result.flaky->success);
    out.integer("difference", result.flaky->difference);
    out.integer("error", result.flaky->error);
    out.close();
  }
  if (!result.note.empty()) out.text("_note", result.note);
  if (result.compile) {
    out.number("_compile_ms", round3(result.compile->ms));
    if (result.compile->batch > 1) out.integer("_compile_batch", result.compile->batch);
    out.flag("_compile_cached", result.compile->cached);
  }
}

}  // namespace

std::optional<Timing> timing_of(const domain::Timed& timed) {
  if (timed.runs_us.empty()) return std::nullopt;
  std::vector<std::int64_t> sorted = timed.runs_us;
  std::sort(sorted.begin(), sorted.end());
  double sum = 0;
  for (const std::int64_t us : sorted) sum += static_cast<double>(us);
  const std::size_t middle = sorted.size() / 2;
  const double median =
      sorted.size() % 2 == 1
          ? static_cast<double>(sorted[middle])
          : (static_cast<double>(sorted[middle - 1]) + static_cast<double>(sorted[middle])) / 2;
  Timing timing;
  timing.runtime_ms = round3(sum / static_cast<double>(sorted.size()) / 1000);
  timing.min_ms = round3(static_cast<double>(sorted.front()) / 1000);
  timing.median_ms = round3(median / 1000);
  timing.spread_ms = round3(static_cast<double>(sorted.back() - sorted.front()) / 1000);
  timing.runs = static_cast<std::int64_t>(sorted.size());
  timing.what = timed.what;
  return timing;
}

CaseResult case_result(const domain::Judgement& judgement,
                       const std::vector<domain::Comparison>& outputs,
                       const domain::Tolerance& tolerance) {
  CaseResult result;
  result.status = judgement.status;
  result.tolerance = tolerance;
  result.max_rel_diff = judgement.max_rel_diff;
  result.max_abs_diff = judgement.max_abs_diff;
  result.reason = judgement.reason;
  result.numbers = numbers_of(outputs, tolerance);
  result.numbers->num_diffs = judgement.num_diffs;
  result.numbers->total = judgement.total;
  return result;
}

CaseResult case_result(const domain::Diagnostic& diagnostic, const domain::Tolerance& tolerance) {
  CaseResult result;
  result.status = domain::Status::Error;
  result.tolerance = tolerance;
  Failure failure;
  failure.in_setup = diagnostic.where != "run" && diagnostic.where != "compare";
  const bool refused = diagnostic.cause.empty() || diagnostic.cause == "refused";
  failure.error_class = refused ? "ToolError" : diagnostic.cause;
  failure.where = diagnostic.where;
  failure.text = diagnostic.text;
  result.failure = std::move(failure);
  return result;
}

std::string failure_summary(const CaseResult& result) {
  if (result.status == domain::Status::Success) return "";
  if (result.status == domain::Status::Difference) {
    const Numbers none;
    const Numbers& numbers = result.numbers ? *result.numbers : none;
    std::string lines = difference_lines(result.max_rel_diff, result.max_abs_diff,
                                         numbers.num_diffs, numbers.total);
    if (is_structural(result.reason)) lines.append("\n").append(result.reason);
    return lines;
  }
  const Failure unknown;
  const Failure& failure = result.failure ? *result.failure : unknown;
  if (!failure.in_setup) return failure.error_class + ": Test execution failed";
  std::string text = failure.text;
  if (failure.error_class != "ToolError") {
    // How the tool ended comes first: it is what a person looks for, and must not be cut away.
    if (text.find(failure.error_class) == std::string::npos) {
      text = failure.error_class + (text.empty() ? "" : "\n" + text);
    }
  }
  return "Fixture/setup failed: " + cut_diagnostic(text);
}

std::string difference_lines(std::optional<double> max_rel, std::optional<double> max_abs,
                             std::uint64_t num_diffs, std::uint64_t total) {
  return "Max relative difference: " + number_or_na(max_rel) +
         "\nMax absolute difference: " + number_or_na(max_abs) + "\n" +
         count_line(num_diffs, total);
}

std::string count_line(std::uint64_t num_diffs, std::uint64_t total) {
  char percent[32];
  const double share =
      total == 0 ? 0 : 100.0 * static_cast<double>(num_diffs) / static_cast<double>(total);
  std::snprintf(percent, sizeof percent, "%.2f", share);
  return "Number of differences: " + std::to_string(num_diffs) + " out of " +
         std::to_string(total) + " [" + percent + "%]";
}

std::string cut_diagnostic(std::string_view text) {
  // Characters, not bytes: a cut must not fall into a sequence.
  std::size_t characters = 0;
  std::size_t end = 0;
  while (end < text.size() && characters < kDiagnosticLimit) {
    ++end;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) ++end;
    ++characters;
  }
  if (end == text.size()) return std::string(text);
  const std::size_t line = text.substr(0, end).rfind('\n');
  if (line != std::string_view::npos && line > 0) end = line;
  return std::string(text.substr(0, end)) + "\n...";
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

void write_result(const CaseResult& result, std::string_view reference, std::string& out) {
  json::Builder builder(out, kResultDepth);
  builder.open();
  builder.text("status", domain::status_name(result.status));
  write_tolerance(result.tolerance, builder);
  const std::optional<double> max_rel = finite(result.max_rel_diff);
  const std::optional<double> max_abs = finite(result.max_abs_diff);
  if (max_rel || max_abs) {
    builder.open("max_diff");
    if (max_rel) builder.number("max_rel_diff", *max_rel);
    if (max_abs) builder.number("max_abs_diff", *max_abs);
    builder.close();
  }
  write_failure(result, builder);
  if (result.timing) write_timing(*result.timing, builder);
  write_numbers(result, builder);
  write_marks(result, reference, builder);
  builder.close();
}

json::Value tolerance_json(const domain::Tolerance& tolerance) {
  json::Object out;
  out.set("fp_avg_tol", tolerance.fp_avg_tol);
  out.set("fp_max_tol", tolerance.fp_max_tol);
  if (tolerance.fp_abs_tol_frac != 0) out.set("fp_abs_tol_frac", tolerance.fp_abs_tol_frac);
  if (tolerance.integer_bound() != domain::kIntegerTolerance)
    out.set("int_tol", std::int64_t{tolerance.integer_bound()});
  return out;
}

domain::ToleranceEdit bounds_in(const json::Value* tolerance) {
  if (tolerance == nullptr) return {};
  domain::ToleranceEdit out;
  out.fp_avg_tol = tolerance->get_number("fp_avg_tol");
  out.fp_max_tol = tolerance->get_number("fp_max_tol");
  out.fp_abs_tol_frac = tolerance->get_number("fp_abs_tol_frac");
  const json::Value* integers = tolerance->get("int_tol");
  const auto bound = integers != nullptr ? integers->integer() : std::nullopt;
  if (bound && *bound >= 0 && *bound <= std::numeric_limits<std::uint32_t>::max())
    out.int_tol = static_cast<std::uint32_t>(*bound);
  return out;
}

}  // namespace layerfarm::coordinator::report
