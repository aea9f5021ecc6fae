#include "worker/toolchain/whole_stage.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "shared/base/file_bundle.h"
#include "shared/base/files.h"
#include "shared/protocol/codec.h"
#include "worker/toolchain/execute_stage.h"
#include "worker/toolchain/ir_dump.h"
#include "worker/toolchain/prepare_stage.h"
#include "worker/toolchain/tool_step.h"

namespace layerfarm::worker::toolchain {
namespace {

using base::Digest;
using domain::Ending;
using domain::Layer;
using domain::Outcome;
using domain::TensorType;

/// A tensor of the model while it runs.
struct Value {
  Digest blob;
  TensorType type;
  std::string executor;  ///< that made it; empty for the model's inputs
};

/// Tools know a segment's nodes by the names in its module; people know the model's operators. Puts
/// these behind each quoted `n7`.
std::string with_operators(const std::string& text, const std::vector<std::string>& nodes) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if ((text[i] != '`' && text[i] != '\'' && text[i] != '"') || text[i + 1] != 'n') continue;
    const char* const digits = text.data() + i + 2;
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(digits, text.data() + text.size(), number);
    if (error != std::errc() || end == text.data() + text.size() || *end != text[i] ||
        number >= nodes.size())
      continue;
    out.append(text, i + 1, static_cast<std::size_t>(end - text.data()) - i);
    out += " (" + nodes[number] + ")";
    i = static_cast<std::size_t>(end - text.data());
  }
  return out;
}

class WholeStage {
 public:
  WholeStage(Toolchain& toolchain, const domain::ChipSpec& chip,
             const domain::WholeRequest& request, const domain::Tolerance& tolerance,
             StepContext& context)
      : toolchain_(toolchain),
        chip_(chip),
        request_(request),
        tolerance_(tolerance),
        context_(context),
        needs_(toolchain.needs(chip)) {
    out_.stage = domain::Stage::Whole;
  }

  Outcome go(const domain::InputSet& inputs) {
    if (read_model() && check_model() && prepare(inputs) && plan() && compile() && run() &&
        compare()) {
      out_.ending = Ending::Done;
      out_.whole = std::move(run_);
    }
    // Also of what the compiler refused.
    if (!dumps_.empty()) {
      if (const auto blob = context_.blobs.put(base::encode_bundle(dumps_))) out_.ir_dump = *blob;
    }
    return std::move(out_);
  }

 private:
  /// What is compiled and run at once: a segment, or the model.
  struct Step {
    const Layer* layer = nullptr;
    const domain::ExecutorSpec* executor = nullptr;
    const std::vector<std::string>* nodes = nullptr;  ///< domain::Segment::nodes
    domain::SegmentRun run;
    std::optional<domain::Artifact> artifact;
  };

  bool end(Ending ending, domain::Diagnostic why, std::vector<Digest> lost = {}) {
    out_.ending = ending;
    out_.diagnostic = std::move(why);
    out_.lost = std::move(lost);
    return false;
  }
  bool end(const std::string& where, const base::Error& error) {
    return end(Ending::Infrastructure, infrastructure(where, error));
  }
  /// The end of one step is the end of all.
  bool end(const Step& step, Ending ending, domain::Diagnostic why, std::vector<Digest> lost) {
    if (step.nodes != nullptr) why.text = with_operators(why.text, *step.nodes);
    if (steps_.size() > 1)
      why.text = step.layer->id + " on " + step.executor->name + ": " + why.text;
    return end(ending, std::move(why), std::move(lost));
  }

  bool read_model() {
    const auto bytes = context_.blobs.get(request_.analysis);
    if (!bytes) {
      const bool gone = bytes.error().code == base::ErrorCode::NotFound ||
                        bytes.error().code == base::ErrorCode::Corrupt;
      if (!gone) return end("import", bytes.error());
      return end(Ending::LostBlob, diagnostic("import", "lost blob", ""), {request_.analysis});
    }
    auto model = protocol::decode_analysis(*bytes);
    if (!model) return end("import", model.error());
    model_ = std::move(*model);
    reference_ = domain::reference_layer(model_, request_.check_boundaries);
    whole_ = domain::reference_layer(model_, /*check_boundaries=*/false);
    return reference_ != nullptr ||
           end(Ending::Refused, diagnostic("import", "refused", "the analysis has no segments"));
  }

  bool check_model() {
    if (!needs_.prepare) {
      return end(Ending::Refused,
                 diagnostic("run", "refused",
                            "the toolchain '" + chip_.toolchain +
                                "' takes no inputs, so there is nothing to compare"));
    }
    if (!reference_->problem.empty())
      return end(Ending::Refused, diagnostic("prepare", "untestable", reference_->problem));
    return true;
  }

