// iree: layers through IREE. The sidecar imports layers as functions of one MLIR module, the native
// iree-compile makes one artifact of it, iree-run-module runs one function
// (docs/adding-a-toolchain.md shows this file as the example; figures are in docs/helpers.md).
//
// A batch that fails is split so that each layer gets the verdict and the text that it would get
// alone: the layers that the errors blame leave it, the rest is compiled again; where nobody is to
// blame by place or name (signals, time-outs, messages without a place) it is halved.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "shared/base/places.h"
#include "worker/cache/materialise.h"
#include "worker/toolchain/cpu.h"
#include "worker/toolchain/diagnostic.h"
#include "worker/toolchain/file_digests.h"
#include "worker/toolchain/ir_dump.h"
#include "worker/toolchain/iree_messages.h"
#include "worker/toolchain/programs.h"
#include "worker/toolchain/raw_outputs.h"
#include "worker/toolchain/reader_call.h"
#include "worker/toolchain/tool_options.h"
#include "worker/toolchain/tool_results.h"
#include "worker/toolchain/tool_step.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {
namespace {

namespace fs = std::filesystem;
using domain::Ending;
using domain::Outcome;
using nlohmann::json;

/// Opset to which layers are raised that importer or compiler refuse in an older form.
constexpr int kRaisedOpset = 17;
/// Folder for the module after each phase of the compiler, where dumps are wanted.
constexpr const char* kPhases = "phases";
constexpr std::uint32_t kBatch = 16;
constexpr std::uint32_t kMostBatch = 256;
/// Constants of one batch together: each run loads the whole artifact.
constexpr std::uint64_t kBatchBytes = std::uint64_t{2} << 20;

/// The programs: the user's own where the environment names them, else those of the Python
/// packages. What is on the PATH there are wrappers that add a start of Python and leave their
/// child behind when they are ended.
fs::path compiler_program() {
  const std::string own = base::environment("IREE_COMPILE");
  return own.empty() ? packages_of("iree") / "iree" / "compiler" / "_mlir_libs" / "iree-compile"
                     : fs::path(own);
}
fs::path run_program() {
  const std::string own = base::environment("IREE_RUN_MODULE");
  return own.empty() ? packages_of("iree") / "iree" / "_runtime_libs" / "iree-run-module"
                     : fs::path(own);
}

/// What is asked of iree-compile for one executor.
struct Target {
  std::string backend;
  std::string cpu;  ///< llvm-cpu only
  std::vector<std::string> flags;
  std::vector<std::string> run_flags;
  bool dump_ir = false;
};

Target target_of(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor) {
  const domain::Options options = domain::merged_options(chip, executor);
  Target out;
  out.backend = text_option(options, "backend", executor.name);
  if (out.backend == "llvm-cpu") out.cpu = text_option(options, "target_cpu", "host");
  out.flags = domain::option_list(options, "compile_flags");
  out.run_flags = domain::option_list(options, "run_flags");
  out.dump_ir = wants_ir_dump(options);
  return out;
}

bool has_float64(const domain::Layer& layer) {
  const auto is_wide = [](const domain::TensorType& type) {
    return type.dtype == domain::DType::Float64;
  };
  return std::any_of(layer.inputs.begin(), layer.inputs.end(),
                     [&](const domain::InputSpec& input) { return is_wide(input.type); }) ||
         std::any_of(layer.outputs.begin(), layer.outputs.end(), is_wide);
}

std::vector<std::string> compile_command(const Target& target, const std::vector<int>& cores,
                                         bool float64, const fs::path& module,
                                         const fs::path& out) {
  std::vector<std::string> argv = {compiler_program().string(), "--iree-hal-target-device=local",
                                   "--iree-hal-local-target-device-backends=" + target.backend};
  // Else float64 is computed as float32, and a float64 result does not fit its buffer. But the
  // compiler's own steps to float64 (MaxPool, AveragePool with auto_pad) only compile as float32.
  if (float64) argv.emplace_back("--iree-input-demote-f64-to-f32=false");
  if (!target.cpu.empty()) argv.push_back("--iree-llvmcpu-target-cpu=" + target.cpu);
  if (cores.size() == 1)
    argv.emplace_back("--mlir-disable-threading");  // threads would only take turns
  if (target.dump_ir) argv.push_back(std::string("--dump-compilation-phases-to=") + kPhases);
  argv.insert(argv.end(), target.flags.begin(), target.flags.end());
  argv.insert(argv.end(), {module.string(), "-o", out.string()});
  return argv;
}

/// One layer on its way through the compiler.
struct Item {
  std::size_t index = 0;  ///< in the caller's jobs
  fs::path module;        ///< its ONNX module
  std::string function;
};

/// Compiles the layers of one call of Toolchain::compile.
class Compilation {
 public:
  Compilation(Target target, std::string tool, std::span<const CompileJob> jobs,
              StepContext& context)
      : target_(std::move(target)),
        tool_(std::move(tool)),
        jobs_(jobs),
        context_(context),
        outcomes_(jobs.size()),
        opsets_(jobs.size()) {
    for (Outcome& outcome : outcomes_) {
      outcome.stage = domain::Stage::Compile;
      outcome.tool = tool_;
    }
  }

