// What `view` prints. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "coordinator/report/json.h"
#include "coordinator/report/texts.h"

namespace layerfarm::coordinator::report {

/// The whole report: counts, critical failures, table, tolerance.
[[nodiscard]] std::string view_summary(const json::Value& report, Colour colour);
/// One layer, by its exact id; empty when the report has none of that name.
[[nodiscard]] std::optional<std::string> view_layer(const json::Value& report,
                                                    std::string_view layer_id);
/// A compiler file.
[[nodiscard]] std::string view_compiler(const json::Value& file);
/// Whether the run that wrote the report is still going on, or was ended before its end.
[[nodiscard]] bool is_unfinished(const json::Value& report);
/// Up to ten layer ids, comma separated, then "..." when there are more.
[[nodiscard]] std::string some_layers(const json::Value& report);

}  // namespace layerfarm::coordinator::report
