// What is made of a model before it is split, as discover and run are both told.
#pragma once

#include <string>

#include "coordinator/app/console.h"
#include "coordinator/app/options.h"
#include "shared/base/result.h"
#include "shared/domain/layer.h"

namespace layerfarm::coordinator::app {

/// Flags that make sense only together, or exclude each other.
[[nodiscard]] base::Result<void> check_model_changes(const DiscoverOptions& options);

/// What reading a model noted. Notes that begin with a prefix in brackets are part of every log,
/// with `label` (where there are several models) behind the prefix; the others are for --verbose.
void say_notes(const domain::ModelAnalysis& model, const std::string& file,
               const std::string& label, Console& console);

}  // namespace layerfarm::coordinator::app
