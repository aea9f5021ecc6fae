#include "coordinator/report/rejudge.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "coordinator/report/case_result.h"
#include "coordinator/report/ops.h"
#include "coordinator/report/texts.h"

namespace layerfarm::coordinator::report {
namespace {

/// The bounds of a result; what a report leaves out has its usual value, but for the first two.
struct Bounds {
  std::optional<double> avg;
  std::optional<double> max;
  double fraction = 0;
  std::uint32_t integers = domain::kIntegerTolerance;
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

Bounds used_bounds(const json::Value* tolerance) {
  const domain::ToleranceEdit found = bounds_in(tolerance);
  return {found.fp_avg_tol, found.fp_max_tol, found.fp_abs_tol_frac.value_or(0),
          found.int_tol.value_or(domain::kIntegerTolerance)};
}

/// `_reason` of a difference, taken apart: what a tolerance decides and what none can help.
struct Reasons {
  bool floats = false;    ///< elements beyond fp_max_tol
  bool integers = false;  ///< elements beyond int_tol
  bool others = false;    ///< bools, sizes, places of NaN ...
};

Reasons reasons_in(std::string_view text) {
  Reasons out;
  while (!text.empty()) {
    const std::size_t end = text.find("; ");
    const std::string_view part = text.substr(0, end);
    const auto says = [part](std::string_view words) {
      return part.find(words) != std::string_view::npos;
    };
    (says(" exceed fp_max_tol ") ? out.floats
     : says(" exceed int_tol ")  ? out.integers
                                 : out.others) = true;
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 2);
  }
  return out;
}

/// Whether the greatest difference is beyond the bound. The comparison worked in float32 or
/// float64, and the report does not say which: empty where that decides.
std::optional<bool> exceeds(double needed, double bound) {
  const bool wide = needed > bound;
  const bool narrow = static_cast<float>(needed) > static_cast<float>(bound);
  return wide == narrow ? std::optional(wide) : std::nullopt;
}

/// What becomes of a result.
enum class Change { None, Works, Open };
struct Decision {
  Change change = Change::Open;
  bool no_count = false;  ///< no element is beyond fp_avg_tol any more
};

/// Whether a result's numbers say that it has outputs which are floats, integers.
bool has_floats(const json::Value& result) { return result.get("_mean_rel_diff") != nullptr; }
bool has_integers(const json::Value& result) { return result.get("_num_integers") != nullptr; }

/// What another bound of integers does to a result without floats, or one where it does nothing.
Decision decide_integers(const json::Value& result, const Bounds& before, const Bounds& now) {
  if (!result.get("_num_elements")) return {};
  if (has_floats(result) && !has_integers(result)) return {Change::None};
  const json::Value* greatest = result.get("max_diff");
  const auto most = greatest != nullptr ? greatest->get_number("max_abs_diff") : std::nullopt;
  if (!most) return {};
  if (*most <= std::min(before.integers, now.integers)) return {Change::None};
  const Reasons reasons = reasons_in(result.get_text("_reason"));
  const bool alone = reasons.integers && !reasons.floats && !reasons.others;
  if (!alone || has_floats(result) || *most > now.integers) return {};
  return {Change::Works, /*no_count=*/true};
}

/// A comparison's numbers decide about status, counts and reason together, or about nothing.
Decision decide_floats(const json::Value& result, const Bounds& before, const Bounds& now) {
  // Integers and bools alone: no tolerance of floats is about them.
  if (result.get("_num_elements") && !has_floats(result)) return {Change::None};
  if (!before.avg || !before.max || !now.avg || !now.max) return {};
  std::optional<double> needed = result.get_number("_required_tolerance");
  if (before.fraction != now.fraction) {
    // Known is only what passes whatever the fraction.
    const json::Value* greatest = result.get("max_diff");
    needed = greatest != nullptr ? greatest->get_number("max_rel_diff") : std::nullopt;
    if (!needed || exceeds(*needed, *now.avg) != false || exceeds(*needed, *now.max) != false)
      return {};
  }
  if (!needed) return {};
  const Reasons reasons = reasons_in(result.get_text("_reason"));
  const bool others = reasons.integers || reasons.others;
  const bool same_avg = *before.avg == *now.avg && before.fraction == now.fraction;
  const bool same_max = *before.max == *now.max && before.fraction == now.fraction;
  const bool none_beyond = exceeds(*needed, *now.avg) == false;
  // Of counts the report has only the old one; and zero needs no counting.
  if (!same_avg && !none_beyond) return {};
  Decision out;
  out.no_count = !same_avg && !others;
  const std::optional<bool> fails = exceeds(*needed, *now.max);
  if (!fails) return {};
  const bool worked = result.get_text("status") == "success";
  if (*fails) {
    out.change = !worked && same_avg && same_max ? Change::None : Change::Open;
  } else if (worked) {
    out.change = Change::None;
  } else if (!others) {
    out.change = Change::Works;
  } else {
    // What is left of the reason no tolerance of floats can help.
    out.change = same_avg && !reasons.floats ? Change::None : Change::Open;
  }
  return out;
}

Decision decide(const json::Value& result, const Bounds& before, const Bounds& now) {
  Bounds floats = now;
  floats.integers = before.integers;
  const bool only_integers = floats == before;
  if (now.integers == before.integers) return decide_floats(result, before, now);
  const Decision integers = decide_integers(result, before, now);
  if (only_integers || integers.change == Change::Open) return integers;
  const Decision rest = decide_floats(result, before, now);
  // Only one of them can change something: what has both kinds and depends on both is open.
  return integers.change == Change::None ? rest
         : rest.change == Change::None   ? integers
                                         : Decision{};
}

/// The rule that gave the recommendations that nobody edited; where both give the same, the first.
Rule rule_of(const json::Object& ops, const HandEdits& edits,
             const std::vector<std::string>& executors) {
  for (const json::Member& entry : ops) {
    const auto stored = recommendation_in(entry.value);
    if (!stored || edits.is_one(entry.key, entry.value)) continue;
    if (stored != recommend(candidates_in(entry.value, executors), Rule::Priority))
      return Rule::Timing;
  }
  return Rule::Priority;
}

bool has_repeats(const json::Value& report) {
  const json::Value* settings = report.get("_settings");
  const json::Value* inputs = settings != nullptr ? settings->get("inputs") : nullptr;
  return inputs != nullptr && inputs->get("repeats") != nullptr;
}

class Judge {
 public:
  Judge(json::Value& report, json::Object& ops, const std::vector<std::string>& automatic)
      : report_(report),
        ops_(ops),
        automatic_(automatic),
        edits_(report),
        executors_(chip_executors_of(report)),
        rule_(rule_of(ops, edits_, executors_)),
        repeats_(has_repeats(report)) {}