  std::vector<Outcome> go(std::uint32_t batch) {
    for (const bool float64 : {false, true}) compile_all(batch, float64);
    raise_refused(batch);
    return std::move(outcomes_);
  }

 private:
  /// The layers with float64, or those without: the compiler is told once for a whole module.
  void compile_all(std::uint32_t batch, bool float64) {
    std::vector<Item> group;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (has_float64(*jobs_[i].layer) != float64) continue;
      Item item{.index = i, .module = {}, .function = "layer_" + std::to_string(i)};
      if (!place(item)) continue;
      const std::uint64_t size = constant_bytes(*jobs_[i].layer);
      if (!group.empty() && (group.size() >= batch || bytes + size > kBatchBytes)) {
        compile_group(std::exchange(group, {}), /*raised=*/false);
        bytes = 0;
      }
      group.push_back(std::move(item));
      bytes += size;
    }
    compile_group(std::move(group), /*raised=*/false);
  }

  bool place(Item& item) {
    const domain::LayerModule& module = jobs_[item.index].layer->module;
    const cache::Placed placed =
        cache::place_module(context_.blobs, module, context_.scratch / item.function, "layer");
    item.module = placed.module;
    if (placed.ok()) return true;
    set_not_placed(outcomes_[item.index], placed);
    return false;
  }

  [[nodiscard]] std::uint64_t constant_bytes(const domain::Layer& layer) const {
    std::error_code error;
    std::uint64_t bytes = fs::file_size(context_.blobs.path(layer.module.blob), error);
    if (error) bytes = 0;
    for (const domain::DataFile& data : layer.module.data) bytes += data.bytes;
    return bytes;
  }

  void settle(const Item& item, Ending ending, domain::Diagnostic why) {
    outcomes_[item.index].ending = ending;
    outcomes_[item.index].diagnostic = std::move(why);
  }

  void halve(const std::vector<Item>& group, bool raised) {
    const auto middle = group.begin() + static_cast<std::ptrdiff_t>(group.size() / 2);
    compile_group({group.begin(), middle}, raised);
    compile_group({middle, group.end()}, raised);
  }

  /// Ends that say nothing about any one layer, so that trying again in parts would only repeat
  /// them.
  static bool ends_all(Ending ending) {
    return ending == Ending::Cancelled || ending == Ending::Infrastructure;
  }

