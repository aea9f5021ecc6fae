// ort-ep: layers through any plug-in execution provider of ONNX Runtime that the chip file names,
// in the resident layerfarm-ort. Compile = a context binary, run = a session from it; a node that
// the provider does not take is an error, never a silent fall-back. A further vendor is a chip
// file, not code.
//
// Options of a chip or executor (docs/chips.md): `package` (a Python package of the dependency
// cache), `library` (the plug-in, in that package or an absolute path), `provider`, `device`,
// `provider.<option>`, `session.<entry>`, `context` = binary | none, `cpu_vendor`, `engine` =
// provider | cpu; `provider_at_compile.<option>` and `provider_at_run.<option>` win over
// `provider.<option>` in one of the two steps (the user's --compiler-option, --runtime-option).
#include <algorithm>
#include <filesystem>
#include <utility>

#include "worker/cache/materialise.h"
#include "worker/toolchain/cpu.h"
#include "worker/toolchain/file_digests.h"
#include "worker/toolchain/ort_helper.h"
#include "worker/toolchain/programs.h"
#include "worker/toolchain/tool_options.h"
#include "worker/toolchain/tool_results.h"
#include "worker/toolchain/tool_step.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {
namespace {

namespace fs = std::filesystem;
using domain::Ending;
using domain::Options;
using domain::Outcome;

constexpr const char* kContextModel = "context.onnx";

fs::path folder_of_package(const Options& options) {
  const std::string package = text_option(options, "package", "");
  return package.empty() ? fs::path() : package_folder(package);
}

std::string how_to_get(const std::string& package) {
  const std::string_view toolchain = toolchain_with(package);
  return toolchain.empty()
             ? "correct 'package' in the chip file; layerfarm installs none of that name"
             : how_to_install(toolchain);
}

fs::path plugin_library(const Options& options) {
  const fs::path library = text_option(options, "library", "");
  // An absolute path takes the place of the folder: a plug-in of the user's own.
  return library.empty() ? fs::path() : folder_of_package(options) / library;
}

bool on_cpu(const Options& options) { return text_option(options, "engine", "provider") == "cpu"; }
bool makes_context(const Options& options) {
  return !on_cpu(options) && text_option(options, "context", "binary") == "binary";
}

enum class Step { Compile, Run };

/// What is compiled where it runs gets the options of both steps.
Options provider_options(const Options& options, Step step) {
  Options out = options_with_prefix(options, "provider.");
  const auto overlay = [&](const char* prefix) {
    for (auto& [key, value] : options_with_prefix(options, prefix))
      out.insert_or_assign(key, std::move(value));
  };
  if (step == Step::Compile || !makes_context(options)) overlay("provider_at_compile.");
  if (step == Step::Run) overlay("provider_at_run.");
  return out;
}

OrtSession session_of(const Options& options, const fs::path& model, Step step) {
  if (on_cpu(options)) return cpu_session_of(options, model);
  OrtSession out;
  out.model = model;
  out.threads = number_option(options, "threads", 1, 0, 4096);
  out.config = options_with_prefix(options, "session.");
  out.provider = OrtProvider{.library = plugin_library(options),
                             .name = text_option(options, "provider", ""),
                             .device = text_option(options, "device", ""),
                             .options = provider_options(options, step)};
  return out;
}

/// "onnxruntime-qnn 2.7.0", or the file's name for a plug-in that is in no package.
std::string tool_name(const Options& options) {
  const std::string package = text_option(options, "package", "");
  if (package.empty()) return plugin_library(options).filename().string();
  std::string shown = package;
  std::replace(shown.begin(), shown.end(), '_', '-');
  return shown + " " + package_version(package);
}

class OrtEpToolchain final : public Toolchain {
 public:
  [[nodiscard]] std::string_view name() const override { return "ort-ep"; }

  [[nodiscard]] Needs needs(const domain::ChipSpec& chip) const override {
    const bool compile = std::any_of(chip.executors.begin(), chip.executors.end(),
                                     [&chip](const domain::ExecutorSpec& executor) {
                                       return makes_context(domain::merged_options(chip, executor));
                                     });
    return {.prepare = true, .compile = compile, .batch = 1, .tiny = false};
  }

  [[nodiscard]] Probe probe(const domain::ChipSpec& chip) const override {
    Probe out = probe_onnxruntime();
    if (!out.found) return out;
    const std::string runtime = out.identity.version;
    FileDigests digests;
    base::Hasher hasher("layerfarm.ort-ep.1");
    hasher.add(out.identity.files);
    std::vector<fs::path> libraries;
    std::string tools;
    for (const domain::ExecutorSpec& executor : chip.executors) {
      const Options options = domain::merged_options(chip, executor);
      if (on_cpu(options)) continue;
      if (Probe lacking = what_lacks(options, executor.name); !lacking.missing.empty())
        return lacking;
      const fs::path library = plugin_library(options);
      if (std::find(libraries.begin(), libraries.end(), library) != libraries.end()) continue;
      libraries.push_back(library);
      tools += tool_name(options) + ", ";
      hasher.add(digests.of_all(closure(library)));
    }
    out.identity.version = tools + "onnxruntime " + runtime;
    out.identity.files = hasher.finish();
    return out;
  }

  std::vector<Outcome> compile(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor,
                               std::span<const CompileJob> jobs, StepContext& context) override {
    const Options options = domain::merged_options(chip, executor);
    std::vector<Outcome> out;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      out.push_back(
          makes_context(options)
              ? compile_one(options, *jobs[i].layer, context, i)
              : module_as_artifact(*jobs[i].layer, on_cpu(options)
                                                       ? "onnxruntime " + onnxruntime_version()
                                                       : tool_name(options)));
    }
    return out;
  }