  void layer(const std::string& id) {
    json::Value* entry = ops_.find(id);
    json::Object* object = entry != nullptr ? entry->object() : nullptr;
    json::Value* results = object != nullptr ? object->find("executors") : nullptr;
    if (results == nullptr || results->object() == nullptr) return;
    const domain::ToleranceEdit edited = bounds_in(object->find("tolerance_used"));
    // Neither a person's choice follows the results, nor the null of pooling that is fused.
    const bool follows =
        !edits_.is_one(id, *entry) &&
        (recommendation_in(*entry) || !recommend(candidates_in(*entry, executors_), rule_));
    const std::size_t before = out_.changed.size();
    for (json::Member& member : *results->object()) {
      if (member.value.object() != nullptr)
        result(id + " on " + member.key, member.value, edited, chip_bounds(member.key));
    }
    if (out_.changed.size() != before && follows) recommend_again(id, *entry);
  }

  Rejudged finish() {
    if (!out_.changed.empty() && report_.get("discovery_report")) {
      const Overview all = overview(ops_of(report_), executors_of(report_), RowOrder::OrigIndex);
      report_.object()->set("discovery_report", discovery_report(all));
      report_.object()->set("has_critical_failures", !all.critical.empty());
    }
    return std::move(out_);
  }

 private:
  /// What holds on an executor where nobody edited anything.
  [[nodiscard]] domain::ToleranceEdit chip_bounds(const std::string& executor) const {
    const json::Value* all = report_.get("_default_tolerances");
    const json::Value* own = all != nullptr ? all->get(executor) : nullptr;
    domain::ToleranceEdit out = bounds_in(own != nullptr ? own : report_.get("default_tolerance"));
    if (!out.fp_abs_tol_frac) out.fp_abs_tol_frac = 0;
    if (!out.int_tol) out.int_tol = domain::kIntegerTolerance;
    return out;
  }

  [[nodiscard]] Bounds bounds_now(const Bounds& before, const domain::ToleranceEdit& edit,
                                  const domain::ToleranceEdit& chip) const {
    const auto now = [&](std::string_view key, const auto& edited, const auto& of_chip,
                         const auto& old) {
      if (edited) return edited;
      const bool given_back =
          std::find(automatic_.begin(), automatic_.end(), key) != automatic_.end();
      return given_back && of_chip ? of_chip : old;
    };
    return {now("fp_avg_tol", edit.fp_avg_tol, chip.fp_avg_tol, before.avg),
            now("fp_max_tol", edit.fp_max_tol, chip.fp_max_tol, before.max),
            *now("fp_abs_tol_frac", edit.fp_abs_tol_frac, chip.fp_abs_tol_frac,
                 std::optional(before.fraction)),
            *now("int_tol", edit.int_tol, chip.int_tol, std::optional(before.integers))};
  }

