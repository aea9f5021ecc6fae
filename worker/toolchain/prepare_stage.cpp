#include "worker/toolchain/prepare_stage.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "shared/base/files.h"
#include "shared/domain/half.h"
#include "worker/cache/materialise.h"
#include "worker/toolchain/ort_helper.h"
#include "worker/toolchain/second_try.h"
#include "worker/toolchain/tool_results.h"
#include "worker/toolchain/tool_step.h"

namespace layerfarm::worker::toolchain {
namespace {

namespace fs = std::filesystem;
using domain::DType;
using domain::Ending;
using domain::Outcome;
using domain::TensorType;
using nlohmann::json;

/// How one engine went.
struct Tried {
  Ending ending = Ending::Infrastructure;
  domain::Diagnostic diagnostic;
  std::vector<base::Digest> lost;
  std::vector<TensorType> types;
  std::vector<fs::path> outputs;
  std::string engine;
};

Tried tried(RunResult run, std::string engine) {
  return {.ending = run.ending,
          .diagnostic = std::move(run.diagnostic),
          .lost = std::move(run.lost),
          .types = std::move(run.types),
          .outputs = std::move(run.outputs),
          .engine = std::move(engine)};
}

Tried broken(const base::Error& error, std::string engine) {
  return {.ending = Ending::Infrastructure,
          .diagnostic = infrastructure("reference", error),
          .lost = {},
          .types = {},
          .outputs = {},
          .engine = std::move(engine)};
}

/// Whether another engine may succeed where this one ended so. A time or memory limit says more
/// about the machine than about the engine: the job is tried again as a whole, so that the engine
/// that answers does not depend on the load.
bool try_the_next(Ending ending) {
  return ending == Ending::Refused || ending == Ending::Crashed || ending == Ending::OverOutput;
}

base::Bytes widened(const base::Bytes& narrow) {
  base::Bytes out(narrow.size() * 2, '\0');
  for (std::size_t i = 0; i < narrow.size() / 2; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, narrow.data() + 2 * i, sizeof bits);
    const float value = domain::bfloat16_to_float(bits);
    std::memcpy(out.data() + 4 * i, &value, sizeof value);
  }
  return out;
}

base::Bytes narrowed(const base::Bytes& wide) {
  base::Bytes out(wide.size() / 2, '\0');
  for (std::size_t i = 0; i < wide.size() / 4; ++i) {
    float value = 0;
    std::memcpy(&value, wide.data() + 4 * i, sizeof value);
    const std::uint16_t bits = domain::float_to_bfloat16(value);
    std::memcpy(out.data() + 2 * i, &bits, sizeof bits);
  }
  return out;
}

class Preparation {
 public:
  Preparation(const domain::Layer& layer, const domain::InputSet& inputs, StepContext& context)
      : layer_(layer), set_(inputs), context_(context) {
    out_.stage = domain::Stage::Prepare;
  }

  Outcome go() {
    if (!make_inputs()) return std::move(out_);
    std::optional<Tried> first;
    for (const Engine engine : engines()) {
      std::optional<Tried> now = (this->*engine)();
      if (!now) continue;
      if (now->ending == Ending::Done) return keep(std::move(*now));
      const bool more = try_the_next(now->ending);
      // Only a layer that every engine was asked about is refused by all; the first one's words are
      // the ones people know.
      if (!first || !more) first = std::move(now);
      if (!more) break;
    }
    out_.ending = first->ending;
    out_.diagnostic = std::move(first->diagnostic);
    out_.diagnostic.where = "reference";
    out_.lost = std::move(first->lost);
    out_.tool = std::move(first->engine);
    return std::move(out_);
  }

 private:
  using Engine = std::optional<Tried> (Preparation::*)();

  /// In the order of the original. Where ONNX Runtime lacks bfloat16, it computes these operators
  /// wide by itself and leaves all others to IREE, whose rounding inside an operator (the
  /// exponential of a Sigmoid) may be off by more than a tolerance: with another reference layers
  /// would get other verdicts here than there.
  [[nodiscard]] std::array<Engine, 3> engines() const {
    static constexpr std::array<std::string_view, 5> kWide = {"MatMul", "Einsum", "MaxPool",
                                                              "GlobalAveragePool", "Gelu"};
    if (std::find(kWide.begin(), kWide.end(), layer_.op_type) != kWide.end())
      return {&Preparation::by_onnxruntime, &Preparation::by_wide_onnxruntime,
              &Preparation::by_iree};
    return {&Preparation::by_onnxruntime, &Preparation::by_iree, &Preparation::by_wide_onnxruntime};
  }

