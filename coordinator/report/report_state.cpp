#include "coordinator/report/report_state.h"

#include <algorithm>
#include <array>
#include <future>

#include "coordinator/report/compiler_map.h"
#include "shared/base/check.h"

namespace layerfarm::coordinator::report {
namespace {

constexpr std::string_view kVersion = "1.1";
constexpr std::size_t kLargeReport = 2000;  ///< layers
constexpr int kResultDepth = 4;             ///< nesting of a member of `executors`

constexpr std::array<std::string_view, 21> kTopKeys = {"version",
                                                       "default_tolerance",
                                                       "ops",
                                                       "model_name",
                                                       "_model_digest",
                                                       "_subgraph",
                                                       "_chip",
                                                       "_executors",
                                                       "_evidence",
                                                       "_same_engine",
                                                       "_settings",
                                                       "_quantization",
                                                       "_default_tolerances",
                                                       "_reference",
                                                       "_tools",
                                                       "_assignments",
                                                       "_unsettled",
                                                       "_whole_model",  // of what was there before
                                                       "discovery_report",
                                                       "has_critical_failures",
                                                       "final_report_text"};

constexpr std::array<std::string_view, 9> kEntryKeys = {
    "executors",      "_node_index",   "_orig_index",
    "mac_count",      "mlir_location", "recommended_executor",
    "tolerance_used", "_edited",       "_not_in_model"};

template <std::size_t N>
bool is_one_of(std::string_view key, const std::array<std::string_view, N>& keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::size_t count_results(const json::Value& report) {
  std::size_t out = 0;
  const json::Value* ops = report.get("ops");
  if (!ops || !ops->object()) return out;
  for (const json::Member& entry : *ops->object()) {
    const json::Value* tested = entry.value.get("executors");
    if (tested && tested->object()) out += tested->object()->size();
  }
  return out;
}

}  // namespace

std::string settings_difference(const json::Value& there, const json::Value& here) {
  if (!there.object() || !here.object()) return "";
  std::string out;
  const auto add = [&](const std::string& key, const json::Value* a, const json::Value* b) {
    if (a && b && *a == *b) return;
    out += (out.empty() ? "" : "; ") + key + ": " + (a ? json::python_text(*a) : "not set") +
           " there, " + (b ? json::python_text(*b) : "not set") + " here";
  };
  for (const json::Member& member : *here.object())
    add(member.key, there.get(member.key), &member.value);
  for (const json::Member& member : *there.object()) {
    if (!here.get(member.key)) add(member.key, &member.value, nullptr);
  }
  return out;
}

ReportState::ReportState(ReportPlan plan) : plan_(std::move(plan)) {
  for (const domain::ExecutorSpec& executor : plan_.chip.executors)
    executors_.push_back(executor.name);
  entries_.reserve(plan_.layers.size());
  std::vector<LayerMacs> macs;
  for (const LayerFacts& facts : plan_.layers) {
    by_id_.emplace(facts.id, entries_.size());
    Entry entry;
    entry.facts = facts;
    entry.slots.resize(executors_.size());
    entries_.push_back(std::move(entry));
    macs.push_back({facts.id, facts.mac_count, facts.mac_breakdown});
  }
  macs_ = mac_sidecar(std::move(macs), plan_.model_name);
}

std::size_t ReportState::executor_place(const std::string& name) {
  const auto found = std::find(executors_.begin(), executors_.end(), name);
  if (found != executors_.end()) return static_cast<std::size_t>(found - executors_.begin());
  executors_.push_back(name);
  return executors_.size() - 1;
}

std::size_t ReportState::entry_place(const std::string& id) {
  const auto [found, is_new] = by_id_.try_emplace(id, entries_.size());
  if (is_new) {
    entries_.emplace_back();
    entries_.back().facts.id = id;
    entries_.back().in_model = false;
  }
  return found->second;
}

Takeover ReportState::take_over(const json::Value& report) {
  ++revision_;
  Takeover takeover;
  const std::string chip = chip_of(report, plan_.chip);
  const bool same_chip = chip.empty() || chip == plan_.chip.name;
  const json::Value* settings = report.get("_settings");
  if (!same_chip) {
    // Its executors are not ours: nothing in it means anything here.
    takeover.set_aside = "chip: " + chip + " there, " + plan_.chip.name + " here";
  } else {
    // Whoever completes the files of a run that was cut short knows its results, not its settings.
    if (settings && plan_.settings.is_null()) plan_.settings = *settings;
    if (settings) takeover.set_aside = settings_difference(*settings, plan_.settings);
    const std::string_view model = report.get_text("_model_digest");
    if (takeover.set_aside.empty() && !model.empty() && !plan_.model_digest.empty() &&
        model != plan_.model_digest)
      takeover.set_aside = "the model's content has changed since";
  }
  const bool fits = takeover.set_aside.empty();
  const std::size_t results = count_results(report);
  if (!fits) takeover.results_set_aside = results;
  takeover.no_settings = fits && !settings && results > 0;
  if (!same_chip) return takeover;

  for (const json::Member& member : *(report.object() ? report.object() : &kept_)) {
    if (!is_one_of(member.key, kTopKeys)) kept_.set(member.key, member.value);
  }
  const json::Value* ops = report.get("ops");
  if (!ops || !ops->object()) return takeover;
  const HandEdits edits(report);
  for (const json::Member& member : *ops->object()) {
    if (!member.value.object()) continue;
    const bool edited = edits.is_one(member.key, member.value);
    // Other settings may make other layers; a person's word about one outlives that.
    const bool wanted = fits || edited || member.value.get("tolerance_used");
    if (!wanted && !by_id_.contains(member.key)) continue;
    const std::size_t place = entry_place(member.key);
    take_edits(place, member.value, edited, takeover);
    Entry& entry = entries_[place];
    entry.recommended_in_file = fits && member.value.get("recommended_executor");
    entry.file_recommendation = recommendation_in(member.value);
    if (fits) take_results(entry, member.value);
  }
  if (fits) take_unsettled(report);
  return takeover;
}

void ReportState::take_edits(std::size_t place, const json::Value& from, bool edited,
                             Takeover& takeover) {
  Entry& entry = entries_[place];
  const std::optional<std::string> recommended = recommendation_in(from);
  if (edited && entry.in_model && (!entry.edited || entry.edit != recommended))
    takeover.edited.push_back(entry.facts.id);
  entry.edited = edited;
  entry.edit = edited ? recommended : std::nullopt;

  const json::Value* tolerance = from.get("tolerance_used");
  const json::Value edit = tolerance && tolerance->object() ? *tolerance : json::Value();
  if (!(edit == entry.tolerance_edit) && entry.in_model) takeover.tolerances.push_back(place);
  entry.tolerance_edit = edit;
}

void ReportState::take_results(Entry& entry, const json::Value& from) {
  entry.in_file = true;
  for (const json::Member& member : *from.object()) {
    const bool ours = is_one_of(member.key, kEntryKeys);
    const bool place_of_gone = !entry.in_model && ours && member.key != "executors" &&
                               member.key != "recommended_executor" &&
                               member.key != "tolerance_used" && member.key != "_edited" &&
                               member.key != "_not_in_model";
    const bool mark = std::any_of(entry.facts.marks.begin(), entry.facts.marks.end(),
                                  [&](const auto& known) { return known.first == member.key; });
    if ((!ours && !mark) || place_of_gone) entry.kept.set(member.key, member.value);
  }
  const json::Value* tested = from.get("executors");
  if (!tested || !tested->object()) return;
  for (const json::Member& result : *tested->object()) {
    const std::size_t executor = executor_place(result.key);
    if (entry.slots.size() <= executor) entry.slots.resize(executor + 1);
    Slot& slot = entry.slots[executor];
    if (slot.origin == Slot::Origin::Run) continue;
    slot.origin = Slot::Origin::File;
    slot.status = result.value.get_text("status");
    const json::Value* timing = result.value.get("timing");
    slot.runtime_ms = timing ? timing->get_number("runtime_ms") : std::nullopt;
    slot.text.clear();
    json::write(result.value, slot.text, kResultDepth);
  }
}

void ReportState::take_unsettled(const json::Value& report) {
  const json::Value* unsettled = report.get("_unsettled");
  if (!unsettled || !unsettled->object()) return;
  for (const json::Member& layer : *unsettled->object()) {
    const auto found = by_id_.find(layer.key);
    if (found == by_id_.end() || !layer.value.object()) continue;
    for (const json::Member& reason : *layer.value.object()) {
      const std::size_t executor = executor_place(reason.key);
      const Entry& entry = entries_[found->second];
      const bool settled =
          executor < entry.slots.size() && entry.slots[executor].origin == Slot::Origin::Run;
      if (!settled && reason.value.text())
        unsettled_.try_emplace({found->second, executor}, *reason.value.text());
    }
  }
}

void ReportState::settle(std::size_t layer, std::size_t executor, const CaseResult& result) {
  LAYERFARM_CHECK(layer < plan_.layers.size() && executor < plan_.chip.executors.size());
  Slot& slot = entries_[layer].slots[executor];
  std::string text;
  text.reserve(512);
  write_result(result, plan_.reference, text);
  const bool was_unsettled = unsettled_.erase({layer, executor}) > 0;
  if (slot.origin == Slot::Origin::Run && slot.text == text && !was_unsettled) return;
  slot.origin = Slot::Origin::Run;
  slot.status = domain::status_name(result.status);
  slot.runtime_ms = result.timing ? std::optional(result.timing->runtime_ms) : std::nullopt;
  slot.text = std::move(text);
  slot.text.shrink_to_fit();
  ++revision_;
}

void ReportState::unsettle(std::size_t layer, std::size_t executor, std::string reason) {
  LAYERFARM_CHECK(layer < plan_.layers.size() && executor < plan_.chip.executors.size());
  if (entries_[layer].slots[executor].origin == Slot::Origin::Run)
    return;  // a verdict counts, whichever came first
  unsettled_[{layer, executor}] = std::move(reason);
  ++revision_;
}

domain::Tolerance ReportState::tolerance(std::size_t layer, std::size_t executor) const {
  LAYERFARM_CHECK(layer < plan_.layers.size() && executor < plan_.chip.executors.size());
  return edited_tolerance(layer).over(plan_.chip.executors[executor].tolerance);
}

domain::ToleranceEdit ReportState::edited_tolerance(std::size_t layer) const {
  LAYERFARM_CHECK(layer < plan_.layers.size());
  return bounds_in(&entries_[layer].tolerance_edit);
}

bool ReportState::has_old_success(std::size_t layer) const {
  LAYERFARM_CHECK(layer < plan_.layers.size());
  const std::vector<Slot>& slots = entries_[layer].slots;
  return std::any_of(slots.begin(), slots.end(), [](const Slot& slot) {
    return slot.origin == Slot::Origin::File && slot.status == "success";
  });
}

/// Places of the results that the report shows, after the clean-up; `hidden` says that a result of
/// the file is not among them.
std::vector<std::size_t> ReportState::visible(const Entry& entry, bool& hidden) const {
  std::vector<std::size_t> slots;
  bool worked = false;
  hidden = false;
  for (std::size_t i = 0; i < entry.slots.size(); ++i) {
    const Slot& slot = entry.slots[i];
    if (slot.origin == Slot::Origin::None) continue;
    const bool skipped = std::find(plan_.skip_executors.begin(), plan_.skip_executors.end(),
                                   executors_[i]) != plan_.skip_executors.end();
    if (skipped || (worked && plan_.skip_mode)) {
      hidden = hidden || slot.origin == Slot::Origin::File;
      continue;
    }
    slots.push_back(i);
    worked = worked || slot.status == "success";
  }
  return slots;
}

bool ReportState::is_shown(const Entry& entry, const std::vector<std::size_t>& slots) const {
  return !slots.empty() || entry.in_file || entry.facts.skipped || entry.edited ||
         !entry.tolerance_edit.is_null();
}

std::optional<std::string> ReportState::recommendation(const Entry& entry,
                                                       const std::vector<std::size_t>& slots,
                                                       bool hidden) const {
  if (entry.edited) return entry.edit;
  if (entry.facts.no_recommendation) return std::nullopt;
  bool tested = false;
  std::vector<Candidate> candidates;
  candidates.reserve(plan_.chip.executors.size());
  const bool timed = times_compare(plan_.chip);
  for (const std::size_t i : slots) {
    const Slot& slot = entry.slots[i];
    tested = tested || slot.origin == Slot::Origin::Run;
    // Executors that the chip does not have cannot be recommended.
    if (i < plan_.chip.executors.size())
      candidates.push_back({executors_[i], slot.status, timed ? slot.runtime_ms : std::nullopt});
  }
  if (entry.recommended_in_file && !tested && !hidden) return entry.file_recommendation;
  return recommend(candidates, plan_.rule);
}

void ReportState::write_head(json::Builder& out) const {
  out.text("model_name", plan_.model_name);
  if (!plan_.model_digest.empty()) out.text("_model_digest", plan_.model_digest);
  if (plan_.subgraph) {
    out.value("_subgraph", json::Array{json::Value(std::int64_t{plan_.subgraph->first}),
                                       json::Value(std::int64_t{plan_.subgraph->last})});
  }
  const auto& executors = plan_.chip.executors;
  out.text("_chip", plan_.chip.name);
  json::Array names;
  json::Array same_engine;
  json::Object evidence;
  json::Object tolerances;
  for (const domain::ExecutorSpec& executor : executors) {
    names.emplace_back(executor.name);
    evidence.set(executor.name, std::string(domain::evidence_name(executor.evidence)));
    tolerances.set(executor.name, tolerance_json(executor.tolerance));
    if (executor.same_engine) same_engine.emplace_back(executor.name);
  }
  out.value("_executors", names);
  out.value("_evidence", evidence);
  if (!same_engine.empty()) out.value("_same_engine", same_engine);
  if (!plan_.settings.is_null()) out.value("_settings", plan_.settings);
  if (!plan_.quantization.is_null()) out.value("_quantization", plan_.quantization);
  out.value("_default_tolerances", tolerances);
  if (!plan_.reference.empty()) out.text("_reference", plan_.reference);
  if (plan_.tools.empty()) return;
  out.open("_tools");
  for (const auto& [name, version] : plan_.tools) out.text(name, version);
  out.close();
}

void ReportState::write_entry(const Entry& entry, const std::vector<std::size_t>& slots,
                              const std::optional<std::string>& recommended,
                              json::Builder& out) const {
  const LayerFacts& facts = entry.facts;
  out.open(facts.id);
  out.open("executors");
  for (const std::size_t i : slots) out.raw(executors_[i], entry.slots[i].text);
  out.close();
  if (entry.in_model) {
    if (facts.node_index) out.integer("_node_index", *facts.node_index);
    out.integer("_orig_index", facts.orig_index);
    out.integer("mac_count", facts.mac_count);
    out.text("mlir_location", facts.location);
  } else {
    for (const json::Member& member : entry.kept) {
      if (is_one_of(member.key, kEntryKeys)) out.value(member.key, member.value);
    }
  }
  if (recommended) {
    out.text("recommended_executor", *recommended);
  } else {
    out.null("recommended_executor");
  }
  if (!entry.tolerance_edit.is_null()) out.value("tolerance_used", entry.tolerance_edit);
  if (entry.edited) out.flag("_edited", true);
  if (!entry.in_model) out.flag("_not_in_model", true);
  for (const auto& [key, mark] : facts.marks) out.value(key, mark);
  for (const json::Member& member : entry.kept) {
    if (!is_one_of(member.key, kEntryKeys)) out.value(member.key, member.value);
  }
  out.close();
}

void ReportState::write_unsettled(json::Builder& out) const {
  if (unsettled_.empty()) return;
  out.open("_unsettled");
  for (auto at = unsettled_.begin(); at != unsettled_.end();) {
    const std::size_t layer = at->first.first;
    out.open(entries_[layer].facts.id);
    for (; at != unsettled_.end() && at->first.first == layer; ++at)
      out.text(executors_[at->first.second], at->second);
    out.close();
  }
  out.close();
}

struct ReportState::Closing {
  json::Value discovery_report;
  bool critical = false;
  std::string text;
};

ReportState::Closing ReportState::closing(const std::optional<WholeModel>& whole_model) const {
  const Overview all = overview();
  return {report::discovery_report(all), !all.critical.empty(),
          final_report_text(plan_.model_name, all, whole_model)};
}

Texts ReportState::texts(Phase phase, const std::optional<WholeModel>& whole_model) const {
  Texts texts;
  // The closing blocks take as long as all the rest: for a large report they are made beside it.
  const auto policy = entries_.size() >= kLargeReport ? std::launch::async : std::launch::deferred;
  std::future<Closing> closing_blocks;
  if (phase == Phase::Finished)
    closing_blocks = std::async(policy, [&] { return closing(whole_model); });
  texts.macs = macs_;
  std::size_t size = 4096;
  for (const Entry& entry : entries_) {
    size += 512;
    for (const Slot& slot : entry.slots) size += slot.text.size() + 32;
  }
  texts.report.reserve(size);

  json::Builder out(texts.report, 0);
  out.open();
  out.text("version", kVersion);
  if (!plan_.chip.executors.empty())
    out.value("default_tolerance", tolerance_json(plan_.chip.executors.front().tolerance));
  std::vector<Assignment> assignments;
  std::vector<std::pair<const Entry*, std::optional<std::string>>> recommended;
  recommended.reserve(entries_.size());
  out.open("ops");
  for (const Entry& entry : entries_) {
    bool hidden = false;
    const std::vector<std::size_t> slots = visible(entry, hidden);
    if (!is_shown(entry, slots)) continue;
    recommended.emplace_back(&entry, recommendation(entry, slots, hidden));
    write_entry(entry, slots, recommended.back().second, out);
  }
  out.close();
  write_head(out);
  out.open("_assignments");
  assignments.reserve(recommended.size());
  for (const auto& [entry, executor] : recommended) {
    std::optional<std::string_view> name;
    if (executor) name = *executor;
    assignments.push_back({entry->facts.id, entry->facts.location, name, entry->in_model});
    if (!entry->in_model) continue;
    out.open(entry->facts.id);
    out.text("node_name", entry->facts.node_name);
    if (executor) {
      out.text("executor", *executor);
    } else {
      out.null("executor");
    }
    out.close();
  }
  out.close();
  write_unsettled(out);
  for (const json::Member& member : kept_) out.value(member.key, member.value);
  if (phase == Phase::Finished) {
    const Closing closing_block = closing_blocks.get();
    out.value("discovery_report", closing_block.discovery_report);
    out.flag("has_critical_failures", closing_block.critical);
    out.text("final_report_text", closing_block.text);
  }
  out.close();

  CompilerMap map = compiler_map(assignments, plan_.model_name);
  texts.compiler = std::move(map.text);
  texts.warnings = std::move(map.warnings);
  return texts;
}

std::vector<Op> ReportState::ops() const {
  std::vector<Op> ops;
  for (const Entry& entry : entries_) {
    bool hidden = false;
    const std::vector<std::size_t> slots = visible(entry, hidden);
    if (!is_shown(entry, slots)) continue;
    Op op;
    op.id = entry.facts.id;
    if (entry.in_model) {
      if (entry.facts.node_index) op.node_index = *entry.facts.node_index;
      op.orig_index = entry.facts.orig_index;
      op.location = entry.facts.location;
    } else {
      const json::Value* place = entry.kept.find("mlir_location");
      if (place && place->text()) op.location = *place->text();
    }
    for (const std::size_t i : slots) {
      const Slot& slot = entry.slots[i];
      OpResult result{executors_[i], slot.status, slot.runtime_ms, json::Value()};
      if (slot.status == "error") {
        // Kept as text only: errors are few, and this is asked for once.
        if (const auto parsed = json::parse(slot.text, entry.facts.id)) {
          if (const json::Value* failure = parsed->get("failure_report"))
            result.failure_report = *failure;
        }
      }
      op.results.push_back(std::move(result));
    }
    op.recommended = recommendation(entry, slots, hidden);
    ops.push_back(std::move(op));
  }
  return ops;
}

Overview ReportState::overview() const {
  return report::overview(ops(), executors_, RowOrder::OrigIndex);
}

}  // namespace layerfarm::coordinator::report
