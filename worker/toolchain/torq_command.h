// Command lines of torq-compile and torq-run-module, exactly as torq-gen-config sends them (spec
// section 22), so that a tool that works there works here. Pure: no file is looked at.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "shared/base/result.h"
#include "shared/domain/chip.h"

namespace layerfarm::worker::toolchain {

/// What both tools are told of a chip.
struct TorqTarget {
  std::string hw;                    ///< value of --torq-hw
  std::string hw_type;               ///< value of --torq_hw_type: "sim", "aws_fpga", a board
  std::vector<std::string> disable;  ///< flags that leave only one executor; empty: all may be used
  std::vector<std::string> compiler_options;  ///< the user's
  std::vector<std::string> runtime_options;   ///< the user's
  bool dump_ir = false;
};

/// InvalidInput when a `custom` target lacks one of its values (spec section 23).
[[nodiscard]] base::Result<TorqTarget> torq_target(const domain::ChipSpec& chip,
                                                   const domain::ExecutorSpec& executor);

/// Names in the folder in which the tool is started; they hold no path, so neither does what the
/// tool prints.
struct TorqCompileFiles {
  std::string module;    ///< MLIR, text
  std::string artifact;  ///< what the tool shall write
  std::string map;       ///< executor map; empty: none is given
  bool whole = false;    ///< a whole model: the map alone chooses, and comes last
};

/// Arguments after the program.
[[nodiscard]] std::vector<std::string> torq_compile_arguments(const TorqTarget& target,
                                                              const TorqCompileFiles& files);

struct TorqRunFiles {
  std::string artifact;
  std::string function;
  std::vector<std::string> outputs;
  std::vector<std::string> inputs;  ///< "1x3x8x8xf32=@file" each
};
[[nodiscard]] std::vector<std::string> torq_run_arguments(const TorqTarget& target,
                                                          const TorqRunFiles& files);

/// Content of the map of a whole model: an executor for each place ("line:column").
[[nodiscard]] std::string torq_model_map(
    const std::vector<std::pair<std::string, std::string>>& executors);
/// Content of the map that names one executor for one layer.
[[nodiscard]] std::string torq_layer_map(const std::string& layer_id, const std::string& executor);

}  // namespace layerfarm::worker::toolchain