  bool end(Ending ending, domain::Diagnostic why) {
    out_.ending = ending;
    out_.diagnostic = std::move(why);
    return false;
  }

  // --- inputs ---

  bool make_inputs() {
    std::uint64_t bytes = 0;
    for (const domain::InputSpec& input : layer_.inputs) {
      if (__builtin_add_overflow(bytes, input.type.bytes(), &bytes)) bytes = UINT64_MAX;
    }
    if (bytes > static_cast<std::uint64_t>(context_.limits.memory_bytes)) {
      return end(
          Ending::OverMemory,
          diagnostic("inputs",
                     "used more than " + std::to_string(context_.limits.memory_bytes >> 20) +
                         " MiB of memory",
                     "the layer's inputs alone take " + std::to_string(bytes >> 20) + " MiB"));
    }
    auto drawn = domain::draw_inputs(layer_.inputs, layer_.draw_order, set_.seed);
    if (!drawn) return end(Ending::Refused, diagnostic("inputs", "refused", drawn.error().text()));
    if (!set_.folder.is_zero() && !take_given(*drawn)) return false;
    prepared_.emplace();
    for (const domain::Tensor& tensor : *drawn) {
      const auto blob = context_.blobs.put(tensor.data);
      if (!blob) return end(Ending::Infrastructure, infrastructure("inputs", blob.error()));
      prepared_->inputs.push_back(*blob);
    }
    return true;
  }

  /// Puts the user's arrays in the place of drawn ones. A layer inside a model has inputs that no
  /// folder names: those stay drawn.
  bool take_given(std::vector<domain::Tensor>& tensors) {
    json request = {{"op", "read_inputs"}, {"folder", set_.path}, {"inputs", json::array()}};
    for (std::size_t i = 0; i < tensors.size() && i < layer_.input_names.size(); ++i) {
      request["inputs"].push_back({{"name", layer_.input_names[i]},
                                   {"dtype", static_cast<int>(tensors[i].type.dtype)},
                                   {"dims", tensors[i].type.dims},
                                   {"out", given_file(i).string()},
                                   {"optional", true}});
    }
    HelperAnswer answer = context_.helpers.sidecar(
        request.dump(-1, ' ', false, json::error_handler_t::replace), run_bounds(context_.limits));
    if (answer.ending != Ending::Done) {
      answer.diagnostic.where = "inputs";
      return end(answer.ending, std::move(answer.diagnostic));
    }
    const json files =
        json::parse(answer.json, nullptr, /*allow_exceptions=*/false).value("files", json::array());
    for (std::size_t i = 0; i < files.size() && i < tensors.size(); ++i) {
      if (files[i].is_null()) continue;
      auto bytes = base::read_file(given_file(i), std::uint64_t{1} << 34);
      if (!bytes) return end(Ending::Infrastructure, infrastructure("inputs", bytes.error()));
      if (bytes->size() != tensors[i].type.bytes()) {
        return end(Ending::Refused, diagnostic("inputs", "refused",
                                               "the array for input '" + layer_.input_names[i] +
                                                   "' has another size than the input"));
      }
      tensors[i].data = std::move(*bytes);
    }
    return true;
  }

  [[nodiscard]] fs::path given_file(std::size_t index) const {
    return context_.scratch / ("given_" + std::to_string(index) + ".bin");
  }

  // --- engines ---

  /// A context whose scratch folder is an engine's own.
  [[nodiscard]] base::Result<StepContext> own_context(const std::string& name) const {
    StepContext own = context_;
    own.scratch = context_.scratch / name;
    std::error_code error;
    fs::create_directories(own.scratch, error);
    if (error) return base::fail(base::os_error("making " + own.scratch.string(), error.value()));
    return own;
  }

  /// Another engine's outputs would stay the reference of this layer for good.
  static RunResult run_reference(const OrtSession& session, const std::vector<OrtInput>& inputs,
                                 StepContext& own) {
    return second_try([&] { return ort_run(session, inputs, own); });
  }

  std::optional<Tried> by_onnxruntime() {
    const std::string engine = "onnxruntime " + onnxruntime_version();
    auto own = own_context("onnxruntime");
    if (!own) return broken(own.error(), engine);
    const cache::Placed placed =
        cache::place_module(context_.blobs, layer_.module, own->scratch / "module", "layer");
    if (!placed.ok()) return tried(not_placed(placed), engine);
    OrtSession session;
    session.model = placed.module;
    return tried(run_reference(session, prepared_inputs(layer_, *prepared_, context_.blobs), *own),
                 engine);
  }

