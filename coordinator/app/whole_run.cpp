#include "coordinator/app/whole_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "coordinator/app/asked_names.h"
#include "coordinator/app/layer_facts.h"
#include "coordinator/app/model_changes.h"
#include "coordinator/app/model_reading.h"
#include "coordinator/report/compiler_map.h"
#include "shared/base/files.h"
#include "shared/base/text.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::ErrorCode;
using base::fail;
using base::Result;

namespace {

base::Error no_answer(const SequencedEnd& end) {
  return {end.interrupted ? ErrorCode::Cancelled : ErrorCode::Unavailable, end.reason};
}

/// The quantizer's conversions are no layers and have no executor, but a map counts them.
Result<void> add_conversions(const domain::ModelAnalysis& split,
                             std::vector<std::string>& executors) {
  if (executors.empty() || executors.size() == split.operators) return {};
  std::vector<std::string> out;
  auto next = executors.begin();
  for (const domain::SourceLocation& place : split.locations) {
    const bool converts = place.op_type == "QuantizeLinear" || place.op_type == "DequantizeLinear";
    if (!converts && next == executors.end()) break;
    out.push_back(converts ? std::string() : *next++);
  }
  if (next != executors.end() || out.size() != split.operators) {
    return fail(ErrorCode::InvalidInput,
                "the quantized model has " + std::to_string(split.operators) +
                    " operators, the importer sees others; without them no executor has a place");
  }
  executors = std::move(out);
  return {};
}

/// A file with entries that the model has no place for was made for another model.
base::Error other_model(const fs::path& file, const std::string& model, const char* what,
                        std::vector<std::string> missing) {
  constexpr std::size_t kNamed = 3;
  const std::size_t more = missing.size() > kNamed ? missing.size() - kNamed : 0;
  missing.resize(missing.size() - more);
  std::string names = base::join(missing);
  if (more > 0) names += " and " + std::to_string(more) + " more";
  return {ErrorCode::Incompatible, file.string() + " is of another model: " + model + " has no " +
                                       what + " " + names + "; discover again"};
}

std::string place_text(const domain::SourceLocation& place) {
  return std::to_string(place.line) + ":" + std::to_string(place.column);
}

/// Notes of the second reading of a model that the first one does not have.
domain::ModelAnalysis further_notes(const domain::ModelAnalysis& first,
                                    const domain::ModelAnalysis& second) {
  domain::ModelAnalysis out;
  std::copy_if(second.notes.begin(), second.notes.end(), std::back_inserter(out.notes),
               [&](const std::string& note) {
                 return std::find(first.notes.begin(), first.notes.end(), note) ==
                        first.notes.end();
               });
  return out;
}

}  // namespace

Result<WholeRunResult> WholeModelRun::go() {
  auto out = steps();
  dispatcher_->shut_down();
  return out;
}

Result<WholeRunResult> WholeModelRun::steps() {
  const domain::AnalyzeRequest plain = analyze_request(request_.options.common, request_.model);
  const auto digest = base::digest_of_file(plain.model_path);
  if (!digest) return fail(digest.error());
  auto whole = read(*digest, plain);
  if (!whole) return fail(std::move(whole.error()));
  say_notes(*whole->model, request_.model.filename().string(), "", console_);
  WholeRunResult out;
  LayerFactsResult facts = layer_facts(*whole->model, {});
  if (!facts.warning.empty()) console_.say("[ONNXtoMLIR] " + facts.warning);
  for (const report::LayerFacts& layer : facts.layers) out.locations[layer.id] = layer.location;
  auto executors = executors_of(*whole->model, out.locations);
  if (!executors) return fail(std::move(executors.error()));

  domain::AnalyzeRequest request = plain;
  request.assignment = *executors;
  if (request_.takes_map) {
    // One segment whatever the map says, so every assignment shares it.
    std::fill(request.assignment.begin(), request.assignment.end(), std::string());
  } else {
    executors->clear();
  }
  auto split = read(*digest, request);
  if (!split) return fail(std::move(split.error()));
  say_notes(further_notes(*whole->model, *split->model), request_.model.filename().string(), "",
            console_);
  say_open_outputs(*split->model);
  if (auto fits = check_given(*split->model); !fits) return fail(fits.error());
  if (auto fits = add_conversions(*split->model, *executors); !fits) return fail(fits.error());
  auto result = run(*split, std::move(*executors), out);
  if (!result) return fail(std::move(result.error()));
  out.result = std::move(*result);
  return out;
}