  bool prepare(const domain::InputSet& inputs) {
    Outcome prepared = prepare_stage(*reference_, inputs, context_);
    if (prepared.ending != Ending::Done)
      return end(prepared.ending, std::move(prepared.diagnostic), std::move(prepared.lost));
    prepared_ = std::move(*prepared.prepared);
    run_.reference = prepared_.reference;
    for (std::size_t i = 0; i < reference_->input_names.size(); ++i) {
      values_[reference_->input_names[i]] = {prepared_.inputs[i], reference_->inputs[i].type, ""};
    }
    for (std::size_t i = 0; i < reference_->output_names.size(); ++i)
      place_in_reference_[reference_->output_names[i]] = i;
    return true;
  }

  bool plan() {
    if (needs_.takes_map && !request_.executors.empty()) {
      Step& step = steps_.emplace_back();
      step.layer = whole_;
      // No executor's own options are those of all.
      chip_.executors.front().options.clear();
      step.executor = &chip_.executors.front();
      step.run.executor = "by map";
      step.run.operators = model_.operators;
      return true;
    }
    for (std::size_t i = 0; i < model_.segments.size(); ++i) {
      Step& step = steps_.emplace_back();
      step.layer = &model_.layers[i];
      step.executor = chip_.executor(model_.segments[i].executor);
      step.nodes = &model_.segments[i].nodes;
      step.run.executor = model_.segments[i].executor;
      step.run.operators = model_.segments[i].operators;
      if (step.executor == nullptr) {
        return end(Ending::Refused, diagnostic("compile", "refused",
                                               "chip " + chip_.name + " has no executor '" +
                                                   step.run.executor + "'"));
      }
      if (!step.layer->problem.empty())
        return end(Ending::Refused, diagnostic("prepare", "untestable",
                                               step.layer->id + ": " + step.layer->problem));
    }
    return true;
  }

  /// Segments of one executor together where the toolchain gains by it.
  bool compile() {
    if (!needs_.compile) return true;
    for (const domain::ExecutorSpec& executor : chip_.executors) {
      std::vector<Step*> wanted;
      for (Step& step : steps_) {
        if (step.executor == &executor) wanted.push_back(&step);
      }
      const std::size_t batch = std::max<std::size_t>(needs_.batch, 1);
      for (std::size_t begin = 0; begin < wanted.size(); begin += batch) {
        const std::size_t count = std::min(batch, wanted.size() - begin);
        if (!compile(executor, {wanted.data() + begin, count})) return false;
      }
    }
    return true;
  }

  bool compile(const domain::ExecutorSpec& executor, std::span<Step* const> steps) {
    std::vector<CompileJob> jobs;
    for (const Step* step : steps) {
      CompileJob& job = jobs.emplace_back();
      job.layer = step->layer;
      if (step->layer == whole_ && needs_.takes_map && !request_.executors.empty())
        job.executors = &request_.executors;
    }
    std::vector<Outcome> compiled = compile_stage(toolchain_, chip_, executor, jobs, context_);
    for (std::size_t i = 0; i < steps.size() && i < compiled.size(); ++i)
      take_dump(compiled[i], *steps[i]);
    for (std::size_t i = 0; i < steps.size() && i < compiled.size(); ++i) {
      Outcome& outcome = compiled[i];
      out_.tool = outcome.tool;
      if (outcome.ending != Ending::Done || !outcome.artifact)
        return end(*steps[i], outcome.ending, std::move(outcome.diagnostic),
                   std::move(outcome.lost));
      steps[i]->artifact = std::move(*outcome.artifact);
      steps[i]->run.note = steps[i]->artifact->note;
    }
    return true;
  }

  /// What the compiler wrote of its intermediate forms. Segments have a folder each.
  void take_dump(const Outcome& compiled, const Step& step) {
    if (!compiled.ir_dump) return;
    const auto bytes = context_.blobs.get(*compiled.ir_dump);
    auto files = bytes ? base::decode_bundle(*bytes)
                       : base::Result<std::vector<base::BundledFile>>(base::fail(bytes.error()));
    if (!files) return;  // a dump that is missing is no reason for a run to fail
    const auto number = static_cast<std::size_t>(&step - steps_.data()) + 1;
    const std::string folder =
        steps_.size() == 1 ? std::string()
                           : "segment_" + std::to_string(number) + "_" + step.executor->name + "/";
    dumped_bytes_ += bytes->size();
    if (dumped_bytes_ > kMostDumpBytes) {
      dumps_.push_back(
          {folder + "left_out.txt", "all of it; the whole run's dumps are too large\n"});
      return;
    }
    for (base::BundledFile& file : *files)
      dumps_.push_back({folder + file.path, std::move(file.content)});
  }

