#include "coordinator/plan/job_maker.h"

#include "shared/base/check.h"

namespace layerfarm::coordinator::plan {

using domain::Stage;

PlannedJob JobMaker::make_analyze(const base::Digest& key, bool known) {
  JobRecord record;
  record.stage = Stage::Analyze;
  record.state = known ? JobState::Done : JobState::Open;
  record.known = known;
  record.uses = 1;  // its caller
  PlannedJob out;
  out.id = JobId(jobs_.add(record));
  out.stage = Stage::Analyze;
  out.known = known;
  out.cost_us = experience_.estimate(Stage::Analyze, 0);
  tables_.set_analyze_key(out.id.value(), key);
  return out;
}

std::uint32_t JobMaker::make(const Place& at, Stage stage, const NewJob& how) {
  JobRecord record;
  record.example = at.id;
  record.needs[0] = how.needs[0];
  record.needs[1] = how.needs[1];
  record.run = at.request->run;
  record.stage = stage;
  record.state = how.known ? JobState::Done : JobState::Open;
  record.speculative = how.speculative && !how.known;
  record.known = how.known;
  record.holds_needs = !how.known || any_open(how.needs);
  const std::uint32_t job = stage == Stage::Recompare
                                ? jobs_.add(record)
                                : jobs_.add(record, tables_.work_key(at, stage));
  PlannedJob planned;
  planned.id = JobId(job);
  planned.stage = stage;
  planned.group = at.group(stage);
  planned.known = how.known;
  planned.speculative = record.speculative;
  planned.exclusive = stage == Stage::Time;
  planned.cost_us = experience_.estimate(stage, planned.group);
  for (const std::uint32_t need : how.needs) {
    if (need == kNone) continue;
    planned.needs[planned.needs[0] ? 1 : 0] = JobId(need);
    if (record.holds_needs) ++jobs_[need].uses;
    if (record.state == JobState::Open && !record.speculative) make_firm(need);
  }
  turn_.jobs.push_back(planned);
  return job;
}

bool JobMaker::any_open(const std::uint32_t (&needs)[2]) const {
  return (needs[0] != kNone && jobs_[needs[0]].state == JobState::Open) ||
         (needs[1] != kNone && jobs_[needs[1]].state == JobState::Open);
}

std::uint32_t JobMaker::job_for(const Place& at, Stage stage, const Knowledge& what,
                                bool speculative) {
  if (what.job != kNone && what.kind != Knowledge::Kind::Blocked) return what.job;
  return make(at, stage, {.known = what.kind == Knowledge::Kind::Done, .speculative = speculative});
}

JobMaker::Needed JobMaker::needed_for(const Place& at, const Knowledge& prepare,
                                      const Knowledge& compile, bool speculative) {
  Needed out;
  if (at.chip().needs_prepare) out.prepare = job_for(at, Stage::Prepare, prepare, speculative);
  if (at.chip().needs_compile) out.compile = job_for(at, Stage::Compile, compile, speculative);
  return out;
}

void JobMaker::make_firm(std::uint32_t job) {
  JobRecord& record = jobs_[job];
  if (!record.speculative) return;
  record.speculative = false;
  if (job >= first_new_) {
    turn_.jobs[job - first_new_].speculative = false;
  } else if (record.state == JobState::Open) {
    turn_.wanted.push_back(JobId(job));
  }
  for (const std::uint32_t need : record.needs) {
    if (need != kNone) make_firm(need);
  }
}

void JobMaker::give_up(std::uint32_t job) {
  JobRecord& record = jobs_[job];
  LAYERFARM_CHECK(record.uses > 0);
  if (--record.uses > 0) return;
  if (record.state == JobState::Open) {
    record.state = JobState::Dropped;
    record.waiting = kNone;
    turn_.dropped.push_back(JobId(job));
  }
  give_back_needs(job);
}

void JobMaker::give_back_needs(std::uint32_t job) {
  if (!jobs_[job].holds_needs) return;
  jobs_[job].holds_needs = false;
  for (const std::uint32_t need : jobs_[job].needs) {
    if (need != kNone) give_up(need);
  }
}

}  // namespace layerfarm::coordinator::plan
