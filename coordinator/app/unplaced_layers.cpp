#include "coordinator/app/unplaced_layers.h"

#include <cstddef>
#include <map>
#include <string>

namespace layerfarm::coordinator::app {

std::vector<Unplaced> unplaced_layers(const domain::ModelAnalysis& model) {
  std::map<std::string, std::ptrdiff_t> missing;  // layers without an operator, by type
  for (const domain::Layer& layer : model.layers) ++missing[layer.op_type];
  for (const domain::SourceLocation& place : model.locations) --missing[place.op_type];
  std::vector<Unplaced> out;
  for (const domain::Layer& layer : model.layers) {
    // Without an import nobody knows.
    const bool placed = !layer.quantized || layer.node_index || !model.location_problem.empty();
    out.push_back(placed                          ? Unplaced::No
                  : missing.at(layer.op_type) > 0 ? Unplaced::Fused
                                                  : Unplaced::Moved);
  }
  return out;
}

}  // namespace layerfarm::coordinator::app
