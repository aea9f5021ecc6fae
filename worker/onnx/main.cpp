// layerfarm-onnx: reads model files. Hostile files meet this program, never the coordinator: it
// runs as a bounded child of a worker. Exit 0: done. Exit 1: one line "<file>: <reason>" on
// standard error, nothing written. Exit 2: bad flags.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "shared/base/build_info.h"
#include "shared/base/exit_code.h"
#include "shared/base/files.h"
#include "shared/protocol/codec.h"
#include "worker/onnx/analyze.h"
#include "worker/onnx/quantized.h"
#include "worker/onnx/raise.h"

namespace {

using layerfarm::base::ExitCode;
using layerfarm::base::Result;
namespace base = layerfarm::base;
namespace onnx = layerfarm::worker::onnx;
namespace protocol = layerfarm::protocol;

struct AnalyzeFlags {
  std::string request;
  std::string blobs;
  std::string result;
  std::string shapes;
  std::string shapes_request;
  std::string changed_model;
};

struct ConvertFlags {
  layerfarm::domain::AnalyzeRequest request;
  std::string out;
};

struct RangeFlags {
  layerfarm::domain::AnalyzeRequest request;
  std::string result;
};

struct RaiseFlags {
  std::string model;
  std::int64_t opset = 0;
  std::string out;
};

struct ReplaceFlags {
  std::string analysis;
  std::string modules;
  std::string blobs;
  std::string result;
};

int fail(const std::string& file, std::string reason) {
  for (char& c : reason) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  std::fprintf(stderr, "%s: %s\n", file.c_str(), reason.c_str());
  return static_cast<int>(ExitCode::Failed);
}

int cmd_analyze(const AnalyzeFlags& flags, std::string& model) {
  const auto bytes = base::read_file(flags.request);
  if (!bytes) return fail(flags.request, bytes.error().text());
  const auto request = protocol::decode_analyze_request(*bytes);
  if (!request) return fail(flags.request, request.error().text());
  model = request->model_path;

  onnx::AnalyzeOptions options{.request = *request,
                               .blobs = base::BlobFolder(flags.blobs),
                               .shapes_answer = {},
                               .shapes_folder = {},
                               .changed_model = {}};
  if (!flags.changed_model.empty()) options.changed_model = flags.changed_model;
  if (!flags.shapes.empty()) {
    auto answer = base::read_file(flags.shapes);
    if (!answer) return fail(flags.shapes, answer.error().text());
    options.shapes_answer = std::move(*answer);
  }
  if (!flags.shapes_request.empty()) {
    const std::filesystem::path folder =
        std::filesystem::absolute(flags.shapes_request).parent_path();
    options.shapes_folder = folder;
  }
  const auto answer = onnx::analyze(options);
  if (!answer) return fail(model, answer.error().text());
  const bool asks = !answer->shapes_request.empty();
  const Result<void> written =
      asks ? base::write_file_atomically(flags.shapes_request, answer->shapes_request,
                                         base::Sync::No)
           : base::write_file_atomically(flags.result, protocol::encode_analysis(answer->analysis),
                                         base::Sync::No);
  if (!written) return fail(model, written.error().text());
  std::puts(asks ? "shapes wanted" : "analyzed");
  return static_cast<int>(ExitCode::Success);
}

int cmd_convert(const ConvertFlags& flags) {
  const auto done = onnx::save_converted(flags.request, flags.out);
  return done ? static_cast<int>(ExitCode::Success)
              : fail(flags.request.model_path, done.error().text());
}

int cmd_range(const RangeFlags& flags) {
  const auto range = onnx::subgraph_range(flags.request);
  if (!range) return fail(flags.request.model_path, range.error().text());
  const auto written = base::write_file_atomically(
      flags.result, std::to_string(range->first) + " " + std::to_string(range->last) + "\n",
      base::Sync::No);
  return written ? static_cast<int>(ExitCode::Success) : fail(flags.result, written.error().text());
}

/// The model, and what is made of it first.
void add_conversion(CLI::App& command, layerfarm::domain::AnalyzeRequest& request) {
  command.add_option("--model", request.model_path, "model to read")->required();
  command.add_flag("--bf16", request.convert.bf16, "float becomes bfloat16");
  command.add_flag("--int32", request.convert.int32,
                   "64-bit integers become 32-bit ones where ONNX allows it");
  command.add_option_function<std::vector<std::string>>(
      "--keep-dim",
      [&request](const std::vector<std::string>& names) {
        for (const std::string& name : names) request.dims.emplace_back(name, 1);
      },
      "dynamic dim that stays open though it is a first one (repeatable)");
}

int cmd_raise(const RaiseFlags& flags) {
  const auto done = onnx::raise_opset(flags.model, flags.opset, flags.out);
  return done ? static_cast<int>(ExitCode::Success) : fail(flags.model, done.error().text());
}

int cmd_replace(const ReplaceFlags& flags) {
  const auto bytes = base::read_file(flags.analysis);
  if (!bytes) return fail(flags.analysis, bytes.error().text());
  auto analysis = protocol::decode_analysis(*bytes);
  if (!analysis) return fail(flags.analysis, analysis.error().text());
  const auto text = base::read_file(flags.modules);
  if (!text) return fail(flags.modules, text.error().text());
  const auto modules = onnx::parse_quantized_modules(*text);
  if (!modules) return fail(flags.modules, modules.error().text());
  onnx::replace_modules(*modules, base::BlobFolder(flags.blobs), *analysis);
  const auto written = base::write_file_atomically(
      flags.result, protocol::encode_analysis(*analysis), base::Sync::No);
  if (!written) return fail(flags.result, written.error().text());
  std::puts("replaced");
  return static_cast<int>(ExitCode::Success);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Reads ONNX models for layerfarm");
  app.set_version_flag("--version", "layerfarm-onnx " + std::string(base::kVersion) + " (" +
                                        std::string(base::build_commit()) + ", ONNX " +
                                        onnx::onnx_version() + ")");
  app.require_subcommand(1);

  AnalyzeFlags analyze;
  CLI::App* analyze_command = app.add_subcommand(
      "analyze", "Takes a model apart: layers, signatures, modules, input ranges, MAC counts");
  analyze_command
      ->add_option("--request", analyze.request, "what to read (an encoded AnalyzeRequest)")
      ->required();
  analyze_command->add_option("--blobs", analyze.blobs, "folder for modules and large constants")
      ->required();
  analyze_command->add_option("--result", analyze.result, "where the encoded ModelAnalysis goes")
      ->required();
  analyze_command->add_option(
      "--shapes", analyze.shapes,
      "what a run of the model showed: the helper's answer to the request below");
  analyze_command->add_option("--shapes-request", analyze.shapes_request,
                              "where to write a request for such a run (and, beside it, the model "
                              "to run) when shapes stay unknown; then there is no result yet");

  analyze_command->add_option("--changed-model", analyze.changed_model,
                              "where the outline of the model goes when it is converted or only "
                              "a part of it is asked for");

  ConvertFlags convert;
  CLI::App* convert_command =
      app.add_subcommand("convert", "Writes a model with other element types");
  add_conversion(*convert_command, convert.request);
  convert_command->add_option("--out", convert.out, "where the model goes; its folder is made")
      ->required();

  RangeFlags range;
  range.request.subgraph.emplace();
  CLI::App* range_command =
      app.add_subcommand("range", "Says which nodes a subgraph goes from and to");
  add_conversion(*range_command, range.request);
  range_command->add_option("--from", range.request.subgraph->from, "first node")->required();
  range_command->add_option("--to", range.request.subgraph->to, "last node")->required();
  range_command->add_option("--result", range.result, "where the answer goes: two numbers, from 0")
      ->required();

  RaiseFlags raise;
  CLI::App* raise_command = app.add_subcommand("raise", "Converts a module to a newer opset");
  raise_command->add_option("--model", raise.model, "module to read")->required();
  raise_command->add_option("--opset", raise.opset, "opset to convert to")->required();
  raise_command->add_option("--out", raise.out, "module to write; refers to the same data files")
      ->required();

  ReplaceFlags replace;
  CLI::App* replace_command = app.add_subcommand(
      "replace", "Puts quantized modules in the place of an analysis' float ones");
  replace_command->add_option("--analysis", replace.analysis, "an encoded ModelAnalysis")
      ->required();
  replace_command
      ->add_option("--modules", replace.modules,
                   "JSON list: file, the layers that it is for, names of its inputs and outputs in "
                   "the order of theirs")
      ->required();
  replace_command->add_option("--blobs", replace.blobs, "folder for modules and large constants")
      ->required();
  replace_command->add_option("--result", replace.result, "where the changed ModelAnalysis goes")
      ->required();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? static_cast<int>(ExitCode::Success)
                                : static_cast<int>(ExitCode::Usage);
  }

  std::string model = analyze_command->parsed()   ? analyze.request
                      : convert_command->parsed() ? convert.request.model_path
                      : range_command->parsed()   ? range.request.model_path
                      : replace_command->parsed() ? replace.analysis
                                                  : raise.model;
  try {
    return analyze_command->parsed()   ? cmd_analyze(analyze, model)
           : convert_command->parsed() ? cmd_convert(convert)
           : range_command->parsed()   ? cmd_range(range)
           : replace_command->parsed() ? cmd_replace(replace)
                                       : cmd_raise(raise);
  } catch (const std::bad_alloc&) {
    return fail(model, "needs more memory than this process may have");
  } catch (const std::exception& error) {
    return fail(model, std::string("cannot be read: ") + error.what());
  }
}
