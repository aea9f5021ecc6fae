// torq: layers through Synaptics' torq-compile and torq-run-module, on its instruction simulator or
// a board. The sidecar imports a layer as an MLIR module of text; an executor is chosen by the
// flags that disable the others, and by a map that names it for the layer (spec section 22).
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "shared/base/files.h"
#include "shared/base/places.h"
#include "worker/cache/materialise.h"
#include "worker/toolchain/diagnostic.h"
#include "worker/toolchain/file_digests.h"
#include "worker/toolchain/ir_dump.h"
#include "worker/toolchain/programs.h"
#include "worker/toolchain/raw_outputs.h"
#include "worker/toolchain/tool_results.h"
#include "worker/toolchain/tool_step.h"
#include "worker/toolchain/toolchain.h"
#include "worker/toolchain/torq_command.h"

namespace layerfarm::worker::toolchain {
namespace {

namespace fs = std::filesystem;
using domain::Ending;
using domain::Outcome;
using nlohmann::json;

constexpr const char* kModule = "module.mlir";
constexpr const char* kArtifact = "module.vmfb";
constexpr const char* kMap = "executor_map.json";
constexpr const char* kFunction = "main";

/// A tool of the package: the user's own where a variable or folder names it, else a build tree's,
/// else the one on the PATH. Empty when there is none.
fs::path find_tool(const char* variable, const std::string& name) {
  if (const std::string own = base::environment(variable); !own.empty()) return own;
  std::error_code error;
  std::vector<fs::path> folders = path_list(base::environment("TORQ_TOOL_PATH"));
  if (const std::string build = base::environment("IREE_BUILD_DIR"); !build.empty()) {
    folders.push_back(fs::path(build) / "tools");
    folders.push_back(fs::path(build) / "third_party" / "iree" / "tools");
  }
  for (const fs::path& folder : folders) {
    if (is_program(folder / name)) return folder / name;
  }
  return find_program(name);
}

struct Tools {
  fs::path compile;
  fs::path run;
};
Tools find_tools() {
  return {find_tool("TORQ_COMPILE", "torq-compile"),
          find_tool("TORQ_RUN_MODULE", "torq-run-module")};
}

/// The id that the map calls the layer by: that of its module, as modules serve every layer of one
/// signature (spec section 22).
std::string map_id(const domain::Layer& layer) { return layer.op_type + "_o0"; }

/// Compiles one layer for one executor.
class Compilation {
 public:
  Compilation(const TorqTarget& target, const domain::ExecutorSpec& executor, StepContext& context)
      : target_(target), executor_(executor), context_(context) {}

  Outcome go(const CompileJob& job) {
    outcome_.stage = domain::Stage::Compile;
    outcome_.tool = "torq-compile";
    whole_ = job.executors != nullptr;
    if (import(*job.layer) &&
        write_map(whole_ ? model_map(*job.executors)
                         : torq_layer_map(map_id(*job.layer), executor_.name)) &&
        compile())
      keep();
    if (target_.dump_ir)
      outcome_.ir_dump = keep_ir_dump({kModule, kMap, "debug", "phases"}, context_);
    return std::move(outcome_);
  }

 private:
  bool end(Ending ending, domain::Diagnostic why) {
    outcome_.ending = ending;
    outcome_.diagnostic = std::move(why);
    return false;
  }

  bool import(const domain::Layer& layer) {
    const cache::Placed placed =
        cache::place_module(context_.blobs, layer.module, context_.scratch / "layer", "layer");
    if (!placed.ok()) {
      set_not_placed(outcome_, placed);
      return false;
    }
    const json request = {{"op", "import"},
                          {"model", placed.module.string()},
                          {"out", (context_.scratch / kModule).string()},
                          {"function", kFunction},
                          {"text", true},
                          {"places", whole_}};
    HelperAnswer answer = context_.helpers.sidecar(request.dump(), compile_bounds(context_.limits));
    if (answer.ending != Ending::Done) {
      answer.diagnostic.where = "import";
      return end(answer.ending, std::move(answer.diagnostic));
    }
    if (whole_) read_places(answer.json);
    return true;
  }