  void result(const std::string& name, json::Value& value, const domain::ToleranceEdit& edit,
              const domain::ToleranceEdit& chip) {
    json::Object& object = *value.object();
    json::Value* used = object.find("tolerance_used");
    if (used == nullptr || used->object() == nullptr) {
      out_.open.push_back(name);
      return;
    }
    const Bounds before = used_bounds(used);
    const Bounds now = bounds_now(before, edit, chip);
    if (now == before) return;
    // A case that failed stays so whatever the tolerance.
    Decision decision{Change::None};
    if (value.get_text("status") != "error")
      decision = repeats_ ? Decision{} : decide(value, before, now);
    if (decision.change == Change::Open) {
      out_.open.push_back(name);
      return;
    }
    put(now, *used->object());
    // These belong to the old bounds; the next discover finds those of the new ones.
    if (now.fraction != before.fraction) object.erase("_required_tolerance");
    if (now.fraction != before.fraction || now.max != before.max) object.erase("_forgiven");
    if (decision.no_count && object.has("_num_diffs")) object.set("_num_diffs", 0);
    if (decision.change != Change::Works) return;
    out_.changed.push_back(name + ": " + std::string(value.get_text("status")) + " -> success");
    object.set("status", "success");
    object.erase("failure_report");
    object.erase("_reason");
  }

  /// As discover writes them.
  static void put(const Bounds& bounds, json::Object& used) {
    if (bounds.avg) used.set("fp_avg_tol", *bounds.avg);
    if (bounds.max) used.set("fp_max_tol", *bounds.max);
    used.erase("fp_abs_tol_frac");
    used.erase("int_tol");
    if (bounds.fraction != 0) used.set("fp_abs_tol_frac", bounds.fraction);
    if (bounds.integers != domain::kIntegerTolerance)
      used.set("int_tol", std::int64_t{bounds.integers});
  }

  void recommend_again(const std::string& id, json::Value& entry) {
    const auto before = recommendation_in(entry);
    const auto now = recommend(candidates_in(entry, executors_), rule_);
    if (before == now) return;
    out_.recommendations.push_back(id + ": " + before.value_or("null") + " -> " +
                                   now.value_or("null"));
    set_recommendation(report_, id, now);
  }

  json::Value& report_;
  json::Object& ops_;
  const std::vector<std::string>& automatic_;
  HandEdits edits_;
  std::vector<std::string> executors_;
  Rule rule_;
  bool repeats_;  ///< verdicts rest on numbers of several repeats, and those of one are here
  Rejudged out_;
};

}  // namespace

Rejudged rejudge(json::Value& report, const std::vector<std::string>& layers,
                 const std::vector<std::string>& automatic) {
  json::Value* ops = report.object() != nullptr ? report.object()->find("ops") : nullptr;
  if (ops == nullptr || ops->object() == nullptr) return {};
  Judge judge(report, *ops->object(), automatic);
  for (const std::string& layer : layers) judge.layer(layer);
  return judge.finish();
}

ResultKinds kinds_in(const json::Value& entry) {
  ResultKinds out;
  const json::Value* results = entry.get("executors");
  if (results == nullptr || results->object() == nullptr) return out;
  for (const json::Member& result : *results->object()) {
    out.known = out.known || result.value.get("_num_elements") != nullptr;
    out.floats = out.floats || has_floats(result.value);
    out.integers = out.integers || has_integers(result.value);
  }
  return out;
}

void recommend_by_rule(json::Value& report, const std::vector<std::string>& layers) {
  json::Value* ops = report.object() != nullptr ? report.object()->find("ops") : nullptr;
  if (ops == nullptr || ops->object() == nullptr) return;
  // The rule is told from recommendations that nobody edited: before these lose their marks.
  const HandEdits edits(report);
  const std::vector<std::string> executors = chip_executors_of(report);
  const Rule rule = rule_of(*ops->object(), edits, executors);
  const json::Value* settings = report.get("_settings");
  const bool pooling =
      settings != nullptr && pooling_is_fused(*settings, report.get("_subgraph") != nullptr);
  for (const std::string& layer : layers) {
    json::Value* entry = ops->object()->find(layer);
    if (entry == nullptr || entry->object() == nullptr) continue;
    entry->object()->erase("_edited");
    const bool fused = pooling && layer.starts_with("MaxPool_");
    set_recommendation(report, layer,
                       fused ? std::nullopt : recommend(candidates_in(*entry, executors), rule));
  }
}

std::string rejudged_lines(const Rejudged& rejudged) {
  std::string out;
  const auto add = [&out](const char* what, const std::vector<std::string>& of) {
    if (!of.empty()) out += std::to_string(of.size()) + " " + what + ": " + first_ten(of) + "\n";
  };
  add("verdict(s) changed by the tolerance", rejudged.changed);
  add("recommendation(s) follow", rejudged.recommendations);
  add("result(s) stay as they are until the next discover, since the report lacks numbers that the "
      "tolerance asks for",
      rejudged.open);
  return out;
}

}  // namespace layerfarm::coordinator::report
