// From what reading a model gave to what its report shows of each layer.
#pragma once

#include <string>
#include <vector>

#include "coordinator/report/report_state.h"
#include "shared/domain/layer.h"

namespace layerfarm::coordinator::app {

struct LayerFactsResult {
  std::vector<report::LayerFacts> layers;  ///< by place in the model
  std::string warning;  ///< why locations are op types only; empty when all is well
};

/// Locations are `line:column` of the k-th top-level operator for the k-th layer, where count and
/// op type agree (spec section 20); else the op type.
[[nodiscard]] LayerFactsResult layer_facts(const domain::ModelAnalysis& analysis,
                                           const std::vector<std::string>& skip_ops);

}  // namespace layerfarm::coordinator::app
