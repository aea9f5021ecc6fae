// One case and its jobs: what it waits for, and what its verdict rests on.
#include <algorithm>
#include <utility>

#include "coordinator/plan/cases.h"

namespace layerfarm::coordinator::plan {

using domain::Stage;
using Kind = Knowledge::Kind;

// ---- waiting ----

void Cases::wait_for(const Place& at, std::uint32_t job, CaseState as) {
  state_[at.id] = as;
  waits_[at.id] = job;
  link_[at.id] = jobs_[job].waiting;
  jobs_[job].waiting = at.id;
  ++jobs_[job].uses;
  if (as != CaseState::WaitingEarly) maker_.make_firm(job);
}

void Cases::stop_waiting(std::uint32_t id) {
  if (waits_[id] == kNone) return;
  // It stays in the job's list until that is gone through: its `waits` tells that it is not meant
  // any more.
  maker_.give_up(std::exchange(waits_[id], kNone));
}

void Cases::on_job_settled(std::uint32_t job) {
  std::vector<std::uint32_t> cases;
  for (std::uint32_t id = std::exchange(jobs_[job].waiting, kNone); id != kNone; id = link_[id]) {
    if (waits_[id] == job) cases.push_back(id);
  }
  std::sort(cases.begin(), cases.end());
  cases.erase(std::unique(cases.begin(), cases.end()), cases.end());
  for (const std::uint32_t id : cases) {
    // One of the cases before may have made this one unwanted.
    if (waits_[id] != job) continue;
    waits_[id] = kNone;
    --jobs_[job].uses;
    const Place at = tables_.place(id);
    if (state_[id] == CaseState::Timing || state_[id] == CaseState::TimingSuccess) {
      on_timed(at, job);
    } else {
      step(at);
    }
  }
}

void Cases::cancel(std::uint32_t file_number) {
  const BookFile& file = tables_.file(file_number);
  for (std::uint32_t id = file.first_case; id < file.end_case(); ++id) {
    if (state_[id] == CaseState::NotSelected || is_settled(state_[id])) continue;
    state_[id] = CaseState::NotSelected;
    held_.erase(id);
    stop_waiting(id);
  }
}

// ---- words for an end ----

CaseSettled Cases::settled(const Place& at, How how) const {
  CaseSettled out;
  out.id = CaseId(at.id);
  out.file = FileId(at.file_number);
  out.layer = at.layer;
  out.executor = at.executor;
  out.how = how;
  if (how == How::Judged || how == How::Failed) {
    out.tolerance = at.tolerance();
    if (at.chip().needs_prepare) out.prepare_key = tables_.key(at, Stage::Prepare);
    if (at.chip().needs_compile) out.compile_key = tables_.key(at, Stage::Compile);
  }
  return out;
}

CaseSettled Cases::failed(const Place& at, const Knowledge& what) const {
  CaseSettled out = settled(at, How::Failed);
  out.judgement.status = domain::Status::Error;
  out.outcome = what.outcome;
  out.stored = what.stored;
  return out;
}

CaseSettled Cases::stuck(const Place& at, std::uint32_t job) const {
  CaseSettled out = settled(at, How::Unsettled);
  out.reason = answers_.stuck_reason(job);
  return out;
}

// ---- from job to job ----

/// Takes a case on by one step: to its verdict, or to the job that it must wait for. The order in
/// which jobs were settled never shows: what the verdict rests on is the first failure in the
/// order prepare, compile, execute.
void Cases::step(const Place& at) {
  const CaseState waiting = state_[at.id];  // Waiting or WaitingEarly
  const bool early = waiting == CaseState::WaitingEarly;
  const Knowledge execute = answers_.ask(at, Stage::Execute);
  switch (execute.kind) {
    case Kind::Open:
      return wait_for(at, execute.job, waiting);
    case Kind::Done:
      return judge(at, execute);
    case Kind::Failed:
      return verdict(at, failed(at, execute));
    case Kind::Stuck:
    case Kind::Nothing:
    case Kind::Blocked:
      break;
  }
  const Knowledge prepare = answers_.ask_if_needed(at, Stage::Prepare);
  const Knowledge compile = answers_.ask_if_needed(at, Stage::Compile);
  if (prepare.kind == Kind::Failed) return verdict(at, failed(at, prepare));
  if (prepare.kind == Kind::Stuck) return verdict(at, stuck(at, prepare.job));
  if (compile.kind == Kind::Failed || compile.kind == Kind::Stuck) {
    if (at.chip().needs_prepare && prepare.kind != Kind::Done) {
      return wait_for(at, maker_.job_for(at, Stage::Prepare, prepare, early), waiting);
    }
    return verdict(at, compile.kind == Kind::Failed ? failed(at, compile) : stuck(at, compile.job));
  }
  if (execute.kind == Kind::Stuck) {
    if (prepare.kind == Kind::Open) return wait_for(at, prepare.job, waiting);
    return verdict(at, stuck(at, execute.job));
  }
  const JobMaker::Needed needed = maker_.needed_for(at, prepare, compile, early);
  const NewJob how{.speculative = early, .needs = {needed.prepare, needed.compile}};
  wait_for(at, maker_.make(at, Stage::Execute, how), waiting);
}

/// It ran: judges the numbers, or has the outputs compared anew where they do not tell.
void Cases::judge(const Place& at, const Knowledge& execute) {
  const auto refused = [&](Stage stage, const char* text) {
    verdict(at, failed(at, {.outcome = made_failure(stage, "compare", "refused", text)}));
  };
  if (!execute.outcome->executed)
    return refused(Stage::Execute, "the stored outcome holds no comparison");
  CaseSettled out = settled(at, How::Judged);
  out.stored = execute.stored;
  if (judge_by(execute, at, out)) return verdict(at, std::move(out));
  const Knowledge again = answers_.ask_recompare(at, execute.job, out.tolerance);
  switch (again.kind) {
    case Kind::Open:
      return wait_for(at, again.job, state_[at.id]);
    case Kind::Done:
      out.stored = again.stored && execute.stored;
      if (judge_by(again, at, out)) return verdict(at, std::move(out));
      return refused(Stage::Recompare, "the outputs cannot be judged by this tolerance");
    case Kind::Failed:
      return verdict(at, failed(at, again));
    case Kind::Stuck:
      return verdict(at, stuck(at, again.job));
    case Kind::Blocked:
      return refused(Stage::Recompare, "the outputs are gone and could not be made again");
    case Kind::Nothing:
      break;
  }
  wait_for(at, make_recompare(at, execute, out.tolerance), state_[at.id]);
}

/// False when these numbers cannot be judged by the tolerance in force.
bool Cases::judge_by(const Knowledge& what, const Place& at, CaseSettled& out) const {
  if (!what.outcome->executed) return false;
  const domain::Executed& executed = *what.outcome->executed;
  auto judgement = domain::judge(executed.outputs, executed.expected_outputs, out.tolerance);
  if (!judgement) return false;
  out.judgement = std::move(*judgement);
  out.outcome = what.outcome;
  if (!out.compile_key.is_zero()) {
    const std::uint32_t compile = jobs_.find(tables_.work_key(at, Stage::Compile));
    out.compile_stored =
        compile == kNone || !answers_.counts_for(compile, *at.request) || jobs_[compile].known;
  }
  return true;
}

std::uint32_t Cases::make_recompare(const Place& at, const Knowledge& execute,
                                    const domain::Tolerance& wanted) {
  const bool early = state_[at.id] == CaseState::WaitingEarly;
  std::uint32_t execute_job = execute.job;
  const Knowledge prepare = answers_.ask_if_needed(at, Stage::Prepare);
  if (execute_job == kNone) {
    // Known from the store: told to the scheduler with what it was made of, in case its outputs
    // are gone.
    const Knowledge compile = answers_.ask_if_needed(at, Stage::Compile);
    const JobMaker::Needed needed = maker_.needed_for(at, prepare, compile, true);
    execute_job =
        maker_.make(at, Stage::Execute, {.known = true, .needs = {needed.prepare, needed.compile}});
  }
  const std::uint32_t prepare_job =
      at.chip().needs_prepare
          ? maker_.job_for(at, Stage::Prepare, answers_.ask(at, Stage::Prepare), early)
          : kNone;
  const std::uint32_t job = maker_.make(
      at, Stage::Recompare, {.speculative = early, .needs = {prepare_job, execute_job}});
  tables_.set_recompare(execute_job, wanted, job);
  return job;
}

// ---- timing ----

/// The verdict may be shown; it is settled with its times where they are wanted.
void Cases::release(const Place& at, CaseSettled out) {
  if (!at.options().collect_timing || out.how != How::Judged) return settle(at, std::move(out));
  const bool works = out.judgement.status == domain::Status::Success;
  Knowledge time = answers_.ask(at, Stage::Time);
  if (time.kind == Kind::Nothing) {
    const Knowledge prepare = answers_.ask_if_needed(at, Stage::Prepare);
    const Knowledge compile = answers_.ask_if_needed(at, Stage::Compile);
    const JobMaker::Needed needed = maker_.needed_for(at, prepare, compile, false);
    time.job = maker_.make(at, Stage::Time, {.needs = {needed.prepare, needed.compile}});
    time.kind = Kind::Open;
  }
  if (time.kind == Kind::Open) {
    held_[at.id] = std::move(out);
    return wait_for(at, time.job, works ? CaseState::TimingSuccess : CaseState::Timing);
  }
  if (time.kind == Kind::Done) {
    out.timed = time.outcome;
    out.timed_now = !time.stored;
  }
  settle(at, std::move(out));
}

void Cases::on_timed(const Place& at, std::uint32_t job) {
  CaseSettled out = std::move(held_.at(at.id));
  held_.erase(at.id);
  if (jobs_[job].state == JobState::Done) {
    out.timed = answers_.outcome_of(job);
    out.timed_now = true;
  }
  settle(at, std::move(out));
}

}  // namespace layerfarm::coordinator::plan
