// What `edit` does to a report. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/report/json.h"
#include "coordinator/report/rejudge.h"
#include "shared/base/result.h"

namespace layerfarm::coordinator::report {

/// Shell pattern with `*`, `?` and `[...]`, as Python's fnmatch has it; whole text.
[[nodiscard]] bool matches_pattern(std::string_view text, std::string_view pattern);
/// Lower case of the letters A to Z.
[[nodiscard]] std::string lower(std::string_view text);

/// Layer ids that `query` selects, sorted: `ALL`; a pattern when it has `*` or `?`; else the exact
/// id; else every id that contains it. Upper and lower case are one.
[[nodiscard]] std::vector<std::string> select_layers(const json::Value& report,
                                                     std::string_view query);

struct Edit {
  std::optional<std::string> executor;  ///< "null" = no executor; "auto" = what the rule says
  std::optional<double> fp_avg_tol;
  std::optional<double> fp_max_tol;
  std::optional<double> fp_abs_tol_frac;
  std::optional<std::uint32_t> int_tol;
  /// Keys of bounds that are nobody's choice any more, for example "fp_max_tol".
  std::vector<std::string> automatic;

  [[nodiscard]] bool has_bounds() const {
    return fp_avg_tol || fp_max_tol || fp_abs_tol_frac || int_tol || !automatic.empty();
  }
};

/// The edit with the executor's name as the report writes it, whatever its capitals were.
/// InvalidInput when the executor is none of the report's, naming those that are; or when a
/// tolerance is no number from 0 on. An executor that is called "auto" or "null" is meant before
/// what these words mean else.
[[nodiscard]] base::Result<Edit> check_edit(const json::Value& report, Edit edit);
/// Changes the entries, judges their results by an edited tolerance and renews what is derived from
/// them (`_assignments`, counts, `final_report_text`).
Rejudged apply_edit(json::Value& report, const std::vector<std::string>& layers, const Edit& edit);
/// Bounds that do nothing to layers whose results are of other types, a line each.
[[nodiscard]] std::string idle_bound_lines(const json::Value& report,
                                           const std::vector<std::string>& layers,
                                           const Edit& edit);
/// What was done, a line each, in the original's words; the compiler file is named in the last.
[[nodiscard]] std::string edit_lines(const json::Value& report,
                                     const std::vector<std::string>& layers, const Edit& edit,
                                     const std::string& compiler_path);
/// Of those layers the ones that no compiler file can name, a line per reason; empty for none.
[[nodiscard]] std::string unplaced_lines(const json::Value& report,
                                         const std::vector<std::string>& layers);

/// The table of `edit --list`, filtered by a part of the id.
[[nodiscard]] std::string list_layers(const json::Value& report, const std::string& filter);

}  // namespace layerfarm::coordinator::report