  std::optional<Tried> by_wide_onnxruntime() {
    if (!layer_.wide_module) return std::nullopt;
    const std::string engine = "onnxruntime " + onnxruntime_version() + " (float32, rounded)";
    auto own = own_context("wide");
    if (!own) return broken(own.error(), engine);
    const cache::Placed placed =
        cache::place_module(context_.blobs, *layer_.wide_module, own->scratch / "module", "layer");
    if (!placed.ok()) return tried(not_placed(placed), engine);
    std::vector<OrtInput> inputs = prepared_inputs(layer_, *prepared_, context_.blobs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].type.dtype != DType::BFloat16) continue;
      const auto narrow = context_.blobs.get(prepared_->inputs[i]);
      if (!narrow) return broken(narrow.error(), engine);
      inputs[i] = {.file = own->scratch / ("wide_" + std::to_string(i) + ".bin"),
                   .type = {DType::Float32, inputs[i].type.dims}};
      if (auto written =
              base::write_file_atomically(inputs[i].file, widened(*narrow), base::Sync::No);
          !written)
        return broken(written.error(), engine);
    }
    OrtSession session;
    session.model = placed.module;
    Tried out = tried(run_reference(session, inputs, *own), engine);
    for (std::size_t i = 0; i < out.outputs.size() && i < layer_.outputs.size(); ++i) {
      if (layer_.outputs[i].dtype != DType::BFloat16 || out.types[i].dtype != DType::Float32)
        continue;
      const auto wide = base::read_file(out.outputs[i], std::uint64_t{1} << 34);
      if (!wide) return broken(wide.error(), engine);
      if (auto written =
              base::write_file_atomically(out.outputs[i], narrowed(*wide), base::Sync::No);
          !written)
        return broken(written.error(), engine);
      out.types[i].dtype = DType::BFloat16;
    }
    return out;
  }

  std::optional<Tried> by_iree() {
    const std::unique_ptr<Toolchain> iree = make_toolchain("iree");
    domain::ExecutorSpec executor;
    executor.name = "llvm-cpu";
    executor.options = {{"backend", "llvm-cpu"}};
    domain::ChipSpec chip;
    chip.name = "reference";
    chip.target = "host";
    chip.toolchain = "iree";
    chip.executors = {executor};
    const Probe probe = iree->probe(chip);
    if (!probe.found) return std::nullopt;
    const std::string engine = "iree " + probe.identity.version + " (llvm-cpu)";
    auto own = own_context("iree");
    if (!own) return broken(own.error(), engine);
    const CompileJob job{.layer = &layer_};
    std::vector<Outcome> compiled = iree->compile(chip, executor, {&job, 1}, *own);
    if (compiled.size() != 1) return std::nullopt;
    Outcome& artifact = compiled.front();
    if (artifact.ending != Ending::Done || !artifact.artifact) {
      return Tried{.ending = artifact.ending,
                   .diagnostic = std::move(artifact.diagnostic),
                   .lost = std::move(artifact.lost),
                   .types = {},
                   .outputs = {},
                   .engine = engine};
    }
    return tried(
        iree->run(chip, executor,
                  {.layer = &layer_, .artifact = &*artifact.artifact, .prepared = &*prepared_},
                  *own),
        engine);
  }

  // --- the result ---

  Outcome keep(Tried done) {
    for (const fs::path& output : done.outputs) {
      const auto blob = context_.blobs.put_file(output);
      if (!blob) {
        end(Ending::Infrastructure, infrastructure("reference", blob.error()));
        return std::move(out_);
      }
      prepared_->expected.push_back(*blob);
    }
    prepared_->expected_types = std::move(done.types);
    prepared_->reference = done.engine;
    out_.ending = Ending::Done;
    out_.tool = std::move(done.engine);
    out_.prepared = std::move(prepared_);
    return std::move(out_);
  }

  const domain::Layer& layer_;
  const domain::InputSet& set_;
  StepContext& context_;
  Outcome out_;
  std::optional<domain::Prepared> prepared_;
};

}  // namespace

Outcome prepare_stage(const domain::Layer& layer, const domain::InputSet& inputs,
                      StepContext& context) {
  const auto started = std::chrono::steady_clock::now();
  Outcome out;
  if (auto folder = base::ScratchFolder::make(context.scratch, "prepare"); folder) {
    StepContext own = context;
    own.scratch = folder->path();
    out = Preparation(layer, inputs, own).go();
  } else {
    out.stage = domain::Stage::Prepare;
    out.ending = Ending::Infrastructure;
    out.diagnostic = infrastructure("reference", folder.error());
  }
  out.took_us = std::chrono::duration_cast<std::chrono::microseconds>(
                    std::chrono::steady_clock::now() - started)
                    .count();
  return out;
}

}  // namespace layerfarm::worker::toolchain
