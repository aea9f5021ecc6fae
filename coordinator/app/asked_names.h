// Words of the command line that only the models can judge: dims of --dim, names and types of
// --inputs, layers of --layers, op types of --skip-ops. Said once every model is read and before
// anything is run, since a misspelt name would silently test something else.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "coordinator/app/input_files.h"
#include "coordinator/app/options.h"
#include "shared/domain/layer.h"

namespace layerfarm::coordinator::app {

struct ReadModel {
  std::string name;  ///< as lines of the run call it
  const domain::ModelAnalysis* model = nullptr;
};

struct AskedNames {
  std::vector<std::string>
      errors;  ///< names that no model has, arrays that none can take: the run should not go on
  std::vector<std::string> lines;   ///< what the models take of the rest
  std::vector<std::string> layers;  ///< --layers, one pattern each: commas part them
};
/// Only of the arrays.
[[nodiscard]] AskedNames check_inputs(const InputFiles& inputs, std::span<const ReadModel> models);
/// Whether these options have names that wait for all models.
[[nodiscard]] bool asks_names(const DiscoverOptions& options, const InputFiles& inputs);
[[nodiscard]] AskedNames check_asked_names(const DiscoverOptions& options, const InputFiles& inputs,
                                           std::span<const ReadModel> models);

}  // namespace layerfarm::coordinator::app