  /// Settles every layer of the group.
  void compile_group(std::vector<Item> group, bool raised) {
    if (group.empty()) return;
    const fs::path module = context_.scratch / "module.mlir";
    const auto started = std::chrono::steady_clock::now();
    const process::Bounds bounds = compile_bounds(context_.limits, group.size());
    json request = {{"op", "combine"}, {"out", module.string()}, {"models", json::array()}};
    for (const Item& item : group)
      request["models"].push_back({{"path", item.module.string()}, {"function", item.function}});
    HelperAnswer answer = context_.helpers.sidecar(request.dump(), bounds);
    json imported = json::parse(answer.json, nullptr, /*allow_exceptions=*/false);
    const bool whole = answer.ending == Ending::Done && imported.contains("layers") &&
                       imported["layers"].size() == group.size();
    if (!whole) {
      if (group.size() > 1 && !ends_all(answer.ending)) return halve(group, raised);
      answer.diagnostic.where = "import";
      const Ending ending = answer.ending == Ending::Done ? Ending::Crashed : answer.ending;
      for (const Item& item : group) settle(item, ending, answer.diagnostic);
      return;
    }
    std::vector<Item> good;
    std::vector<BatchLayer> layers;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const json& layer = imported["layers"][i];
      if (!raised) opsets_[group[i].index] = layer.value("opset", 0);
      if (layer.value("ok", false)) {
        BatchLayer one{.function = group[i].function, .lines = {}};
        for (const json& range : layer.value("lines", json::array()))
          one.lines.push_back({range.at(0).get<std::uint32_t>(), range.at(1).get<std::uint32_t>()});
        layers.push_back(std::move(one));
        good.push_back(group[i]);
      } else {
        domain::Diagnostic why =
            diagnostic("import", "refused", normalised(layer.value("text", "")));
        if (const auto raw =
                context_.blobs.put("step: import\ntool: " + tool_ + "\n" + layer.value("text", "")))
          why.raw = *raw;
        settle(group[i], Ending::Refused, std::move(why));
      }
    }
    if (good.empty()) return;
    compile_module(std::move(good), layers, module, started, raised);
  }

  void compile_module(std::vector<Item> group, const std::vector<BatchLayer>& layers,
                      const fs::path& module, std::chrono::steady_clock::time_point started,
                      bool raised) {
    const fs::path artifact = context_.scratch / "module.vmfb";
    ToolCall call{.command = {}, .where = "compile", .tool = tool_};
    const bool float64 = std::any_of(group.begin(), group.end(), [this](const Item& item) {
      return has_float64(*jobs_[item.index].layer);
    });
    call.command.argv =
        compile_command(target_, context_.cores, float64, module.filename(), artifact.filename());
    call.command.environment = {{"TMPDIR", context_.scratch.string()}};
    call.command.folder = context_.scratch;
    call.command.cores = context_.cores;
    call.command.bounds = compile_bounds(context_.limits, group.size());
    std::error_code ignored;
    if (target_.dump_ir) fs::remove_all(context_.scratch / kPhases, ignored);  // the layer before's
    ToolEnd end = run_tool(call, context_);
    if (target_.dump_ir) {
      for (const Item& item : group)
        outcomes_[item.index].ir_dump = keep_ir_dump({module.filename(), kPhases}, context_);
    }
    if (end.ending == Ending::Done) return keep(group, artifact, started, raised);
    const bool alone = group.size() == 1;
    if (!alone && end.ending == Ending::Refused) {
      const Blame found = blame(split_messages(end.result.errors.text), layers);
      if (found.any()) return split(group, found, end.diagnostic, raised);
    }
    if (!alone && !ends_all(end.ending)) return halve(group, raised);
    if (alone && end.ending == Ending::Refused) {
      const std::string text =
          refusal_text(split_messages(end.result.errors.text), group.front().function);
      if (!text.empty()) end.diagnostic.text = normalised(text);
    } else if (alone && end.ending == Ending::Crashed) {
      end.diagnostic.text = normalised(crash_text(end.result.errors.text));
    }
    for (const Item& item : group) settle(item, end.ending, end.diagnostic);
  }

  /// The blamed layers leave the batch: with what was said about them, or, where that may be only a
  /// part of it, for a compilation of their own.
  void split(const std::vector<Item>& group, const Blame& found, const domain::Diagnostic& why,
             bool raised) {
    std::vector<Item> rest;
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (!found.text[i]) {
        rest.push_back(group[i]);
      } else if (found.complete) {
        domain::Diagnostic own = why;
        own.text = normalised(*found.text[i]);
        settle(group[i], Ending::Refused, std::move(own));
      } else {
        compile_group({group[i]}, raised);
      }
    }
    compile_group(std::move(rest), raised);
  }

  void keep(const std::vector<Item>& group, const fs::path& artifact,
            std::chrono::steady_clock::time_point started, bool raised) {
    const auto blob = context_.blobs.put_file(artifact);
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(
                        std::chrono::steady_clock::now() - started)
                        .count();
    for (const Item& item : group) {
      if (!blob) {
        settle(item, Ending::Infrastructure, infrastructure("compile", blob.error()));
        continue;
      }
      Outcome& outcome = outcomes_[item.index];
      outcome.ending = Ending::Done;
      outcome.diagnostic = {};
      outcome.artifact =
          domain::Artifact{.blob = *blob,
                           .data = {},
                           .function = item.function,
                           .compile_us = us / static_cast<std::int64_t>(group.size()),
                           .batch = static_cast<std::uint32_t>(group.size()),
                           .note = raised ? "raised to opset " + std::to_string(kRaisedOpset) : ""};
    }
  }

  /// Refused layers of an old opset are written in a newer form and tried once more. What does not
  /// compile then either keeps what was said first.
  void raise_refused(std::uint32_t batch) {
    std::vector<Item> group;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (outcomes_[i].ending != Ending::Refused || opsets_[i] == 0 || opsets_[i] >= kRaisedOpset)
        continue;
      Item item{.index = i,
                .module = context_.scratch / ("layer_" + std::to_string(i)) / "raised.onnx",
                .function = "layer_" + std::to_string(i)};
      if (raise(item)) group.push_back(std::move(item));
    }
    const std::vector<Outcome> before = outcomes_;
    for (std::size_t from = 0; from < group.size(); from += batch) {
      const auto to = std::min<std::size_t>(from + batch, group.size());
      compile_group({group.begin() + static_cast<std::ptrdiff_t>(from),
                     group.begin() + static_cast<std::ptrdiff_t>(to)},
                    /*raised=*/true);
    }
    for (const Item& item : group) {
      if (outcomes_[item.index].ending == Ending::Refused)
        outcomes_[item.index] = before[item.index];
    }
  }

  bool raise(const Item& item) {
    const fs::path original =
        item.module.parent_path() / ("layer." + jobs_[item.index].layer->module.format);
    const ToolCall call = reader_call("import",
                                      {"raise", "--model", original.string(), "--opset",
                                       std::to_string(kRaisedOpset), "--out", item.module.string()},
                                      context_.scratch, context_);
    return context_.runner.run(call.command, context_.cancel).ok();
  }

  Target target_;
  std::string tool_;
  std::span<const CompileJob> jobs_;
  StepContext& context_;
  std::vector<Outcome> outcomes_;
  std::vector<int> opsets_;  ///< of the layers as they came; 0 = unknown
};

