// WholeRequest: what the whole job is asked, and its key.
#pragma once

#include <string>
#include <vector>

#include "shared/base/digest.h"
#include "shared/domain/keys.h"

namespace layerfarm::domain {

struct WholeRequest {
  base::Digest analysis;  ///< blob of the encoded ModelAnalysis, one with segments
  /// For a toolchain that takes a map: executor of each non-Constant node; empty names leave the
  /// choice to the compiler. Then the segments are not looked at.
  std::vector<std::string> executors;
  bool check_boundaries = false;  ///< compare at each boundary too
  friend bool operator==(const WholeRequest&, const WholeRequest&) = default;
};

/// The layer whose reference a whole run is compared with: the model with what leaves its segments
/// where boundaries are looked at, else the model alone. Null when the analysis has none.
[[nodiscard]] const Layer* reference_layer(const ModelAnalysis& model, bool check_boundaries);

/// `model` is what `request.analysis` names. No tolerance is in it: numbers are judged by any.
[[nodiscard]] base::Digest whole_key(const WholeRequest& request, const ModelAnalysis& model,
                                     const InputSet& inputs, const ChipSpec& chip,
                                     const ToolIdentity& tool, const ToolIdentity& reference);

}  // namespace layerfarm::domain
