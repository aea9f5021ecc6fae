#include "worker/toolchain/analyze_stage.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "shared/base/build_info.h"
#include "shared/protocol/codec.h"
#include "worker/toolchain/tool_step.h"

namespace layerfarm::worker::toolchain {
namespace {

using domain::Ending;
using domain::ModelAnalysis;
using domain::Outcome;

/// What people should know when operators and layers do not pair up: then locations cannot be
/// trusted.
void compare_with_layers(ModelAnalysis& analysis) {
  if (analysis.locations.size() != analysis.operators) {
    analysis.notes.push_back("the importer sees " + std::to_string(analysis.locations.size()) +
                             " operators, the model has " + std::to_string(analysis.operators));
  }
  constexpr int kMostListed = 5;
  int listed = 0;
  for (const domain::Layer& layer : analysis.layers) {
    if (!layer.node_index || *layer.node_index >= analysis.locations.size()) continue;
    const std::string& seen = analysis.locations[*layer.node_index].op_type;
    if (seen == layer.op_type) continue;
    analysis.notes.push_back("operator " + std::to_string(*layer.node_index) + " is '" + seen +
                             "' to the importer and '" + layer.op_type + "' in the model");
    if (++listed == kMostListed) break;
  }
}

}  // namespace

Outcome AnalyzeStage::run(const domain::AnalyzeRequest& request, StepContext& context) {
  const auto begun = std::chrono::steady_clock::now();
  Outcome out{.stage = domain::Stage::Analyze,
              .ending = Ending::Refused,
              .tool = "layerfarm " + std::string(base::kVersion)};
  const std::string file = std::filesystem::path(request.model_path).filename().string();
  const auto format = std::find_if(formats_.begin(), formats_.end(), [&](const auto& known) {
    return known->reads(request.model_path);
  });
  if (format == formats_.end()) {
    std::string names;
    for (const auto& known : formats_)
      names += (names.empty() ? "" : ", ") + std::string(known->name());
    out.diagnostic = diagnostic("import", "refused",
                                file + ": no reader for this kind of file (known: " + names + ")");
    return out;
  }
  FormatAnswer answer = (*format)->layers(request, context);
  out.ending = answer.ending;
  out.diagnostic = std::move(answer.diagnostic);
  if (answer.ending != Ending::Done) return out;

  ModelAnalysis& analysis = answer.analysis;
  analysis.format = std::string((*format)->name());
  FormatLocations located{.ending = Ending::Done};
  if (!answer.located && analysis.skipped.empty())
    located = (*format)->locations(request, answer, context);
  if (located.ending == Ending::Cancelled) {
    out.ending = Ending::Cancelled;
    return out;
  }
  if (answer.located) {
    compare_with_layers(analysis);
  } else if (located.ending == Ending::Done) {
    analysis.locations = std::move(located.locations);
    analysis.importer_version = std::move(located.importer);
    if (analysis.skipped.empty()) compare_with_layers(analysis);
  } else {
    analysis.location_problem = std::move(located.problem);
  }
  const auto blob = context.blobs.put(protocol::encode_analysis(analysis));
  if (!blob) {
    out.ending = Ending::Infrastructure;
    out.diagnostic = infrastructure("import", blob.error());
    return out;
  }
  out.analysis = *blob;
  out.took_us = std::chrono::duration_cast<std::chrono::microseconds>(
                    std::chrono::steady_clock::now() - begun)
                    .count();
  return out;
}

}  // namespace layerfarm::worker::toolchain