  /// Where the operators stand in the module that is compiled, which is what the map goes by.
  void read_places(const std::string& answer) {
    const json said = json::parse(answer, nullptr, /*allow_exceptions=*/false);
    if (!said.is_object() || !said.contains("locations")) return;
    for (const json& place : said["locations"]) {
      if (place.is_array() && place.size() == 3 && place[0].is_number() && place[1].is_number())
        places_.push_back(place[0].dump() + ":" + place[1].dump());
    }
  }

  /// Nothing when the importer sees other operators than the model has: a map by other places would
  /// name the wrong ones.
  std::optional<std::string> model_map(const std::vector<std::string>& executors) {
    if (places_.size() != executors.size()) {
      end(Ending::Refused,
          diagnostic("import", "refused",
                     "the imported module has " + std::to_string(places_.size()) +
                         " operators, the model " + std::to_string(executors.size()) +
                         ": the executors cannot be told apart by place"));
      return std::nullopt;
    }
    std::vector<std::pair<std::string, std::string>> chosen;
    for (std::size_t i = 0; i < executors.size(); ++i) {
      if (!executors[i].empty()) chosen.emplace_back(places_[i], executors[i]);
    }
    return torq_model_map(chosen);
  }

  bool write_map(const std::optional<std::string>& content) {
    if (!content) return false;
    const auto written =
        base::write_file_atomically(context_.scratch / kMap, *content, base::Sync::No);
    return written || end(Ending::Infrastructure, infrastructure("compile", written.error()));
  }

  bool compile() {
    ToolCall call{.command = {}, .where = "compile", .tool = outcome_.tool};
    call.command.argv = torq_compile_arguments(
        target_, {.module = kModule, .artifact = kArtifact, .map = kMap, .whole = whole_});
    call.command.argv.insert(call.command.argv.begin(), find_tools().compile.string());
    call.command.folder = context_.scratch;
    call.command.cores = context_.cores;
    call.command.bounds = compile_bounds(context_.limits);
    const auto begun = std::chrono::steady_clock::now();
    ToolEnd ended = run_tool(call, context_);
    compile_us_ = std::chrono::duration_cast<std::chrono::microseconds>(
                      std::chrono::steady_clock::now() - begun)
                      .count();
    return ended.ending == Ending::Done || end(ended.ending, std::move(ended.diagnostic));
  }

  /// The artifact, and what the compiler wrote beside it under the artifact's name.
  void keep() {
    domain::Artifact artifact;
    artifact.function = kFunction;
    artifact.compile_us = compile_us_;
    const auto blob = context_.blobs.put_file(context_.scratch / kArtifact);
    if (!blob) {
      // A compiler that says success and writes nothing has refused.
      const bool none = blob.error().code == base::ErrorCode::NotFound;
      end(none ? Ending::Refused : Ending::Infrastructure,
          none ? diagnostic("compile", "refused", "the compiler wrote no module")
               : infrastructure("compile", blob.error()));
      return;
    }
    artifact.blob = *blob;
    for (const fs::path& file : files_beside()) {
      // Before it is stored, which moves it.
      std::error_code error;
      const auto bytes = fs::file_size(file, error);
      const auto stored = context_.blobs.put_file(file);
      if (!stored || error) {
        end(Ending::Infrastructure, stored
                                        ? diagnostic("compile", "infrastructure", error.message())
                                        : infrastructure("compile", stored.error()));
        return;
      }
      artifact.data.push_back({file.filename().string(), *stored, bytes});
    }
    outcome_.ending = Ending::Done;
    outcome_.artifact = std::move(artifact);
  }

  [[nodiscard]] std::vector<fs::path> files_beside() const {
    std::vector<fs::path> out;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(context_.scratch, error)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_regular_file(error) && name != kArtifact && name.starts_with(kArtifact))
        out.push_back(entry.path());
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  const TorqTarget& target_;
  const domain::ExecutorSpec& executor_;
  StepContext& context_;
  Outcome outcome_;
  bool whole_ = false;
  std::vector<std::string> places_;  ///< "line:column" of each operator of a whole model
  std::int64_t compile_us_ = 0;
};

class TorqToolchain final : public Toolchain {
 public:
  [[nodiscard]] std::string_view name() const override { return "torq"; }

