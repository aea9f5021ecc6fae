#include "coordinator/app/plan_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "coordinator/app/dispatcher.h"
#include "coordinator/report/case_result.h"

namespace layerfarm::coordinator::app {

core::GroupsAdded JobSpecs::groups(const std::vector<plan::PlannedGroup>& groups) {
  core::GroupsAdded out;
  for (const plan::PlannedGroup& group : groups) {
    const auto chip = std::find(request_.chips.begin(), request_.chips.end(), group.chip);
    chip_of_group_[group.group] = static_cast<std::size_t>(chip - request_.chips.begin());
    out.groups.push_back(
        {core::GroupId(group.group), static_cast<std::uint16_t>(group.chip->batch)});
  }
  return out;
}

core::JobSpec JobSpecs::spec(const plan::PlannedJob& job) const {
  core::JobSpec out;
  out.id = job.id;
  out.stage = job.stage;
  out.ability = Dispatcher::kReader;
  if (job.group != 0) out.ability = Dispatcher::class_of_chip(chip_of_group_.at(job.group));
  out.group = core::GroupId(job.group);
  for (const auto& need : job.needs) {
    if (need) out.needs.push_back(*need);
  }
  out.cost_us = job.cost_us;
  out.limit_ms = limit_of(job);
  out.known = job.known ? core::Known::Succeeded : core::Known::No;
  out.speculative = job.speculative;
  out.exclusive = job.exclusive;
  return out;
}

std::uint32_t JobSpecs::limit_of(const plan::PlannedJob& job) const {
  if (job.group == 0)
    return 0;  // references and models: several engines, each with bounds of its own
  const plan::PlanChip& chip = *request_.chips[chip_of_group_.at(job.group)];
  const domain::Limits& limits = chip.spec.limits;
  const auto first_set = [](std::int64_t a, std::int64_t b, std::int64_t otherwise) {
    return a != 0 ? a : b != 0 ? b : otherwise;
  };
  const std::int64_t compile =
      first_set(request_.options.compile_timeout_ms, limits.compile_timeout_ms,
                domain::kDefaultCompileTimeoutMs);
  const std::int64_t run = first_set(request_.options.run_timeout_ms, limits.run_timeout_ms,
                                     domain::kDefaultRunTimeoutMs);
  std::int64_t limit = 0;
  switch (job.stage) {
    // A batch that fails is split and compiled again, at worst layer by layer.
    case domain::Stage::Compile:
      limit = 2 * compile * chip.batch;
      break;
    case domain::Stage::Time:
      limit = run * (request_.options.timing_runs + 2);
      break;
    case domain::Stage::Execute:
    case domain::Stage::Recompare:
      limit = 2 * run;
      break;
    case domain::Stage::Analyze:
    case domain::Stage::Prepare:
    case domain::Stage::Whole:
      break;
  }
  return static_cast<std::uint32_t>(
      std::min<std::int64_t>(limit, std::numeric_limits<std::uint32_t>::max()));
}

std::shared_ptr<const domain::Outcome> death_of(const core::KillsWorker& kills,
                                                domain::Stage stage) {
  auto out = std::make_shared<domain::Outcome>();
  out->stage = stage;
  out->ending = domain::Ending::Crashed;
  out->diagnostic.where = "run";
  out->diagnostic.cause = "kills its worker";
  out->diagnostic.text = fmt::format("the worker process died under it {} times", kills.deaths);
  return out;
}

std::string reason_of(const core::Unsettled& unsettled, const std::string& trouble) {
  switch (unsettled.reason) {
    case core::UnsettledReason::Infrastructure: {
      std::string out = fmt::format("failed {} times at {} places for reasons that are not its own",
                                    unsettled.faults, unsettled.places);
      if (!trouble.empty()) out += ": " + std::string(report::first_line(trouble));
      return out;
    }
    case core::UnsettledReason::NoWorker:
      return "no worker that can run it is connected";
    case core::UnsettledReason::LostBlobs:
      return "what it needs was lost again and again";
  }
  return {};
}

}  // namespace layerfarm::coordinator::app