class IreeToolchain final : public Toolchain {
 public:
  [[nodiscard]] std::string_view name() const override { return "iree"; }

  [[nodiscard]] Needs needs(const domain::ChipSpec& chip) const override {
    return {.prepare = true, .compile = true, .batch = most_in_batch(chip), .tiny = false};
  }

  [[nodiscard]] Probe probe(const domain::ChipSpec& chip) const override {
    Probe out;
    std::error_code error;
    for (const fs::path& file :
         {compiler_program(), run_program(), python_program(), sidecar_script()}) {
      if (fs::exists(file, error)) continue;
      out.missing = file.filename().string() + " of IREE";
      out.how_to_get = how_to_install("iree") +
                       ", or set IREE_COMPILE and IREE_RUN_MODULE to programs of your own";
      return out;
    }
    out.found = true;
    out.identity.version = version();
    FileDigests digests;
    // The number is raised when this adapter asks the same tools for something else.
    base::Hasher hasher("layerfarm.iree.2");
    out.identity.files = hasher.add(digests.of_all(tool_files())).finish();
    const bool host_code = std::any_of(chip.executors.begin(), chip.executors.end(),
                                       [&chip](const domain::ExecutorSpec& executor) {
                                         return target_of(chip, executor).cpu == "host";
                                       });
    if (host_code) out.identity.cpu = cpu_identity();
    return out;
  }

