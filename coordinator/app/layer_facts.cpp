#include "coordinator/app/layer_facts.h"

#include <algorithm>
#include <cctype>

#include "coordinator/app/unplaced_layers.h"

namespace layerfarm::coordinator::app {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

LayerFactsResult layer_facts(const domain::ModelAnalysis& analysis,
                             const std::vector<std::string>& skip_ops) {
  LayerFactsResult out;
  const bool same_count = analysis.locations.size() == analysis.operators;
  if (!analysis.location_problem.empty()) {
    out.warning = "no line numbers: " + analysis.location_problem;
  } else if (!same_count) {
    out.warning = "no line numbers: the imported module has " +
                  std::to_string(analysis.locations.size()) + " operators, the model " +
                  std::to_string(analysis.operators);
  }
  const std::vector<Unplaced> places = unplaced_layers(analysis);
  std::size_t mismatches = 0;
  out.layers.reserve(analysis.layers.size());
  for (const domain::Layer& layer : analysis.layers) {
    report::LayerFacts facts;
    facts.id = layer.id;
    facts.node_name = layer.node_name;
    facts.orig_index = layer.orig_index;
    facts.node_index = layer.node_index;
    facts.mac_count = layer.mac_count;
    facts.mac_breakdown = layer.mac_breakdown;
    facts.location = layer.op_type;
    if (same_count && layer.node_index && *layer.node_index < analysis.locations.size()) {
      const domain::SourceLocation& place = analysis.locations[*layer.node_index];
      if (place.op_type == layer.op_type) {
        facts.location = std::to_string(place.line) + ":" + std::to_string(place.column);
      } else {
        ++mismatches;
      }
    }
    facts.skipped = std::any_of(skip_ops.begin(), skip_ops.end(), [&](const std::string& op) {
      return lower(op) == lower(layer.op_type);
    });
    report::json::Array open;
    for (const std::uint32_t index : layer.open_outputs) {
      if (index < layer.output_names.size()) open.emplace_back(layer.output_names[index]);
    }
    if (!open.empty()) facts.marks.emplace_back("_not_compared", std::move(open));
    if (layer.quantized && !*layer.quantized) {
      facts.marks.emplace_back("_quantized", false);
      facts.marks.emplace_back("_quantize_note", layer.quantize_note);
    }
    const Unplaced unplaced = places[out.layers.size()];
    if (unplaced == Unplaced::Fused) facts.marks.emplace_back("_fused", true);
    if (unplaced == Unplaced::Moved) facts.marks.emplace_back("_moved", true);
    out.layers.push_back(std::move(facts));
  }
  if (mismatches > 0) {
    out.warning = std::to_string(mismatches) +
                  " layers have no line number: another operator stands at their place in the "
                  "imported module";
  }
  return out;
}

}  // namespace layerfarm::coordinator::app
