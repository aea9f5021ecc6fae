// --save-bf16-model: a converted model as a file. The reader of models writes it in a process of
// its own; the coordinator sees none of it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "coordinator/app/options.h"
#include "shared/base/result.h"

namespace layerfarm::coordinator::app {

/// Converts `model` to bfloat16 and writes it to `options.save_bf16_model`, whose folder is made.
/// Dims that the options name stay open. Errors name the model.
[[nodiscard]] base::Result<void> save_bf16_model(const std::filesystem::path& model,
                                                 const DiscoverOptions& options);

}  // namespace layerfarm::coordinator::app