  bool run() {
    return std::all_of(steps_.begin(), steps_.end(), [this](Step& step) { return run(step); });
  }

  bool run(Step& step) {
    domain::Prepared given;
    for (std::size_t i = 0; i < step.layer->input_names.size(); ++i) {
      const std::string& name = step.layer->input_names[i];
      const auto value = values_.find(name);
      if (value == values_.end()) {
        return end(step, Ending::Refused,
                   diagnostic("run", "refused", "nothing gave its input '" + name + "'"), {});
      }
      given.inputs.push_back(value->second.blob);
      count_crossing(name, value->second, step);
    }
    auto folder = base::ScratchFolder::make(context_.scratch, "segment");
    if (!folder) return end("run", folder.error());
    StepContext own = context_;
    own.scratch = folder->path();
    RunResult result = toolchain_.run(chip_, *step.executor,
                                      {.layer = step.layer,
                                       .artifact = step.artifact ? &*step.artifact : nullptr,
                                       .prepared = &given},
                                      own);
    if (result.ending != Ending::Done)
      return end(step, result.ending, std::move(result.diagnostic), std::move(result.lost));
    if (result.outputs.size() != step.layer->output_names.size()) {
      return end(step, Ending::Refused,
                 diagnostic("run", "refused",
                            "it gave " + std::to_string(result.outputs.size()) + " results, not " +
                                std::to_string(step.layer->output_names.size())),
                 {});
    }
    step.run.run_us = result.run_us;
    if (!result.note.empty()) step.run.note = std::move(result.note);
    for (std::size_t i = 0; i < result.outputs.size(); ++i) {
      const auto blob = context_.blobs.put_file(result.outputs[i]);
      if (!blob) return end("run", blob.error());
      values_[step.layer->output_names[i]] = {*blob, result.types[i], step.executor->name};
    }
    return true;
  }

  /// A tensor goes to an executor once, however many segments take it there.
  void count_crossing(const std::string& name, const Value& value, const Step& step) {
    if (value.executor.empty() || value.executor == step.executor->name) return;
    if (crossed_.emplace(name, step.executor->name).second)
      run_.bytes_crossed += value.type.bytes();
  }

  bool compare() {
    run_.expected_outputs = whole_->output_names.size();
    if (!compare(*whole_, run_.outputs)) return false;
    for (Step& step : steps_) {
      step.run.results = step.layer->output_names;
      if (request_.check_boundaries && !compare(*step.layer, step.run.boundary)) return false;
      run_.segments.push_back(std::move(step.run));
    }
    return true;
  }

  /// All results of a segment or of the model.
  bool compare(const Layer& layer, std::vector<domain::Comparison>& into) {
    for (std::size_t i = 0; i < layer.output_names.size(); ++i) {
      const std::size_t place = place_in_reference_.at(layer.output_names[i]);
      const Value& value = values_.at(layer.output_names[i]);
      const auto expected = context_.blobs.get(prepared_.expected[place]);
      if (!expected) return end("compare", expected.error());
      const auto actual = context_.blobs.get(value.blob);
      if (!actual) return end("compare", actual.error());
      into.push_back(compare_result(layer, i, prepared_.expected_types[place], *expected,
                                    value.type, *actual, tolerance_));
    }
    return true;
  }

  Toolchain& toolchain_;
  domain::ChipSpec chip_;
  const domain::WholeRequest& request_;
  const domain::Tolerance& tolerance_;
  StepContext& context_;
  const Needs needs_;
  domain::ModelAnalysis model_;
  const Layer* whole_ = nullptr;
  const Layer* reference_ = nullptr;
  domain::Prepared prepared_;
  std::vector<Step> steps_;
  std::unordered_map<std::string, Value> values_;
  std::unordered_map<std::string, std::size_t> place_in_reference_;
  std::set<std::pair<std::string, std::string>> crossed_;  ///< value, executor that got it
  std::vector<base::BundledFile> dumps_;
  std::uint64_t dumped_bytes_ = 0;
  domain::WholeRun run_;
  Outcome out_;
};

}  // namespace

Outcome whole_stage(Toolchain& toolchain, const domain::ChipSpec& chip,
                    const domain::WholeRequest& request, const domain::InputSet& inputs,
                    const domain::Tolerance& tolerance, StepContext& context) {
  const auto begun = std::chrono::steady_clock::now();
  Outcome out = WholeStage(toolchain, chip, request, tolerance, context).go(inputs);
  out.took_us = std::chrono::duration_cast<std::chrono::microseconds>(
                    std::chrono::steady_clock::now() - begun)
                    .count();
  return out;
}

}  // namespace layerfarm::worker::toolchain
