// Which report a command means that names a model, not a file: view, edit and compare.
#pragma once

#include <filesystem>
#include <string>

#include "coordinator/report/subgraph_reports.h"
#include "shared/base/result.h"

namespace CLI {
class App;
}

namespace layerfarm::coordinator::app {

struct ReportChoice {
  std::string model;       ///< --model
  std::string output_dir;  ///< --output-dir; empty = current folder
  std::string chip;        ///< --chip: which chip's report
  report::SubgraphEnds subgraph = {};
};

/// `--subgraph-from` and `--subgraph-to`, as discover has them.
void add_subgraph_ends(CLI::App& app, report::SubgraphEnds& ends);

enum class CompilerFile : bool { No, Yes };
/// The report, or (`compiler` says so) the compiler file where there is none. A file that says that
/// it is of another chip than the one named is an error.
[[nodiscard]] base::Result<std::filesystem::path> find_chosen(const ReportChoice& choice,
                                                              CompilerFile compiler);

}  // namespace layerfarm::coordinator::app