Result<WholeModelRun::Read> WholeModelRun::read(const base::Digest& model_file,
                                                const domain::AnalyzeRequest& request) {
  SequencedJob job;
  job.analyze = request;
  StoredReading stored = find_reading(
      request_.cache, request.model_path, domain::analyze_key(model_file, request, request_.reader),
      [this](const base::Digest& key) -> std::optional<base::Digest> {
        const auto known = store_.find(key);
        return known ? known->outcome.analysis : std::nullopt;
      });
  job.key = stored.key;
  if (stored.model && !request_.options.common.recompute) {
    sequence_.add_known(*dispatcher_, std::move(job));
    return Read{std::move(stored.model), stored.blob};
  }
  const SequencedEnd end = sequence_.run(*dispatcher_, std::move(job));
  if (!end.outcome) return fail(no_answer(end));
  const std::string file = request_.model.filename().string();
  if (end.outcome->ending != domain::Ending::Done || !end.outcome->analysis) {
    const std::string why = reading_problem(*end.outcome);
    return fail(ErrorCode::InvalidInput, why.starts_with(file + ": ") ? why : file + ": " + why);
  }
  auto model = stored_analysis(request_.cache, request.model_path, *end.outcome->analysis);
  if (!model) return fail(std::move(model.error()));
  return Read{std::move(*model), *end.outcome->analysis};
}

/// A pass says nothing of outputs that are not compared.
void WholeModelRun::say_open_outputs(const domain::ModelAnalysis& split) {
  const domain::Layer* whole = domain::reference_layer(split, /*check_boundaries=*/false);
  if (whole == nullptr || whole->open_outputs.empty()) return;
  std::vector<std::string> names;
  for (const std::uint32_t place : whole->open_outputs) names.push_back(whole->output_names[place]);
  const bool all = names.size() == whole->output_names.size();
  console_.say(fmt::format(
      "[Model] {}: not compared, as the model's format leaves open what is in them (random "
      "numbers, for one): {} of {} output(s), {}{}",
      request_.model.filename().string(), names.size(), whole->output_names.size(),
      base::join(names), all ? "; so this run shows only that the model runs" : ""));
}

/// Only inputs of the whole model come from arrays.
Result<void> WholeModelRun::check_given(const domain::ModelAnalysis& split) {
  const domain::Layer* whole = domain::reference_layer(split, request_.options.check_boundaries);
  if (whole == nullptr) return {};
  domain::ModelAnalysis model;
  model.layers = {*whole};
  const ReadModel read{request_.model.stem().string(), &model};
  const AskedNames names = check_inputs(request_.inputs, {&read, 1});
  if (!names.errors.empty()) return fail(ErrorCode::InvalidInput, base::join(names.errors, "; "));
  for (const std::string& line : names.lines) console_.say(line);
  return {};
}

