#include "coordinator/app/job_sequence.h"

#include <utility>

#include "coordinator/app/plan_core.h"

namespace layerfarm::coordinator::app {
using namespace std::chrono_literals;
using core::JobId;

namespace {
constexpr auto kLongestTurn = 500ms;
}  // namespace

JobId JobSequence::add(Dispatcher& dispatcher, SequencedJob job, bool known) {
  dispatcher_ = &dispatcher;
  core::JobSpec spec;
  spec.id = JobId(static_cast<std::uint32_t>(jobs_.size()));
  spec.stage = job.analyze ? domain::Stage::Analyze : domain::Stage::Whole;
  spec.ability = job.chip ? Dispatcher::class_of_chip(0) : Dispatcher::kReader;
  if (job.whole && !jobs_.empty())
    spec.needs = {JobId(static_cast<std::uint32_t>(jobs_.size() - 1))};
  spec.known = known ? core::Known::Succeeded : core::Known::No;
  const JobId id = spec.id;
  jobs_.push_back(std::move(job));
  dispatcher.tell(core::JobsAdded{{std::move(spec)}});
  return id;
}

void JobSequence::add_known(Dispatcher& dispatcher, SequencedJob job) {
  add(dispatcher, std::move(job), /*known=*/true);
}

SequencedEnd JobSequence::run(Dispatcher& dispatcher, SequencedJob job) {
  end_.reset();
  // The answer may come while the job is added.
  awaited_ = JobId(static_cast<std::uint32_t>(jobs_.size()));
  add(dispatcher, std::move(job), /*known=*/false);
  while (!end_ && !interrupted_) {
    dispatcher.start_workers();
    if (!dispatcher.fatal().empty()) return {nullptr, dispatcher.fatal(), false};
    dispatcher.turn(kLongestTurn);
    console_.live(activity_);
  }
  console_.clear_live();
  if (end_) return *end_;
  return {nullptr, "interrupted", true};
}

JobContent JobSequence::content(JobId job) const {
  const SequencedJob& own = jobs_[job.value()];
  JobContent out;
  out.job.stage = own.analyze ? domain::Stage::Analyze : domain::Stage::Whole;
  out.job.chip = own.chip;
  out.job.inputs = own.inputs;
  out.job.tolerance = own.tolerance;
  out.analyze = own.analyze ? &*own.analyze : nullptr;
  out.whole = own.whole ? &*own.whole : nullptr;
  return out;
}

base::Digest JobSequence::key(JobId job) const { return jobs_[job.value()].key; }

/// What a whole job reads was made by the job before it.
std::vector<JobId> JobSequence::producers_of(JobId job, const std::vector<base::Digest>& /*lost*/) {
  if (job.value() == 0) return {};
  return {JobId(job.value() - 1)};
}

void JobSequence::on_settled(const core::JobSettled& settled,
                             const std::shared_ptr<const domain::Outcome>& outcome) {
  if (settled.job != awaited_) return;
  SequencedEnd end;
  end.outcome = outcome;
  if (const auto* kills = std::get_if<core::KillsWorker>(&settled.how)) {
    end.outcome = death_of(*kills, content(settled.job).job.stage);
  } else if (const auto* unsettled = std::get_if<core::Unsettled>(&settled.how)) {
    end.reason = reason_of(*unsettled, dispatcher_->trouble_of(unsettled->cause));
  } else if (!outcome) {
    end.reason = "its outcome was lost";
  }
  end_ = std::move(end);
}

void JobSequence::on_note(const std::string& text, bool verbose) {
  verbose ? console_.say_verbose("[Farm] " + text) : console_.say("[Farm] " + text);
}

void JobSequence::on_activity(const std::string& worker, const std::string& what) {
  activity_ = worker + ": " + what;
}

void JobSequence::on_interrupt() {
  if (!interrupted_) console_.say("[Farm] interrupted: ending what runs");
  interrupted_ = true;
}

}  // namespace layerfarm::coordinator::app
