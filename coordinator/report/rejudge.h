// What a tolerance that a person edits makes of the results that a report holds, as far as the
// numbers in it tell; what they do not tell is left to the next discover. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "coordinator/report/json.h"

namespace layerfarm::coordinator::report {

struct Rejudged {
  std::vector<std::string> changed;          ///< "Conv_a on nss: difference -> success"
  std::vector<std::string> recommendations;  ///< "Conv_a: css -> nss"; hand edits stay
  std::vector<std::string> open;  ///< "Conv_a on nss": numbers are missing, it is as it was
};

/// Judges the results of these layers by the tolerances in their entries, and renews what follows:
/// recommendations, `_assignments`, counts and critical failures of a finished report. Bounds whose
/// keys are in `automatic` are the chip's (and the flags') again where the entry has none.
[[nodiscard]] Rejudged rejudge(json::Value& report, const std::vector<std::string>& layers,
                               const std::vector<std::string>& automatic);

/// What the outputs of a layer are, as its results tell.
struct ResultKinds {
  bool known = false;
  bool floats = false;
  bool integers = false;
};
[[nodiscard]] ResultKinds kinds_in(const json::Value& entry);

/// Takes the mark of a person's choice from these layers, and recommends by the report's rule.
void recommend_by_rule(json::Value& report, const std::vector<std::string>& layers);

/// What became of them, a line each; empty when nothing did.
[[nodiscard]] std::string rejudged_lines(const Rejudged& rejudged);

}  // namespace layerfarm::coordinator::report
