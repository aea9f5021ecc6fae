// Texts of a report for people: final_report_text, the table, the report printed at the end, the
// placement summary. Pure; any thread. Lines end with "\n" except in final_report_text, which is
// stored without one at its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator/report/ops.h"

namespace layerfarm::coordinator::report {

/// Numbers of a whole-model run, whichever are known.
struct WholeModel {
  std::optional<double> max_rel_diff;
  std::optional<double> max_abs_diff;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> differences;  ///< number, total
};

/// Colours are for terminals only; files and pipes get plain words.
enum class Colour : bool { No, Yes };

[[nodiscard]] std::string upper(std::string_view name);

/// A name as part of a line or a table: line ends, tabs and other control codes as `\n`, `\t` and
/// `\x1b`, since names come from files that anybody may have made.
[[nodiscard]] std::string one_line(std::string_view name);
/// Names for a column of this width, each other than the rest: what is longer is cut with a mark,
/// at its end or, where the beginnings are equal, in its middle.
[[nodiscard]] std::vector<std::string> column_names(const std::vector<std::string>& names,
                                                    std::size_t columns);

/// "a, b, c", each on one line; of more than ten the first ten and "...".
[[nodiscard]] std::string first_ten(const std::vector<std::string>& names);

/// `final_report_text` of the report.
[[nodiscard]] std::string final_report_text(const std::string& model_name, const Overview& overview,
                                            const std::optional<WholeModel>& whole_model);
/// `Per-Layer Status:` and the table, without a newline at the end.
[[nodiscard]] std::string layer_table(const Overview& overview, Colour colour);

/// Why a layer failed, in one line: without the words that all of them begin with, of a run what
/// the tool said.
[[nodiscard]] std::string reason_line(const json::Value& failure_report);
/// The block of a whole model's numbers, without a newline at the end.
[[nodiscard]] std::string whole_model_block(const WholeModel& whole_model);

struct EndReport {
  std::string model_name;
  std::string report_path;
  const Overview* overview = nullptr;
  std::optional<WholeModel> whole_model;
};
/// Printed at the end of discover and run; empty when there is nothing to say.
[[nodiscard]] std::string end_report(const EndReport& report, Colour colour);

/// What the placement summary needs beside `ops`.
struct PlacementFacts {
  std::string chip;
  std::vector<std::pair<std::string, std::string>>
      evidence;                          ///< executor -> "hardware", "emulator", "stand-in"
  std::vector<std::string> same_engine;  ///< executors that are the reference engine
  std::string reference;                 ///< "onnxruntime 1.32.0"
  std::vector<std::pair<std::string, std::string>> tools;  ///< name -> version
  std::uint64_t fresh = 0;                                 ///< results made in this run
  std::uint64_t stored = 0;                                ///< results known from before
  std::uint64_t timed = 0;                                 ///< results timed in this run
  std::uint64_t unsettled = 0;
  std::vector<std::pair<std::string, std::int64_t>> macs;  ///< layer id -> MACs
};
/// Layers, MACs and time per executor; refused op types with the reason; what the verdicts rest on.
[[nodiscard]] std::string placement_summary(const std::vector<Op>& ops,
                                            const std::vector<std::string>& executors,
                                            const PlacementFacts& facts);

}  // namespace layerfarm::coordinator::report
