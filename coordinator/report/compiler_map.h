// The two files beside the report: the bare assignments that a compiler pass reads, and the MAC
// sidecar. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/report/json.h"

namespace layerfarm::coordinator::report {

/// One op as the compiler map sees it, in the order of `ops`.
struct Assignment {
  std::string_view layer_id;
  std::string_view location;  ///< `mlir_location`; only `line:column` enters
  std::optional<std::string_view> executor;
  bool in_model = true;  ///< false: an old entry whose layer the model no longer has; never enters
};

struct CompilerMap {
  std::string text;  ///< the file
  std::size_t assignments = 0;
  std::vector<std::string> warnings;  ///< two ops on one location: neither is written
};

[[nodiscard]] CompilerMap compiler_map(std::span<const Assignment> ops,
                                       const std::optional<std::string>& model_name);
/// The same from a report.
[[nodiscard]] CompilerMap compiler_map(const json::Value& report);
/// Whether `text` is digits, a colon, digits.
[[nodiscard]] bool is_line_and_column(std::string_view text);
/// A compiler file: has `op_assignments` and no `ops`.
[[nodiscard]] bool is_compiler_file(const json::Value& file);

struct LayerMacs {
  std::string_view layer_id;
  std::int64_t mac_count = 0;
  std::string_view breakdown;  ///< JSON array of records
};
/// The sidecar, layer ids sorted. A breakdown that is no JSON array counts as empty.
[[nodiscard]] std::string mac_sidecar(std::vector<LayerMacs> layers, const std::string& model_name);

}  // namespace layerfarm::coordinator::report
