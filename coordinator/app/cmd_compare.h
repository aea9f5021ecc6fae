// `layerfarm compare A B`: what changed between two reports, or two compiler files. Reads only.
// Its exit codes are those of diff, the one exception to 0 and 1 (docs/report.md): 0 = no
// difference, 1 = some, 2 = a file that cannot be used.
#pragma once

#include <ostream>
#include <string>

#include "coordinator/report/subgraph_reports.h"

namespace layerfarm::coordinator::app {

struct CompareOptions {
  std::string a;  ///< a report, a compiler file, or (with --model) an output folder
  std::string b;
  std::string model;                   ///< --model: whose files are meant where a folder is named
  std::string chip;                    ///< --chip: with --model, which chip's
  report::SubgraphEnds subgraph = {};  ///< with --model: of a subgraph
  double time_threshold_percent = 10;
  bool json = false;
};

/// Prints to standard output; returns the exit code.
int cmd_compare(const CompareOptions& options);
/// The same into streams.
int cmd_compare(const CompareOptions& options, std::ostream& out, std::ostream& err);

}  // namespace layerfarm::coordinator::app
