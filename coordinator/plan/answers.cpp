#include "coordinator/plan/answers.h"

#include <utility>

namespace layerfarm::coordinator::plan {

using base::Digest;
using domain::Ending;
using domain::Stage;

namespace {

/// Endings that say nothing of the case; whoever hands them over has nothing for this key.
bool says_nothing(Ending ending) {
  return ending == Ending::Infrastructure || ending == Ending::LostBlob ||
         ending == Ending::Cancelled;
}

Knowledge::Kind kind_of(const domain::Outcome& outcome) {
  return outcome.ending == Ending::Done ? Knowledge::Kind::Done : Knowledge::Kind::Failed;
}

}  // namespace

OutcomePtr made_failure(Stage stage, std::string where, std::string cause, std::string text) {
  auto out = std::make_shared<domain::Outcome>();
  out->stage = stage;
  out->ending = Ending::Refused;
  out->diagnostic = {.where = std::move(where), .cause = std::move(cause), .text = std::move(text)};
  return out;
}

void Answers::take(std::uint32_t job, const JobAnswer& answer) {
  JobRecord& record = tables_.jobs()[job];
  failures_.erase(job);
  stuck_reasons_.erase(job);
  last_job_ = job;
  if (const auto* answered = std::get_if<Answered>(&answer)) {
    last_outcome_ = answered->outcome;
    record.state = answered->outcome->ending == Ending::Done ? JobState::Done : JobState::Failed;
    record.known = false;
    if (!domain::answers_later_runs(answered->outcome->ending)) failures_[job] = answered->outcome;
    if (record.stage != Stage::Analyze) {
      experience_.saw(record.stage, tables_.place(record.example).group(record.stage),
                      answered->outcome->took_us);
    }
  } else if (const auto* stuck = std::get_if<NotSettled>(&answer)) {
    record.state = JobState::Stuck;
    stuck_reasons_[job] = stuck->reason;
  } else if (record.stage == Stage::Prepare || record.stage == Stage::Compile) {
    // Only after a loss: what it is made of could not be made again.
    record.state = JobState::Failed;
    failures_[job] =
        made_failure(record.stage, "import", "refused", "the model could not be read again");
  } else {
    record.state = JobState::Blocked;
  }
}

void Answers::let_go() {
  last_job_ = kNone;
  last_outcome_ = nullptr;
}

OutcomePtr Answers::outcome_of(std::uint32_t job) const {
  if (job == last_job_ && last_outcome_) return last_outcome_;
  if (const auto at = failures_.find(job); at != failures_.end()) return at->second;
  return known_.find(tables_.key(job));
}

std::string Answers::stuck_reason(std::uint32_t job) const {
  const auto reason = stuck_reasons_.find(job);
  return reason == stuck_reasons_.end() ? std::string() : reason->second;
}

bool Answers::counts_for(std::uint32_t job, const BookRequest& request) const {
  const JobRecord& record = tables_.jobs()[job];
  if (record.state == JobState::Dropped) return false;
  if (record.state == JobState::Open || record.run == request.run) return true;
  // What another run came to is as good as what the store says: final answers count, the rest is
  // tried again.
  if (request.given.options.recompute) return false;
  return record.state == JobState::Done ||
         (record.state == JobState::Failed && !failures_.contains(job));
}

Knowledge Answers::of_job(std::uint32_t job) const {
  const JobRecord& record = tables_.jobs()[job];
  Knowledge out;
  out.job = job;
  out.stored = record.known;
  switch (record.state) {
    case JobState::Open:
      out.kind = Knowledge::Kind::Open;
      return out;
    case JobState::Blocked:
      out.kind = Knowledge::Kind::Blocked;
      return out;
    case JobState::Stuck:
      out.kind = Knowledge::Kind::Stuck;
      return out;
    case JobState::Done:
    case JobState::Failed:
      out.outcome = outcome_of(job);
      if (!out.outcome) return {};  // the store lost it since: to be done again
      out.kind = kind_of(*out.outcome);
      return out;
    case JobState::Dropped:
      break;
  }
  return {};
}

Knowledge Answers::of_store(const Digest& wanted, Stage stage, Group group) {
  Knowledge out;
  OutcomePtr outcome = known_.find(wanted);
  if (!outcome || says_nothing(outcome->ending)) return out;
  experience_.saw(stage, group, outcome->took_us);
  out.kind = kind_of(*outcome);
  out.outcome = std::move(outcome);
  out.stored = true;
  return out;
}

Knowledge Answers::ask(const Place& at, Stage stage) {
  const std::uint32_t job = tables_.jobs().find(tables_.work_key(at, stage));
  if (job != kNone && counts_for(job, *at.request)) {
    Knowledge out = of_job(job);
    if (out.kind != Knowledge::Kind::Nothing) return out;
  }
  if (at.options().recompute) return {};
  return of_store(tables_.key(at, stage), stage, at.group(stage));
}

Knowledge Answers::ask_if_needed(const Place& at, Stage stage) {
  const PlanChip& chip = at.chip();
  if (stage == Stage::Prepare && !chip.needs_prepare) return {};
  if (stage == Stage::Compile && !chip.needs_compile) return {};
  return ask(at, stage);
}

Knowledge Answers::ask_recompare(const Place& at, std::uint32_t execute_job,
                                 const domain::Tolerance& wanted) {
  const std::uint32_t job = execute_job == kNone ? kNone : tables_.recompare(execute_job, wanted);
  if (job != kNone && counts_for(job, *at.request)) {
    Knowledge out = of_job(job);
    if (out.kind != Knowledge::Kind::Nothing) return out;
  }
  if (at.options().recompute) return {};
  return of_store(tables_.key(at, Stage::Recompare), Stage::Recompare, at.group(Stage::Recompare));
}

}  // namespace layerfarm::coordinator::plan
