#include "worker/toolchain/ort_helper.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "shared/base/onnxruntime_library.h"
#include "worker/toolchain/describe.h"
#include "worker/toolchain/programs.h"
#include "worker/toolchain/resident_helpers.h"
#include "worker/toolchain/tool_options.h"
#include "worker/toolchain/tool_step.h"

namespace layerfarm::worker::toolchain {
namespace {

namespace fs = std::filesystem;
using domain::Ending;
using nlohmann::json;

json session_json(const char* op, const OrtSession& session) {
  json out = {{"op", op},
              {"model", session.model.string()},
              {"optimize", session.optimize},
              {"threads", session.threads}};
  if (!session.config.empty()) out["session"] = session.config;
  if (session.provider) {
    out["provider"] = {{"library", session.provider->library.string()},
                       {"name", session.provider->name},
                       {"device", session.provider->device},
                       {"options", session.provider->options}};
    out["no_fallback"] = true;
  }
  return out;
}

json inputs_json(const std::vector<OrtInput>& inputs) {
  json out = json::array();
  for (const OrtInput& input : inputs) {
    out.push_back({{"file", input.file.string()},
                   {"dtype", static_cast<int>(input.type.dtype)},
                   {"dims", input.type.dims}});
  }
  return out;
}

std::string dumped(const json& request) {
  return request.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

/// Asks; on anything but Done, `diagnostic` says why with `where` as the step. `answer` is the
/// parsed answer on Done.
struct Asked {
  Ending ending = Ending::Infrastructure;
  domain::Diagnostic diagnostic;
  json answer;
};

Asked ask(const json& request, const char* where, const process::Bounds& bounds,
          StepContext& context) {
  HelperAnswer got = context.helpers.ort(dumped(request), bounds);
  Asked out{.ending = got.ending, .diagnostic = std::move(got.diagnostic), .answer = {}};
  if (out.ending == Ending::Done) {
    out.answer = json::parse(got.json, nullptr, /*allow_exceptions=*/false);
    return out;
  }
  const std::string said = std::exchange(out.diagnostic.where, where);
  // What the helper could not write down, or did not understand, is no fault of the layer.
  if (out.ending == Ending::Refused && (said == "store" || said == "request")) {
    out.ending = Ending::Infrastructure;
    out.diagnostic.cause = "infrastructure";
  }
  return out;
}

/// An answer that lacks what the page promises: the helper and this program are not of one build.
domain::Diagnostic odd_answer(const char* where) {
  return diagnostic(
      where, "infrastructure",
      "layerfarm-ort gave an answer that this worker does not understand: are both of one build?");
}

}  // namespace

RunResult ort_run(const OrtSession& session, const std::vector<OrtInput>& inputs,
                  StepContext& context) {
  json request = session_json("run", session);
  request["inputs"] = inputs_json(inputs);
  request["output_folder"] = context.scratch.string();
  request["output_limit"] = context.limits.file_bytes;
  Asked asked = ask(request, "run", run_bounds(context.limits), context);
  RunResult out;
  out.ending = asked.ending;
  out.diagnostic = std::move(asked.diagnostic);
  if (out.ending != Ending::Done) return out;
  try {
    for (const json& output : asked.answer.at("outputs")) {
      domain::TensorType type;
      type.dtype = static_cast<domain::DType>(output.at("dtype").get<int>());
      type.dims = output.at("dims").get<std::vector<std::int64_t>>();
      out.types.push_back(std::move(type));
      out.outputs.emplace_back(output.at("file").get<std::string>());
    }
    out.run_us = asked.answer.at("run_us").get<std::int64_t>();
  } catch (const json::exception&) {
    out = RunResult{};
    out.diagnostic = odd_answer("run");
  }
  return out;
}

TimeResult ort_time(const OrtSession& session, const std::vector<OrtInput>& inputs, int runs,
                    StepContext& context) {
  json request = session_json("time", session);
  request["inputs"] = inputs_json(inputs);
  request["warm_up"] = 1;
  request["runs"] = runs;
  process::Bounds bounds = run_bounds(context.limits);
  bounds.wall *= runs + 1;  // each run may take what a single one may
  Asked asked = ask(request, "run", bounds, context);
  TimeResult out;
  out.what = "session run";
  out.ending = asked.ending;
  out.diagnostic = std::move(asked.diagnostic);
  if (out.ending != Ending::Done) return out;
  try {
    out.runs_us = asked.answer.at("runs_us").get<std::vector<std::int64_t>>();
  } catch (const json::exception&) {
    out.ending = Ending::Infrastructure;
    out.diagnostic = odd_answer("run");
  }
  return out;
}

OrtCompiled ort_compile(const OrtSession& session, const fs::path& folder, const std::string& name,
                        StepContext& context) {
  json request = session_json("compile", session);
  request["output"] = (folder / name).string();
  Asked asked = ask(request, "compile", compile_bounds(context.limits), context);
  OrtCompiled out;
  out.ending = asked.ending;
  out.diagnostic = std::move(asked.diagnostic);
  if (out.ending != Ending::Done) return out;
  try {
    const auto files = asked.answer.at("files").get<std::vector<std::string>>();
    for (const std::string& file : files) {
      if (file.empty() || file.find('/') != std::string::npos)
        throw json::other_error::create(500, "a file name", nullptr);
      if (file == name) {
        out.model = folder / file;
      } else {
        out.beside.push_back(folder / file);
      }
    }
    out.took_us = asked.answer.at("session_us").get<std::int64_t>();
    if (out.model.empty() && !out.beside.empty())
      throw json::other_error::create(500, "binaries without a model", nullptr);
  } catch (const json::exception&) {
    out = OrtCompiled{};
    out.diagnostic = odd_answer("compile");
  }
  return out;
}

std::vector<OrtInput> prepared_inputs(const domain::Layer& layer, const domain::Prepared& prepared,
                                      const base::BlobFolder& blobs) {
  std::vector<OrtInput> out;
  for (std::size_t i = 0; i < layer.inputs.size() && i < prepared.inputs.size(); ++i) {
    out.push_back({.file = blobs.path(prepared.inputs[i]), .type = layer.inputs[i].type});
  }
  return out;
}

OrtSession cpu_session_of(const domain::Options& options, const fs::path& model) {
  OrtSession out;
  out.model = model;
  out.optimize = text_option(options, "optimization", "all") != "none";
  out.threads = number_option(options, "threads", 1, 0, 4096);
  out.config = options_with_prefix(options, "session.");
  return out;
}

Probe probe_onnxruntime() {
  Probe out;
  std::error_code error;
  const HelperKind kind = ResidentHelpers::ort_kind();
  for (const fs::path& file : kind.needed) {
    if (fs::exists(file, error)) continue;
    out.missing = file.filename().string();
    out.how_to_get = kind.how_to_get;
    return out;
  }
  out.found = true;
  out.identity = reference_identity();
  return out;
}

std::string onnxruntime_version() {
  std::error_code error;
  const std::string real = fs::canonical(base::onnxruntime_library(), error).filename().string();
  const auto at = real.find(".so.");
  return at == std::string::npos ? std::string() : real.substr(at + 4);
}

}  // namespace layerfarm::worker::toolchain
