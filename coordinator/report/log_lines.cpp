#include "coordinator/report/log_lines.h"

namespace layerfarm::coordinator::report {
namespace {

std::string heading(const CaseLine& line) {
  std::string out = "\nLayer " + one_line(line.layer_id);
  if (!line.model.empty()) out += " (" + line.model + ")";
  out += ": ";
  if (!line.chip.empty()) out += line.chip + " ";
  return out + upper(line.executor) + " = ";
}

std::string coloured(std::string_view status, Colour colour) {
  if (colour == Colour::No) return std::string(status);
  const std::string_view start = status == "success"      ? "\033[32m"
                                 : status == "difference" ? "\033[33m"
                                                          : "\033[31m";
  return std::string(start) + std::string(status) + "\033[0m";
}

std::string in_parentheses(const Failure& failure) {
  const std::string_view line = first_line(failure.text);
  std::string out = failure.error_class;
  if (!line.empty() && line != failure.error_class) out.append(": ").append(line);
  return out;
}

}  // namespace

std::string chip_line(std::string_view name, std::string_view target) {
  return "[Chip] chip=" + std::string(name) + " target=" + std::string(target);
}

std::string case_lines(const CaseLine& line, const CaseResult& result, Colour colour) {
  std::string out = heading(line) + coloured(domain::status_name(result.status), colour);
  if (result.timing) out += " (" + json::float_text(result.timing->runtime_ms) + "ms)";
  if (!result.copied_from.empty()) out += " (copied from " + one_line(result.copied_from) + ")";
  if (result.failure && result.failure->in_setup)
    out += " (setup: " + in_parentheses(*result.failure) + ")";
  if (!line.evidence.empty()) out += " (" + line.evidence + ")";
  if (!result.note.empty()) out += " (" + result.note + ")";
  if (result.flaky) {
    out += " (flaky: " + std::to_string(result.flaky->success) + " success, " +
           std::to_string(result.flaky->difference) + " difference, " +
           std::to_string(result.flaky->error) + " error)";
  }
  if (result.status == domain::Status::Difference) {
    out += "\n  ";
    for (const char c : failure_summary(result)) {
      out += c;
      if (c == '\n') out += "  ";
    }
  }
  if (result.failure && !result.failure->in_setup)
    out += "\n  (" + in_parentheses(*result.failure) + ")";
  return out;
}

std::string unsettled_lines(const CaseLine& line, std::string_view reason) {
  return heading(line) + "unsettled (" + std::string(first_line(reason)) + ")";
}

std::string progress_line(std::uint64_t done, std::uint64_t total) {
  std::string percent = std::to_string(total == 0 ? 100 : done * 100 / total);
  if (percent.size() < 3) percent.insert(0, 3 - percent.size(), ' ');
  return "[progress] " + std::to_string(done) + "/" + std::to_string(total) + " [" + percent + "%]";
}

std::string saved_line(std::string_view path) {
  return "Detailed report saved to: " + std::string(path);
}

std::string failing_line(std::uint64_t failing) {
  return failing == 0 ? ""
                      : "Discovery finished with " + std::to_string(failing) + " failing case(s)";
}

std::string details_head(std::string_view label, bool in_setup) {
  return "[" + std::string(label) + "] " + (in_setup ? "setup" : "run") + " error details:";
}

std::string case_label(std::string_view model, std::string_view op_type, std::uint64_t place,
                       std::string_view executor) {
  return std::string(model) + "_layer_" + std::string(op_type) + "_" + std::to_string(place) + "_" +
         std::string(executor);
}

}  // namespace layerfarm::coordinator::report
