// `layerfarm view`: shows a report, one of its layers, or a compiler file. Reads only; starts
// nothing.
#pragma once

#include <ostream>
#include <string>

#include "coordinator/report/subgraph_reports.h"

namespace layerfarm::coordinator::app {

struct ViewOptions {
  std::string config;  ///< first positional: a path; with --model and no such file it is the layer
  std::string layer;   ///< second positional
  std::string model;   ///< --model
  std::string output_dir;              ///< --output-dir; empty = current folder
  std::string chip;                    ///< --chip: with --model, which chip's report
  report::SubgraphEnds subgraph = {};  ///< with --model: a subgraph's report
  bool compat =
      false;  ///< --compat: exit 0 for a broken file and an unknown layer, as the original has it
  bool colour = false;  ///< standard output is a terminal
};

/// Prints to standard output; returns the exit code.
int cmd_view(const ViewOptions& options);
/// The same into streams.
int cmd_view(const ViewOptions& options, std::ostream& out, std::ostream& err);

}  // namespace layerfarm::coordinator::app