  std::vector<Outcome> compile(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor,
                               std::span<const CompileJob> jobs, StepContext& context) override {
    return Compilation(target_of(chip, executor), "iree " + version(), jobs, context)
        .go(batch_of(domain::merged_options(chip, executor)));
  }

  RunResult run(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor,
                const RunJob& job, StepContext& context) override {
    RunResult out = run_once(chip, executor, job, context);
    if (out.ending != Ending::Done) return out;
    out.note = job.artifact->note;
    return with_raw_outputs(std::move(out), job, context.scratch);
  }

  TimeResult time(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor,
                  const RunJob& job, int runs, StepContext& context) override {
    return time_runs("iree-run-module process", runs,
                     [&] { return run_once(chip, executor, job, context); });
  }

 private:
  static std::string version() {
    if (!base::environment("IREE_COMPILE").empty()) return "of $IREE_COMPILE";
    return package_version("iree_base_compiler");
  }

  /// The packages' records list every file of theirs with a digest.
  static std::vector<fs::path> tool_files() {
    std::vector<fs::path> out = {package_record("iree_base_compiler"),
                                 package_record("iree_base_runtime"), package_record("onnx"),
                                 sidecar_script()};
    if (!base::environment("IREE_COMPILE").empty()) out.push_back(compiler_program());
    if (!base::environment("IREE_RUN_MODULE").empty()) out.push_back(run_program());
    return out;
  }

  /// What one job of any executor holds at most.
  static std::uint32_t most_in_batch(const domain::ChipSpec& chip) {
    std::uint32_t out = 1;
    for (const domain::ExecutorSpec& executor : chip.executors)
      out = std::max(out, batch_of(domain::merged_options(chip, executor)));
    return out;
  }

  static std::uint32_t batch_of(const domain::Options& options) {
    if (wants_ir_dump(options)) return 1;  // a dump shows one layer
    const std::string text = text_option(options, "batch", "");
    if (text.empty() || text.size() > 6 ||
        text.find_first_not_of("0123456789") != std::string::npos)
      return kBatch;
    return std::clamp(static_cast<std::uint32_t>(std::stoul(text)), std::uint32_t{1}, kMostBatch);
  }

  static RunResult run_once(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor,
                            const RunJob& job, StepContext& context) {
    std::vector<std::string> argv = {run_program().string(), "--device=local-sync",
                                     "--module=" + context.blobs.path(job.artifact->blob).string(),
                                     "--function=" + job.artifact->function};
    for (const std::string& input : raw_inputs(job, context.blobs))
      argv.push_back("--input=" + input);
    for (std::size_t i = 0; i < job.layer->outputs.size(); ++i)
      argv.push_back("--output=@" + raw_output_name(i));
    const Target target = target_of(chip, executor);
    argv.insert(argv.end(), target.run_flags.begin(), target.run_flags.end());
    return run_result(run_tool(run_call("iree " + version(), std::move(argv), context), context));
  }
};

}  // namespace

std::unique_ptr<Toolchain> make_iree_toolchain() { return std::make_unique<IreeToolchain>(); }

}  // namespace layerfarm::worker::toolchain
