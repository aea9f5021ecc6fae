#include "worker/toolchain/tool_step.h"

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

#include "worker/toolchain/diagnostic.h"

namespace layerfarm::worker::toolchain {
namespace {

using domain::Ending;
using process::Ended;
using process::ProcessResult;

/// What shells, and env and its kind, say of a program that they cannot start or do not find.
constexpr int kCannotStart = 126;
constexpr int kNotFound = 127;

bool says(const ProcessResult& result, const char* words) {
  return result.errors.text.find(words) != std::string::npos ||
         result.output.text.find(words) != std::string::npos;
}

/// Why a tool that said no did so for the machine's sake, whatever the layer was; empty otherwise.
std::string_view machine_fault(const ProcessResult& result) {
  if (result.ended != Ended::Exited || result.exit_code == 0) return {};
  if (says(result, "No space left on device")) return "disk full";
  // The dynamic loader's words, also where a script started the program.
  const bool unloadable =
      says(result, "error while loading shared libraries") || says(result, ": version `GLIBC");
  if (unloadable || result.exit_code == kCannotStart || result.exit_code == kNotFound)
    return "cannot start here";
  return {};
}

std::string seconds(base::Duration duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  if (ms % 1000 == 0) return std::to_string(ms / 1000) + " s";
  return std::to_string(ms) + " ms";
}

std::string size_text(std::int64_t bytes) {
  constexpr std::int64_t kMiB = 1 << 20;
  if (bytes >= kMiB) return std::to_string((bytes + kMiB - 1) / kMiB) + " MiB";
  return std::to_string(bytes) + " bytes";
}

std::string ended_text(const ProcessResult& result) {
  switch (result.ended) {
    case Ended::Exited:
      return "exit code " + std::to_string(result.exit_code);
    case Ended::Signalled:
      return "signal " + process::signal_name(result.signal);
    case Ended::TimedOut:
      return "ended at its time limit";
    case Ended::OverMemory:
      return "ended at its memory limit";
    case Ended::OverOutput:
      return "ended at its output limit";
    case Ended::OverFile:
      return "ended at its file limit";
    case Ended::Cancelled:
      return "cancelled";
    case Ended::NotStarted:
      return "not started: " + result.problem;
  }
  return {};
}

}  // namespace

process::Bounds compile_bounds(const domain::Limits& limits, std::size_t units) {
  return {.wall = std::chrono::milliseconds(limits.compile_timeout_ms) *
                  static_cast<std::int64_t>(units),
          .memory_bytes = limits.memory_bytes,
          .output_bytes = limits.output_bytes,
          .file_bytes = limits.file_bytes};
}

process::Bounds run_bounds(const domain::Limits& limits) {
  process::Bounds out = compile_bounds(limits);
  out.wall = std::chrono::milliseconds(limits.run_timeout_ms);
  return out;
}

Ending ending_of(const ProcessResult& result) {
  switch (result.ended) {
    case Ended::Exited:
      if (result.exit_code == 0) return Ending::Done;
      return machine_fault(result).empty() ? Ending::Refused : Ending::Infrastructure;
    case Ended::Signalled:
      return result.signal == SIGXFSZ ? Ending::OverOutput : Ending::Crashed;
    case Ended::TimedOut:
      return Ending::TimedOut;
    case Ended::OverMemory:
      return Ending::OverMemory;
    case Ended::OverOutput:
    case Ended::OverFile:
      return Ending::OverOutput;
    case Ended::Cancelled:
      return Ending::Cancelled;
    case Ended::NotStarted:
      return Ending::Infrastructure;
  }
  return Ending::Infrastructure;
}

std::string cause_of(const ProcessResult& result, const process::Bounds& bounds) {
  switch (result.ended) {
    case Ended::Exited: {
      if (result.exit_code == 0) return {};
      const std::string_view fault = machine_fault(result);
      return std::string(fault.empty() ? "refused" : fault);
    }
    case Ended::Signalled:
      if (result.signal == SIGXFSZ)
        return "wrote a file larger than " + size_text(bounds.file_bytes);
      return "crashed: " + process::signal_name(result.signal);
    case Ended::TimedOut:
      return "timed out after " + seconds(bounds.wall);
    case Ended::OverMemory:
      return "used more than " + size_text(bounds.memory_bytes) + " of memory";
    case Ended::OverOutput:
      return "printed more than " + size_text(bounds.output_bytes);
    case Ended::OverFile:
      return "wrote a file larger than " + size_text(bounds.file_bytes);
    case Ended::Cancelled:
      return "cancelled";
    case Ended::NotStarted:
      return "not started";
  }
  return {};
}

std::string raw_report(const ToolCall& call, const ProcessResult& result) {
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
  std::string out = "step: " + call.where + "\ntool: " + call.tool + "\ncommand: " +
                    nlohmann::json(call.command.argv).dump(-1, ' ', false, kReplace) +
                    "\nfolder: " + call.command.folder.string() + "\n";
  for (const auto& [name, value] : call.command.environment)
    out += "environment: " + name + "=" + value + "\n";
  out += "ended: " + ended_text(result) + " after " + std::to_string(result.wall_us / 1000) +
         " ms, peak memory " + size_text(result.peak_memory_bytes) + "\n";
  out += "--- standard error (" + std::to_string(result.errors.bytes) + " bytes)\n" +
         result.errors.text;
  if (!result.errors.text.empty() && result.errors.text.back() != '\n') out += '\n';
  out += "--- standard output (" + std::to_string(result.output.bytes) + " bytes)\n" +
         result.output.text;
  return out;
}

ToolEnd run_tool(const ToolCall& call, StepContext& context) {
  ToolEnd out;
  out.result = context.runner.run(call.command, context.cancel);
  out.ending = ending_of(out.result);
  if (out.ending == Ending::Done || out.ending == Ending::Cancelled) return out;
  const ProcessResult& result = out.result;
  out.diagnostic.where = call.where;
  out.diagnostic.cause = cause_of(result, call.command.bounds);
  // What a tool says about a refusal is on standard error; some use the other one.
  std::string said = result.ended == Ended::NotStarted ? result.problem : result.errors.text;
  if (said.find_first_not_of(" \t\r\n") == std::string::npos) said = result.output.text;
  out.diagnostic.text = normalised(said);
  if (out.diagnostic.text.empty() && result.ended == Ended::Exited)
    out.diagnostic.text = ended_text(result);
  if (out.ending == Ending::Infrastructure && result.ended == Ended::Exited)
    out.diagnostic.text = call.tool + " " + out.diagnostic.cause + ": " + out.diagnostic.text;
  if (const auto blob = context.blobs.put(raw_report(call, result))) out.diagnostic.raw = *blob;
  return out;
}

ToolCall run_call(std::string tool, std::vector<std::string> argv, const StepContext& context) {
  ToolCall out{.command = {}, .where = "run", .tool = std::move(tool)};
  out.command.argv = std::move(argv);
  out.command.folder = context.scratch;
  out.command.cores = context.cores;
  out.command.bounds = run_bounds(context.limits);
  return out;
}

domain::Diagnostic diagnostic(std::string where, std::string cause, std::string text) {
  return {.where = std::move(where), .cause = std::move(cause), .text = std::move(text), .raw = {}};
}

domain::Diagnostic infrastructure(std::string where, const base::Error& error) {
  return diagnostic(std::move(where), "infrastructure", error.text());
}

}  // namespace layerfarm::worker::toolchain