  RunResult run(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor,
                const RunJob& job, StepContext& context) override {
    RunResult out;
    const auto session = placed_session(domain::merged_options(chip, executor), job, context, out);
    if (!session) return out;
    out = ort_run(*session, prepared_inputs(*job.layer, *job.prepared, context.blobs), context);
    if (job.artifact != nullptr) out.note = job.artifact->note;
    return out;
  }

  TimeResult time(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor,
                  const RunJob& job, int runs, StepContext& context) override {
    RunResult problem;
    const auto session =
        placed_session(domain::merged_options(chip, executor), job, context, problem);
    if (session)
      return ort_time(*session, prepared_inputs(*job.layer, *job.prepared, context.blobs), runs,
                      context);
    return not_timed(std::move(problem));
  }

 private:
  /// What an executor that runs on a provider has not; nothing missing where it has all.
  static Probe what_lacks(const Options& options, const std::string& executor) {
    Probe out;
    const auto lacks = [&out](std::string missing, std::string how_to_get) {
      out.missing = std::move(missing);
      out.how_to_get = std::move(how_to_get);
      return out;
    };
    const fs::path library = plugin_library(options);
    if (library.empty() || text_option(options, "provider", "").empty()) {
      return lacks(
          "the options 'library' and 'provider' of the chip file or its executor " + executor,
          "name the plug-in in the chip file (docs/chips.md)");
    }
    std::error_code error;
    if (!fs::is_regular_file(library, error)) {
      const std::string package = text_option(options, "package", "");
      return lacks("the plug-in " + library.filename().string() +
                       (package.empty() ? "" : " of the package " + package),
                   package.empty() ? "correct 'library' in the chip file" : how_to_get(package));
    }
    const std::string vendor = text_option(options, "cpu_vendor", "");
    if (!vendor.empty() && vendor != cpu_vendor()) {
      return lacks("a processor of the vendor " + vendor + " (this one is " + cpu_vendor() + ")",
                   "use a machine with such a processor; the provider offers no device on others");
    }
    return out;
  }

  /// The libraries beside the plug-in, in an order of their own: it opens the others at run time,
  /// by names that it alone knows.
  static std::vector<fs::path> closure(const fs::path& library) {
    std::vector<fs::path> out;
    std::error_code error;
    for (const fs::path& folder :
         {library.parent_path(), fs::path(library.parent_path().string() + ".libs")}) {
      for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string file = entry.path().filename().string();
        if (file.find(".so") != std::string::npos && entry.is_regular_file(error))
          out.push_back(entry.path());
      }
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  static Outcome compile_one(const Options& options, const domain::Layer& layer,
                             StepContext& context, std::size_t index) {
    Outcome out;
    out.stage = domain::Stage::Compile;
    out.tool = tool_name(options);
    const fs::path folder = context.scratch / ("layer_" + std::to_string(index));
    const cache::Placed placed = cache::place_module(context.blobs, layer.module, folder, "layer");
    if (!placed.ok()) {
      set_not_placed(out, placed);
      return out;
    }
    const fs::path made = folder / "made";
    std::error_code error;
    fs::create_directories(made, error);
    OrtCompiled compiled = ort_compile(session_of(options, placed.module, Step::Compile), made,
                                       kContextModel, context);
    out.ending = compiled.ending;
    out.diagnostic = std::move(compiled.diagnostic);
    if (out.ending != Ending::Done) return out;
    if (compiled.model.empty()) {
      // It took the layer all the same, so the layer runs in a session of its own.
      out = module_as_artifact(layer, out.tool);
      out.artifact->compile_us = compiled.took_us;
      out.artifact->note = "ran without a context binary: the provider wrote none";
      return out;
    }
    domain::Artifact artifact;
    artifact.compile_us = compiled.took_us;
    const auto keep = [&](const fs::path& file, base::Digest& blob) {
      const auto stored = context.blobs.put_file(file);
      if (stored) {
        blob = *stored;
        return true;
      }
      out.ending = Ending::Infrastructure;
      out.diagnostic = infrastructure("compile", stored.error());
      return false;
    };
    if (!keep(compiled.model, artifact.blob)) return out;
    for (const fs::path& file : compiled.beside) {
      domain::DataFile data;
      data.name = file.filename().string();
      data.bytes = fs::file_size(file, error);
      if (!keep(file, data.blob)) return out;
      artifact.data.push_back(std::move(data));
    }
    out.artifact = std::move(artifact);
    return out;
  }

  /// The session on the artifact where there is one, else on the layer's module. Empty with
  /// `problem` filled when it cannot be placed.
  static std::optional<OrtSession> placed_session(const Options& options, const RunJob& job,
                                                  StepContext& context, RunResult& problem) {
    domain::LayerModule module = job.layer->module;
    if (job.artifact != nullptr && makes_context(options))
      module = {.format = "onnx", .blob = job.artifact->blob, .data = job.artifact->data};
    const cache::Placed placed =
        cache::place_module(context.blobs, module, context.scratch / "module", "layer");
    if (placed.ok()) return session_of(options, placed.module, Step::Run);
    problem = not_placed(placed);
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<Toolchain> make_ort_ep_toolchain() { return std::make_unique<OrtEpToolchain>(); }

}  // namespace layerfarm::worker::toolchain
