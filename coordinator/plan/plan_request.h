// What planning gets: one model that was read, the chips it is for, the user's options, and what
// older reports say. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "shared/base/result.h"
#include "shared/domain/chip.h"
#include "shared/domain/keys.h"
#include "shared/domain/layer.h"
#include "shared/domain/verdict.h"
#include "shared/protocol/ids.h"

namespace layerfarm::coordinator::plan {

using protocol::JobId;
using protocol::RunId;

/// A chip together with what the workers that serve it are (protocol::Ability).
struct PlanChip {
  domain::ChipSpec spec;
  domain::ToolIdentity tool;
  bool needs_prepare = true;  ///< inputs and reference are wanted
  bool needs_compile = true;  ///< an artifact is wanted
  std::uint32_t batch = 1;    ///< most layers that one compile may take together
  std::string place;          ///< board's serial or CPU's model: timings hold for it only
  friend bool operator==(const PlanChip&, const PlanChip&) = default;
};

/// `--dedup-layers` copies between layers that differ only in the values of float constants,
/// `=exact` only between equal ones.
enum class Dedup : std::uint8_t { Off, Loose, Exact };

/// A tolerance that a person edited into an entry of the report, those bounds that were set; for
/// all executors of the layer.
using ToleranceEdit = domain::ToleranceEdit;

/// `--tolerance-avg`, `--tolerance-max`, `--tolerance-abs-frac`.
struct ToleranceFlags {
  std::optional<double> fp_avg_tol;
  std::optional<double> fp_max_tol;
  std::optional<double> fp_abs_tol_frac;
  friend bool operator==(const ToleranceFlags&, const ToleranceFlags&) = default;
};

struct PlanOptions {
  bool skip_mode = false;
  bool recompute = false;  ///< --recompute-cache: nothing stored counts
  Dedup dedup = Dedup::Off;
  std::vector<std::string> skip_executors;
  std::vector<std::string> skip_ops;   ///< op types, in any case
  std::vector<std::string> executors;  ///< only these; empty = all
  std::vector<std::string> layers;  ///< only layers that one of these patterns selects; empty = all
  bool collect_timing = false;
  int timing_runs = 1;
  ToleranceFlags tolerance;
  friend bool operator==(const PlanOptions&, const PlanOptions&) = default;
};

/// What the report of one (model, chip) said when the run began, as far as planning minds.
struct OldReport {
  std::unordered_map<std::string, std::map<std::string, domain::Status>>
      statuses;                                          ///< layer id -> executor -> status
  std::unordered_map<std::string, ToleranceEdit> edits;  ///< layer id -> edited tolerance
  friend bool operator==(const OldReport&, const OldReport&) = default;
};

struct PlanRequest {
  RunId run;
  std::shared_ptr<const domain::ModelAnalysis> model;
  std::optional<JobId>
      analyze;  ///< the job that read the model, when the book knows it (CaseBook::add_analyze)
  std::vector<std::shared_ptr<const PlanChip>> chips;  ///< one report each
  std::vector<OldReport> old;  ///< in the order of `chips`; missing = there is none
  domain::InputSet inputs;
  domain::ToolIdentity reference;  ///< the engine that makes the references
  PlanOptions options;
};

/// Layers that one of the patterns selects, by place. A pattern selects as `edit --layer` does:
/// `ALL`; a shell pattern when it has
/// `*` or `?`; else the exact id; else every id that contains it; upper and lower case are one.
/// None = all.
[[nodiscard]] std::vector<bool> choose_layers(const std::vector<domain::Layer>& layers,
                                              const std::vector<std::string>& patterns);

/// Entry's edit, then the flags, then the chip file (design.md, section 8).
[[nodiscard]] domain::Tolerance tolerance_in_force(const domain::ExecutorSpec& executor,
                                                   const ToleranceFlags& flags,
                                                   const ToleranceEdit* edit);

/// Options, inputs, reference, tool and needs of one chip as JSON: what the store keeps of a report
/// beside its model and chip, to plan again after a crash (store::RunFile::plan).
[[nodiscard]] std::string request_json(const PlanRequest& request, const PlanChip& chip);
struct StoredRequest {
  PlanOptions options;
  domain::InputSet inputs;
  domain::ToolIdentity reference;
  PlanChip chip;  ///< without `spec`, which the store keeps by itself
};
[[nodiscard]] base::Result<StoredRequest> request_from_json(const std::string& text);

}  // namespace layerfarm::coordinator::plan
