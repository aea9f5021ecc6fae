// `layerfarm edit`: changes recommendations and tolerances in a report and renews the compiler file
// beside it; `--list` shows its layers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "coordinator/report/subgraph_reports.h"
#include "shared/base/result.h"

namespace layerfarm::coordinator::app {

struct EditOptions {
  std::string config;                          ///< positional: the report
  std::string model;                           ///< --model
  std::string output_dir;                      ///< --output-dir; empty = current folder
  std::string chip;                            ///< --chip: with --model, which chip's report
  report::SubgraphEnds subgraph = {};          ///< with --model: a subgraph's report
  std::string layer;                           ///< --layer
  std::optional<std::string> executor;         ///< --executor; "null" = none, "auto" = by the rule
  std::optional<double> tolerance_avg;         ///< --tolerance-avg
  std::optional<double> tolerance_max;         ///< --tolerance-max
  std::optional<double> tolerance_abs_frac;    ///< --tolerance-abs-frac
  std::optional<std::uint32_t> tolerance_int;  ///< --tolerance-int
  std::vector<std::string> automatic;  ///< of these, those that were given as "auto", by key
  std::optional<std::string> list;     ///< --list [F]: the filter, empty for all
  /// Called before the report is changed: brings the files of a run that did not end up to what the
  /// store knows. May be empty.
  std::function<base::Result<void>(const std::filesystem::path& report)> recover;
};

/// Prints to standard output; returns the exit code.
int cmd_edit(const EditOptions& options);
/// The same into streams.
int cmd_edit(const EditOptions& options, std::ostream& out, std::ostream& err);

}  // namespace layerfarm::coordinator::app
