// What a command asks the reader of models before or without a run: a converted model as a file,
// the places of a subgraph. The reader works in a process of its own; the coordinator sees none of
// the model.
#pragma once

#include <filesystem>

#include "coordinator/app/options.h"
#include "shared/base/result.h"
#include "shared/domain/layer.h"

namespace layerfarm::coordinator::app {

/// Converts `model` to bfloat16 and writes it to `options.save_bf16_model`, whose folder is made.
/// Dims that the options name stay open. Errors name the model.
[[nodiscard]] base::Result<void> save_bf16_model(const std::filesystem::path& model,
                                                 const DiscoverOptions& options);

/// Which nodes `--subgraph-from` and `--subgraph-to` name, in the model as the options convert it.
/// The second may come before the first. InvalidInput for a name that no node has.
[[nodiscard]] base::Result<domain::NodeRange> find_subgraph(const std::filesystem::path& model,
                                                            const DiscoverOptions& options);

}  // namespace layerfarm::coordinator::app
