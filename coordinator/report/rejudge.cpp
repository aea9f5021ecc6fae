#include "coordinator/report/rejudge.h"

#include <optional>
#include <string_view>
#include <utility>

#include "coordinator/report/ops.h"
#include "coordinator/report/texts.h"

namespace layerfarm::coordinator::report {
namespace {

/// The bounds that an edit can set.
struct Bounds {
  std::optional<double> avg;
  std::optional<double> max;
};

Bounds bounds_in(const json::Value* tolerance) {
  if (tolerance == nullptr) return {};
  return {tolerance->get_number("fp_avg_tol"), tolerance->get_number("fp_max_tol")};
}

/// `_reason` of a difference, taken apart: what a tolerance decides and what none can help.
struct Reasons {
  bool by_tolerance = false;  ///< elements beyond fp_max_tol
  bool others = false;        ///< integers, bools, sizes, places of NaN ...
};

Reasons reasons_in(std::string_view text) {
  Reasons out;
  while (!text.empty()) {
    const std::size_t end = text.find("; ");
    const std::string_view part = text.substr(0, end);
    const bool counted = part.find(" exceed fp_max_tol ") != std::string_view::npos;
    (counted ? out.by_tolerance : out.others) = true;
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

/// A comparison's numbers decide about status, counts and reason together, or about nothing.
Decision decide(const json::Value& result, const Bounds& before, const Bounds& now) {
  if (!before.avg || !before.max || !now.avg || !now.max) return {};
  const std::optional<double> needed = result.get_number("_required_tolerance");
  if (!needed) {
    // Integers alone: no tolerance of floats is about them.
    const bool integers = result.get("_num_elements") && !result.get("_mean_rel_diff");
    return {integers ? Change::None : Change::Open};
  }
  const Reasons reasons = reasons_in(result.get_text("_reason"));
  const bool same_avg = *before.avg == *now.avg;
  const bool none_beyond = exceeds(*needed, *now.avg) == false;
  // Of counts the report has only the old one; and zero needs no counting.
  if (!same_avg && !none_beyond) return {};
  Decision out;
  out.no_count = !same_avg && !reasons.others;
  const std::optional<bool> fails = exceeds(*needed, *now.max);
  if (!fails) return {};
  const bool worked = result.get_text("status") == "success";
  if (*fails) {
    out.change = !worked && same_avg && *before.max == *now.max ? Change::None : Change::Open;
  } else if (worked) {
    out.change = Change::None;
  } else if (!reasons.others) {
    out.change = Change::Works;
  } else {
    // What is left of the reason no tolerance can help.
    out.change = same_avg && !reasons.by_tolerance ? Change::None : Change::Open;
  }
  return out;
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
  Judge(json::Value& report, json::Object& ops)
      : report_(report),
        ops_(ops),
        edits_(report),
        executors_(chip_executors_of(report)),
        rule_(rule_of(ops, edits_, executors_)),
        repeats_(has_repeats(report)) {}

  void layer(const std::string& id) {
    json::Value* entry = ops_.find(id);
    json::Object* object = entry != nullptr ? entry->object() : nullptr;
    json::Value* results = object != nullptr ? object->find("executors") : nullptr;
    if (results == nullptr || results->object() == nullptr) return;
    const json::Value* edited = object->find("tolerance_used");
    if (edited == nullptr) return;
    // Neither a person's choice follows the results, nor the null of pooling that is fused.
    const bool follows =
        !edits_.is_one(id, *entry) &&
        (recommendation_in(*entry) || !recommend(candidates_in(*entry, executors_), rule_));
    const std::size_t before = out_.changed.size();
    for (json::Member& member : *results->object()) {
      if (member.value.object() != nullptr)
        result(id + " on " + member.key, member.value, bounds_in(edited));
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
  void result(const std::string& name, json::Value& value, const Bounds& edit) {
    json::Object& object = *value.object();
    json::Value* used = object.find("tolerance_used");
    if (used == nullptr || used->object() == nullptr) {
      out_.open.push_back(name);
      return;
    }
    const Bounds before = bounds_in(used);
    const Bounds now{edit.avg ? edit.avg : before.avg, edit.max ? edit.max : before.max};
    if (now.avg == before.avg && now.max == before.max) return;
    // A case that failed stays so whatever the tolerance.
    Decision decision{Change::None};
    if (value.get_text("status") != "error")
      decision = repeats_ ? Decision{} : decide(value, before, now);
    if (decision.change == Change::Open) {
      out_.open.push_back(name);
      return;
    }
    if (now.avg) used->object()->set("fp_avg_tol", *now.avg);
    if (now.max) used->object()->set("fp_max_tol", *now.max);
    if (decision.no_count && object.has("_num_diffs")) object.set("_num_diffs", 0);
    if (decision.change != Change::Works) return;
    out_.changed.push_back(name + ": " + std::string(value.get_text("status")) + " -> success");
    object.set("status", "success");
    object.erase("failure_report");
    object.erase("_reason");
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
  HandEdits edits_;
  std::vector<std::string> executors_;
  Rule rule_;
  bool repeats_;  ///< verdicts rest on numbers of several repeats, and those of one are here
  Rejudged out_;
};

}  // namespace

Rejudged rejudge(json::Value& report, const std::vector<std::string>& layers) {
  json::Value* ops = report.object() != nullptr ? report.object()->find("ops") : nullptr;
  if (ops == nullptr || ops->object() == nullptr) return {};
  Judge judge(report, *ops->object());
  for (const std::string& layer : layers) judge.layer(layer);
  return judge.finish();
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
