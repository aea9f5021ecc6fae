// Which report is meant when a model and the two ends of a subgraph are named: the report itself
// says, by its first and last layer, so that no model has to be read. Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "shared/base/result.h"

namespace layerfarm::coordinator::report {

/// The ends of a subgraph as people name them: `<OpType>_<output>`, or the output alone.
struct SubgraphEnds {
  std::string from;
  std::string to;
  [[nodiscard]] bool any() const { return !from.empty() || !to.empty(); }
};

/// InvalidInput naming the missing one when only one is given.
[[nodiscard]] base::Result<void> check_both_ends(const SubgraphEnds& ends);

/// The report of that part of the model: in `<folder>/<chip>/` with a chip, else in `folder`, else
/// in the folders below it. NotFound lists the parts that have a report; InvalidInput lists several
/// that fit.
[[nodiscard]] base::Result<std::filesystem::path> find_subgraph_report(
    const std::filesystem::path& folder, std::string_view model_name, std::string_view chip,
    const SubgraphEnds& ends);

}  // namespace layerfarm::coordinator::report