/// By operator; where segments are made, nothing that is a layer stays without one.
Result<std::vector<std::string>> WholeModelRun::executors_of(
    const domain::ModelAnalysis& model, const std::map<std::string, std::string>& locations) {
  if (model.operators == 0) {
    return fail(ErrorCode::InvalidInput,
                "nothing says which operator is which layer: " +
                    (model.location_problem.empty() ? "it has none" : model.location_problem));
  }
  std::vector<report::OperatorPlace> operators(model.operators);
  if (model.locations.size() == model.operators) {
    for (std::size_t i = 0; i < operators.size(); ++i)
      operators[i].place = place_text(model.locations[i]);
  } else if (request_.assignment.by_layer.empty() && !request_.assignment.by_place.empty()) {
    return fail(
        ErrorCode::InvalidInput,
        "the compiler file goes by line numbers, and this model has none (" +
            (model.location_problem.empty() ? std::string("the importer sees other operators")
                                            : model.location_problem) +
            "); run discover, then run by its report");
  }
  report::AssignmentFile file = request_.assignment;
  for (const domain::Layer& layer : model.layers) {
    if (!layer.node_index || *layer.node_index >= operators.size()) {
      file.by_layer.erase(layer.id);  // the quantizer fused it into its neighbour
      continue;
    }
    operators[*layer.node_index].layer_id = layer.id;
    // A place where another operator stands in the module is none.
    if (!report::is_line_and_column(locations.at(layer.id)))
      operators[*layer.node_index].place.clear();
  }
  const auto& chip = request_.chip->spec;
  std::vector<std::string> names;
  for (const domain::ExecutorSpec& executor : chip.executors) names.push_back(executor.name);
  report::Assigned assigned = report::assign(file, operators, names);
  const auto say = [&](std::size_t count, const std::string& what) {
    if (count > 0) console_.say(fmt::format("[ExecutorAssignments] {} {}", count, what));
  };
  const std::string model_file = request_.model.filename().string();
  if (!assigned.unmatched_layers.empty()) {
    return fail(other_model(request_.assignment_path, model_file, "layer",
                            std::move(assigned.unmatched_layers)));
  }
  // Beside layers, lines are the weaker word: they may be of an older import of the same model.
  if (request_.assignment.by_layer.empty() && !assigned.unmatched_places.empty()) {
    return fail(other_model(request_.assignment_path, model_file, "operator at line",
                            std::move(assigned.unmatched_places)));
  }
  say(assigned.unmatched_places.size(), "lines of the file are of no operator of this model");
  say(assigned.unknown_executors,
      "entries name executors that chip " + chip.name + " does not have; they are not used");
  if (request_.takes_map) {
    say(assigned.unassigned, "layers have no executor; the compiler chooses");
    return std::move(assigned.executors);
  }
  std::size_t left = 0;
  const bool chosen = std::any_of(assigned.executors.begin(), assigned.executors.end(),
                                  [](const std::string& name) { return !name.empty(); });
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const std::string& id = operators[i].layer_id;
    // Pooling that is quantized has none on purpose: it goes with what it pools.
    if (!assigned.executors[i].empty() || id.empty() || (chosen && goes_with_neighbours(id)))
      continue;
    assigned.executors[i] = names.back();
    ++left;
  }
  say(left, "layers have no executor; they run on " + names.back());
  return std::move(assigned.executors);
}

bool WholeModelRun::goes_with_neighbours(const std::string& layer_id) const {
  const DiscoverOptions& options = request_.options.common;
  return options.quantize.enabled && options.subgraph_from.empty() &&
         layer_id.starts_with("MaxPool_");
}

Result<report::WholeResult> WholeModelRun::run(const Read& split,
                                               std::vector<std::string> executors,
                                               WholeRunResult& out) {
  SequencedJob job;
  job.whole =
      domain::WholeRequest{split.blob, std::move(executors), request_.options.check_boundaries};
  job.chip = request_.chip;
  job.inputs = request_.inputs.set;
  job.tolerance = request_.tolerance;
  job.key = domain::whole_key(*job.whole, *split.model, request_.inputs.set, request_.chip->spec,
                              request_.chip->tool, request_.reference);
  if (const auto known = store_.find(job.key); known && !request_.options.common.recompute) {
    if (auto result = report::judge_whole(known->outcome, request_.tolerance)) {
      out.ir_dump = known->outcome.ir_dump;
      return std::move(*result);
    }
  }
  out.fresh = true;
  const SequencedEnd end = sequence_.run(*dispatcher_, std::move(job));
  if (!end.outcome) return fail(no_answer(end));
  out.ir_dump = end.outcome->ir_dump;
  auto result = report::judge_whole(*end.outcome, request_.tolerance);
  if (!result) return fail(ErrorCode::Internal, "its numbers do not decide at this tolerance");
  return std::move(*result);
}

}  // namespace layerfarm::coordinator::app
