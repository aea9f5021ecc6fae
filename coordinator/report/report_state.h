// ReportState: everything a report says, as a pure fold of results and of what an older file holds.
// The order in which results come does not show in the texts. No I/O, no clock; one thread at a
// time (the coordinator's loop, or whoever owns the report).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "coordinator/report/case_result.h"
#include "coordinator/report/json.h"
#include "coordinator/report/ops.h"
#include "coordinator/report/texts.h"
#include "shared/domain/chip.h"
#include "shared/domain/layer.h"

namespace layerfarm::coordinator::report {

/// A layer as the report shows it, known from reading the model.
struct LayerFacts {
  std::string id;
  std::string node_name;
  std::uint32_t orig_index = 0;             ///< place in case order
  std::optional<std::uint32_t> node_index;  ///< place in the final module; none for a fused layer
  std::int64_t mac_count = 0;
  std::string mac_breakdown = "[]";  ///< JSON array
  std::string location;              ///< `line:column`, or the op type when no line is known
  bool skipped = false;              ///< by --skip-ops: an entry without results
  bool no_recommendation = false;    ///< quantized pooling: the compiler fuses it itself
  std::vector<std::pair<std::string, json::Value>>
      marks;  ///< further keys of ours, each beginning with `_`
};

/// What a run is about; fixed when it starts.
struct ReportPlan {
  std::string model_name;
  domain::ChipSpec chip;           ///< tolerances are those in force: flags over the chip file
  std::vector<LayerFacts> layers;  ///< all layers of the model, by `orig_index`
  std::optional<domain::NodeRange> subgraph;  ///< the report is of this part of the model alone
  json::Value settings;                       ///< `_settings`: an object
  std::string model_digest;  ///< of the model's content, external data included; empty = not known
  json::Value quantization;  ///< `_quantization`: how many layers are quantized; null = none
  std::string reference;     ///< engine that makes the references
  std::vector<std::pair<std::string, std::string>> tools;  ///< name -> version
  Rule rule = Rule::Priority;
  bool skip_mode = false;
  std::vector<std::string> skip_executors;
};

/// While a run goes on the closing keys are left out: a reader must not take half a result for a
/// whole one.
enum class Phase { Running, Finished };

/// The files of a report, as text.
struct Texts {
  std::string report;
  std::string compiler;
  std::string macs;
  std::vector<std::string> warnings;
};

/// What reading a file changed.
struct Takeover {
  std::vector<std::string> edited;  ///< layers whose recommendation a person set (newly seen)
  std::vector<std::size_t>
      tolerances;  ///< layers (places in the plan) whose edited tolerance changed: judge them again
  std::string set_aside;  ///< why the file's results were not taken; empty when they were
  std::size_t results_set_aside = 0;
  bool no_settings = false;  ///< the file has results and does not say of which settings
};

/// How two `_settings` differ, for people: "dims: {'n': 1} there, {'n': 4} here". Empty when they
/// agree, or one is missing.
[[nodiscard]] std::string settings_difference(const json::Value& there, const json::Value& here);

class ReportState {
 public:
  explicit ReportState(ReportPlan plan);

  /// Takes what a report file holds: results of cases that this run has not settled, hand edits,
  /// keys that are not ours. Called with the file found at the start, and again when the file on
  /// disk is not what we last wrote.
  Takeover take_over(const json::Value& report);

  /// A verdict of this run: layer and executor are places in the plan. A later one replaces an
  /// earlier one (timing that came later).
  void settle(std::size_t layer, std::size_t executor, const CaseResult& result);
  /// No verdict, and why.
  void unsettle(std::size_t layer, std::size_t executor, std::string reason);

  /// The tolerance that a case is judged by: the entry's edit, else what the plan says.
  [[nodiscard]] domain::Tolerance tolerance(std::size_t layer, std::size_t executor) const;
  /// A person's bounds for the layer, those that were set.
  [[nodiscard]] domain::ToleranceEdit edited_tolerance(std::size_t layer) const;
  /// Whether the file that was taken over has a success for the layer (skip mode asks).
  [[nodiscard]] bool has_old_success(std::size_t layer) const;

  [[nodiscard]] Texts texts(Phase phase,
                            const std::optional<WholeModel>& whole_model = std::nullopt) const;
  [[nodiscard]] std::vector<Op> ops() const;
  [[nodiscard]] Overview overview() const;
  [[nodiscard]] std::size_t unsettled() const { return unsettled_.size(); }
  [[nodiscard]] const ReportPlan& plan() const { return plan_; }
  /// Grows with every change of what the texts would say.
  [[nodiscard]] std::uint64_t revision() const { return revision_; }

 private:
  struct Closing;  ///< what a finished report ends with
  [[nodiscard]] Closing closing(const std::optional<WholeModel>& whole_model) const;
  struct Slot {
    enum class Origin : std::uint8_t { None, File, Run };
    Origin origin = Origin::None;
    std::string status;
    std::optional<double> runtime_ms;
    std::string text;  ///< JSON, ready for its place in the report
  };

  struct Entry {
    LayerFacts facts;
    bool in_model = true;
    bool in_file = false;     ///< the file that was taken over has it, and its results fit
    std::vector<Slot> slots;  ///< by executors_
    bool edited = false;
    std::optional<std::string> edit;  ///< a person's choice; none = null
    bool recommended_in_file = false;
    std::optional<std::string> file_recommendation;
    json::Value tolerance_edit;  ///< `tolerance_used` of the entry; null when there is none
    json::Object kept;           ///< keys that are not ours
  };

  std::size_t executor_place(const std::string& name);
  std::size_t entry_place(const std::string& id);
  void take_edits(std::size_t place, const json::Value& from, bool edited, Takeover& takeover);
  void take_results(Entry& entry, const json::Value& from);
  void take_unsettled(const json::Value& report);
  [[nodiscard]] std::vector<std::size_t> visible(const Entry& entry, bool& hidden) const;
  [[nodiscard]] bool is_shown(const Entry& entry, const std::vector<std::size_t>& slots) const;
  [[nodiscard]] std::optional<std::string> recommendation(const Entry& entry,
                                                          const std::vector<std::size_t>& slots,
                                                          bool hidden) const;
  void write_entry(const Entry& entry, const std::vector<std::size_t>& slots,
                   const std::optional<std::string>& recommended, json::Builder& out) const;
  void write_head(json::Builder& out) const;
  void write_unsettled(json::Builder& out) const;

  ReportPlan plan_;
  std::vector<std::string> executors_;  ///< the chip's, then others found in files
  std::vector<Entry>
      entries_;  ///< the plan's layers, then entries of files that the model no longer has
  std::unordered_map<std::string, std::size_t> by_id_;
  std::map<std::pair<std::size_t, std::size_t>, std::string>
      unsettled_;      ///< (layer, executor) -> reason
  json::Object kept_;  ///< top-level keys that are not ours
  std::string macs_;
  std::uint64_t revision_ = 0;
};

}  // namespace layerfarm::coordinator::report
