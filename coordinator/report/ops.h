// What a report's `ops` say, whoever asks: discover and run while they write, edit and view from a
// file. One way from ops to summary, critical failures and table rows. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/report/json.h"
#include "shared/domain/chip.h"

namespace layerfarm::coordinator::report {

/// Result of one layer on one executor, as far as counting and choosing need it.
struct OpResult {
  std::string executor;
  std::string status;  ///< as stored: "success", "difference", "error", or what an old file says
  std::optional<double> runtime_ms;
  json::Value failure_report;  ///< null when there is none
};

/// One entry of `ops`.
struct Op {
  std::string id;
  std::optional<std::int64_t> node_index;
  std::optional<std::int64_t> orig_index;
  std::optional<std::string> location;
  std::vector<OpResult> results;  ///< tested executors only
  std::optional<std::string> recommended;
};

/// Executors that the report's chip has, in priority order: its `_executors`, else nss, css, host.
[[nodiscard]] std::vector<std::string> chip_executors_of(const json::Value& report);
/// The same, then any others found in `ops`.
[[nodiscard]] std::vector<std::string> executors_of(const json::Value& report);
/// The chip that a report's results are of, as far as that can be told: its `_chip`; where it has
/// none, as the original writes it, the original's chip when only nss, css and host were tested and
/// `ours` lacks one of these and has others. Empty: they may be of ours.
[[nodiscard]] std::string chip_of(const json::Value& report, const domain::ChipSpec& ours);
/// The entries in file order.
[[nodiscard]] std::vector<Op> ops_of(const json::Value& report);
/// A stored recommendation: null, empty and the text "null" of older tools all mean none.
[[nodiscard]] std::optional<std::string> recommendation_in(const json::Value& entry);
/// Op type of a layer id: the text before the first `_`; for ids of TFLite reports (CONV_2D_0) all
/// before the last `_`.
[[nodiscard]] std::string op_type_of(std::string_view layer_id);

struct TimingSummary {
  double avg_ms = 0;
  double min_ms = 0;
  double max_ms = 0;
  std::int64_t samples = 0;
};

/// Per executor, in priority order.
struct ExecutorSummary {
  std::string executor;
  std::size_t first_working = 0;  ///< layers whose first success is here
  std::optional<TimingSummary> timing;
};

struct Summary {
  std::size_t total_layers = 0;  ///< layers with results
  std::size_t success = 0;
  std::size_t difference = 0;
  std::size_t error = 0;
  std::vector<ExecutorSummary> executors;
};

/// A layer that no tested executor could run.
struct CriticalFailure {
  std::string layer_id;
  std::vector<OpResult> errors;
  std::optional<std::int64_t> node_index;
  std::optional<std::string> location;
};

/// A line of the per-layer table.
struct Row {
  std::string layer_id;
  std::vector<std::string> statuses;  ///< per executor; "-" when not tested
  std::string recommended;            ///< "-" when there is none
};

enum class RowOrder {
  OrigIndex,  ///< reports: `_orig_index`, then `_node_index`
  NodeIndex,  ///< view and --list
};

struct Overview {
  std::vector<std::string> executors;
  Summary summary;
  std::vector<CriticalFailure> critical;
  std::vector<Row> rows;
};

/// Missing indices come last, ties keep the order of `ops`.
[[nodiscard]] Overview overview(std::span<const Op> ops, std::vector<std::string> executors,
                                RowOrder order);
/// The `discovery_report` of a report.
[[nodiscard]] json::Value discovery_report(const Overview& overview);

enum class Rule { Priority, Timing };

/// What the recommendation looks at; in priority order.
struct Candidate {
  std::string_view executor;
  std::string_view status;
  std::optional<double> runtime_ms;
};

/// Priority: first success, else first difference. Timing: the quickest timed success, else (no
/// success was timed) by priority among the successes, and the same among the differences when
/// nothing succeeded.
[[nodiscard]] std::optional<std::string> recommend(std::span<const Candidate> candidates,
                                                   Rule rule);
/// Whether times of the chip's executors say which is the quicker: an emulator's say nothing beside
/// those of hardware.
[[nodiscard]] bool times_compare(const domain::ChipSpec& chip);
/// Sets a layer's recommendation (none = null), in `_assignments` too: they must not disagree.
void set_recommendation(json::Value& report, std::string_view layer_id,
                        const std::optional<std::string>& executor);

/// The results of an entry, those on these executors.
[[nodiscard]] std::vector<Candidate> candidates_in(const json::Value& entry,
                                                   std::span<const std::string> executors);

/// Whether quantized pooling gets no recommendation: the compiler of a whole model fuses it itself.
[[nodiscard]] bool pooling_is_fused(const json::Value& settings, bool is_subgraph);

/// Tells the recommendations of a report that a person set from those that a rule gave.
class HandEdits {
 public:
  explicit HandEdits(const json::Value& report);
  /// `_edited` is true, or no rule gives the recommendation from the results in the entry: neither
  /// priority nor timing, nor that quantized pooling has none.
  [[nodiscard]] bool is_one(std::string_view layer_id, const json::Value& entry) const;

 private:
  std::vector<std::string> executors_;
  bool pooling_may_be_fused_;
};

/// Python's round(x, 3).
[[nodiscard]] double round3(double number);

}  // namespace layerfarm::coordinator::report
