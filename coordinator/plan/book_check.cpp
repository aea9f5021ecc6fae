#include "coordinator/plan/book_check.h"

#include <vector>

namespace layerfarm::coordinator::plan {
namespace {

/// How often each job is wanted, counted anew.
using Uses = std::vector<std::uint32_t>;

std::string check_jobs(const JobTable& jobs, Uses& uses) {
  for (std::uint32_t job = 0; job < jobs.size(); ++job) {
    const JobRecord& record = jobs[job];
    if (record.stage == domain::Stage::Analyze) ++uses[job];
    for (const std::uint32_t need : record.needs) {
      if (need == kNone) continue;
      if (need >= job) return "job " + std::to_string(job) + " needs a later one";
      if (record.holds_needs) ++uses[need];
      if (record.state == JobState::Open && !record.speculative && jobs[need].speculative) {
        return "job " + std::to_string(job) + " is wanted, one that it needs is speculative";
      }
    }
    if (record.state == JobState::Open && record.uses == 0)
      return "job " + std::to_string(job) + " is open and nobody wants it";
  }
  return {};
}

std::string check_case(const JobTable& jobs, const Cases& cases, std::uint32_t id, Uses& uses) {
  const std::string name = "case " + std::to_string(id);
  const CaseState state = cases.state(id);
  const std::uint32_t job = cases.waits(id);
  const bool timing = state == CaseState::Timing || state == CaseState::TimingSuccess;
  const bool must_wait = timing || state == CaseState::Waiting || state == CaseState::WaitingEarly;
  if (must_wait != (job != kNone)) return name + " waits for nothing, or for no reason";
  if (job != kNone) {
    ++uses[job];
    if (jobs[job].state != JobState::Open) return name + " waits for a job that is over";
    if (state != CaseState::WaitingEarly && jobs[job].speculative)
      return name + " is wanted, its job is speculative";
  }
  if (state == CaseState::Idle) return name + " was never looked at";
  const bool holds = timing || state == CaseState::Held;
  if (holds != cases.holds_verdict(id)) return name + " holds a verdict, or lost it";
  return {};
}

}  // namespace

std::string first_broken_rule(const BookTables& tables, const Cases& cases) {
  const JobTable& jobs = tables.jobs();
  Uses uses(jobs.size(), 0);
  if (std::string broken = check_jobs(jobs, uses); !broken.empty()) return broken;
  for (std::uint32_t file = 0; file < tables.files(); ++file) {
    const BookFile& of = tables.file(file);
    std::uint64_t settled = 0;
    for (std::uint32_t id = of.first_case; id < of.end_case(); ++id) {
      if (std::string broken = check_case(jobs, cases, id, uses); !broken.empty()) return broken;
      if (is_settled(cases.state(id))) ++settled;
    }
    if (settled != cases.counts(file).settled)
      return "file " + std::to_string(file) + " counts its settled cases wrongly";
  }
  for (std::uint32_t job = 0; job < jobs.size(); ++job) {
    if (uses[job] != jobs[job].uses)
      return "job " + std::to_string(job) + " counts its uses wrongly";
  }
  return {};
}

}  // namespace layerfarm::coordinator::plan