  [[nodiscard]] Needs needs(const domain::ChipSpec& /*chip*/) const override {
    return {.prepare = true, .compile = true, .batch = 1, .takes_map = true, .tiny = false};
  }

  [[nodiscard]] Probe probe(const domain::ChipSpec& chip) const override {
    Probe out;
    const Tools tools = find_tools();
    std::error_code error;
    const std::pair<const char*, const fs::path*> wanted[] = {{"torq-compile", &tools.compile},
                                                              {"torq-run-module", &tools.run}};
    for (const auto& [program, path] : wanted) {
      if (is_program(*path)) continue;
      out.missing = path->empty() ? std::string(program)
                                  : std::string(program) + " (" + path->string() +
                                        " is no program that can be started)";
      out.how_to_get =
          "install the torq tools and put their folder on the PATH, or set TORQ_TOOL_PATH to it, "
          "or "
          "TORQ_COMPILE and TORQ_RUN_MODULE to the programs";
      return out;
    }
    if (package_record("iree_base_compiler").empty()) {
      out.missing = "IREE's importer, which turns layers into what torq-compile reads";
      out.how_to_get = how_to_install("iree");
      return out;
    }
    for (const domain::ExecutorSpec& executor : chip.executors) {
      if (auto target = torq_target(chip, executor); !target) {
        out.missing = target.error().text();
        out.how_to_get = "add it to the chip file";
        return out;
      }
    }
    out.found = true;
    FileDigests digests;
    out.identity.files =
        digests.of_all({tools.compile, tools.run, sidecar_script(),
                        package_record("iree_base_compiler"), package_record("onnx")});
    // Asking the tools for their version would start them: their files stand for it.
    out.identity.version = "tools " + out.identity.files.hex().substr(0, 12);
    return out;
  }

  std::vector<Outcome> compile(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor,
                               std::span<const CompileJob> jobs, StepContext& context) override {
    std::vector<Outcome> out;
    const auto target = torq_target(chip, executor);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (!target) {
        Outcome refused{.stage = domain::Stage::Compile, .ending = Ending::Refused};
        refused.diagnostic = diagnostic("compile", "refused", target.error().text());
        out.push_back(std::move(refused));
        continue;
      }
      StepContext step = context;
      step.scratch = context.scratch / std::to_string(i);
      std::error_code error;
      fs::create_directories(step.scratch, error);
      out.push_back(Compilation(*target, executor, step).go(jobs[i]));
    }
    return out;
  }

  RunResult run(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor,
                const RunJob& job, StepContext& context) override {
    RunResult out = run_once(chip, executor, job, context);
    return out.ending == Ending::Done ? with_raw_outputs(std::move(out), job, context.scratch)
                                      : out;
  }

  TimeResult time(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor,
                  const RunJob& job, int runs, StepContext& context) override {
    return time_runs("torq-run-module process", runs,
                     [&] { return run_once(chip, executor, job, context); });
  }

 private:
  static RunResult run_once(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor,
                            const RunJob& job, StepContext& context) {
    const auto target = torq_target(chip, executor);
    if (!target) {
      RunResult out;
      out.ending = Ending::Refused;
      out.diagnostic = diagnostic("run", "refused", target.error().text());
      return out;
    }
    const cache::Placed placed =
        cache::place_artifact(context.blobs, *job.artifact, context.scratch, kArtifact);
    if (!placed.ok()) return not_placed(placed);
    TorqRunFiles files{.artifact = kArtifact, .function = job.artifact->function};
    files.inputs = raw_inputs(job, context.blobs);
    for (std::size_t i = 0; i < job.layer->outputs.size(); ++i)
      files.outputs.push_back(raw_output_name(i));
    std::vector<std::string> argv = torq_run_arguments(*target, files);
    argv.insert(argv.begin(), find_tools().run.string());
    return run_result(run_tool(run_call("torq-run-module", std::move(argv), context), context));
  }
};

}  // namespace

std::unique_ptr<Toolchain> make_torq_toolchain() { return std::make_unique<TorqToolchain>(); }

}  // namespace layerfarm::worker::toolchain
