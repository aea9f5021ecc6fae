// What the command line of discover asks for, as plain values (spec section 10; issue texts name
// the rest).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/app/quantize_options.h"
#include "coordinator/app/tool_options.h"
#include "shared/domain/analyze_request.h"

namespace layerfarm::coordinator::app {

enum class Dedup : std::uint8_t { Off, IgnoreFloatValues, Exact };
enum class FailOn : std::uint8_t { Error, Difference, Never };

struct DiscoverOptions {
  std::vector<std::string> config_files;  ///< applied already when the command runs
  std::vector<std::string> models;
  std::string chip = "default";
  std::string chips_dir;
  std::string output_dir;   ///< empty = current folder
  std::size_t workers = 0;  ///< 0 = one per core
  ToolOptions tool;
  std::vector<std::pair<std::string, std::int64_t>> dims;
  domain::LayerUnit unit = domain::LayerUnit::Node;
  QuantizeOptions quantize;
  domain::Conversion convert;
  std::string save_bf16_model;
  std::string subgraph_from;  ///< empty as the other: the whole model
  std::string subgraph_to;

  bool skip_mode = false;
  std::vector<std::string> skip_executors;
  std::vector<std::string> skip_ops;
  std::vector<std::string> executors;  ///< empty = all of the chip
  std::vector<std::string> layers;     ///< patterns; empty = all
  Dedup dedup = Dedup::Off;
  bool recompute = false;
  int repeats = 1;  ///< each case on so many sets of random inputs

  bool collect_timing = false;
  int timing_runs = 1;
  bool recommend_by_timing = false;

  std::optional<double> tolerance_avg;
  std::optional<double> tolerance_max;
  std::optional<double> tolerance_abs_frac;
  std::string inputs_dir;

  std::int64_t compile_timeout_ms = 0;  ///< 0 = chip file, else the program's default
  std::int64_t run_timeout_ms = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t wait_workers_ms = 0;
  std::string keep_failed;
  FailOn fail_on = FailOn::Difference;
  bool dry_run = false;

  bool json = false;
  bool verbose = false;
  bool quiet = false;
  std::string log_file;
};

/// `run` takes of discover's options those that say what the model is, where it runs and how much
/// is printed.
struct RunOptions {
  DiscoverOptions common;  ///< an empty chip: the report's own, else the default
  bool check_boundaries = false;
};

}  // namespace layerfarm::coordinator::app
