// Lines that a run prints while it goes on. Pure; any thread. No newline at the end of the last
// line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "coordinator/report/case_result.h"
#include "coordinator/report/texts.h"

namespace layerfarm::coordinator::report {

/// `[Chip] chip=<name> target=<target>`
[[nodiscard]] std::string chip_line(std::string_view name, std::string_view target);

struct CaseLine {
  std::string layer_id;
  std::string executor;
  std::string chip;      ///< only when there are several
  std::string evidence;  ///< shown when not empty ("emulator")
  std::string model;     ///< only when there are several
};
/// An empty line, then `Layer <id>: <EXEC> = <status>` (with several models or chips `Layer <id>
/// (<model>): <chip> <EXEC> = <status>`) with what belongs to it; a difference's
/// summary follows indented.
[[nodiscard]] std::string case_lines(const CaseLine& line, const CaseResult& result, Colour colour);
/// The same for a case that got no verdict.
[[nodiscard]] std::string unsettled_lines(const CaseLine& line, std::string_view reason);
/// `[progress] <done>/<total> [ 42%]`, percent rounded down.
[[nodiscard]] std::string progress_line(std::uint64_t done, std::uint64_t total);
/// `Detailed report saved to: <path>`
[[nodiscard]] std::string saved_line(std::string_view path);
/// `Discovery finished with <n> failing case(s)`, empty when there are none.
[[nodiscard]] std::string failing_line(std::uint64_t failing);
/// Head of a whole diagnostic in the log file: `[<label>] setup error details:` or `run error
/// details:`.
[[nodiscard]] std::string details_head(std::string_view label, bool in_setup);
/// `<model>_layer_<OpType>_<n>_<executor>`: how a case is called in logs.
[[nodiscard]] std::string case_label(std::string_view model, std::string_view op_type,
                                     std::uint64_t place, std::string_view executor);

}  // namespace layerfarm::coordinator::report
