#include "tests/sim/coordinator.h"

#include <algorithm>

#include "tests/support/coordinator/scheduler_text.h"

namespace layerfarm::sim {

using namespace coordinator::core;
using namespace std::chrono_literals;

namespace {

CorePolicy policy_for(std::uint64_t epoch, bool local) {
  CorePolicy policy;
  policy.first_attempt = (epoch << 32) + 1;
  policy.local = local;
  if (!local) policy.wait_workers = 10min;
  policy.exclusive_patience = 20s;
  return policy;
}

bool success(const Settlement& how) {
  const auto* answered = std::get_if<Answered>(&how);
  return answered != nullptr && answered->ending == domain::Ending::Done;
}

}  // namespace

Coordinator::Coordinator(World& world, Durable& durable, Outside outside, bool local,
                         std::vector<std::unique_ptr<Checker>>& checkers)
    : world_(world),
      durable_(durable),
      outside_(std::move(outside)),
      local_(local),
      checkers_(checkers),
      core_(policy_for(++durable.epoch, local)) {
  world_.note("coordinator " + std::to_string(durable_.epoch) + " starts");
  for (const auto& checker : checkers_) checker->new_life(policy_for(durable_.epoch, local_));
}

void Coordinator::start(std::uint32_t workers) {
  tell(GroupsAdded{world_.workload().groups});
  tell(WorkersExpected{workers});
  add_jobs(0, 1);
  if (durable_.answers.contains(0)) add_jobs(1, world_.workload().jobs.size());
}

void Coordinator::add_jobs(std::size_t from, std::size_t to) {
  JobsAdded event;
  for (std::size_t i = from; i < to; ++i) {
    JobSpec spec = world_.workload().jobs[i].spec;
    if (const auto it = durable_.answers.find(spec.id.value()); it != durable_.answers.end()) {
      spec.known = it->second == domain::Ending::Done ? Known::Succeeded : Known::Failed;
    }
    event.jobs.push_back(spec);
  }
  added_ = to;
  tell(event);
  for (const JobSpec& spec : event.jobs) {
    if (spec.known != Known::No) follow_up(spec.id, spec.known == Known::Succeeded);
  }
}

/// Skip mode: what became of a higher executor decides about the lower ones.
void Coordinator::follow_up(JobId job, bool success) {
  std::vector<JobId> lower;
  for (std::size_t i = 0; i < added_; ++i) {
    const SimJob& other = world_.workload().jobs[i];
    if (other.instead_of == job) lower.push_back(other.spec.id);
  }
  if (lower.empty()) return;
  if (!success) {
    tell(JobsWanted{lower});
    return;
  }
  tell(JobsDropped{lower});
  for (const JobId dropped : lower) follow_up(dropped, true);
}

void Coordinator::receive(std::uint32_t pid, const protocol::FromWorker& message) {
  if (!alive_) return;
  if (const auto* hello = std::get_if<protocol::Hello>(&message)) {
    register_worker(pid, *hello);
    return;
  }
  const auto it = workers_.find(pid);
  if (it == workers_.end()) {
    outside_.send(pid, protocol::HelloAgain{}, durable_.epoch);
    return;
  }
  const WorkerId worker = it->second;
  if (const auto* started = std::get_if<protocol::Started>(&message)) {
    tell(AttemptsStarted{worker, started->attempts});
  } else if (const auto* outcomes = std::get_if<protocol::Outcomes>(&message)) {
    ended(worker, *outcomes);
  } else if (const auto* beat = std::get_if<protocol::Heartbeat>(&message)) {
    tell(WorkerHeard{worker, beat->attempt == AttemptId{}, beat->attempt});
  } else if (std::holds_alternative<protocol::Goodbye>(message)) {
    workers_.erase(pid);
    tell(WorkerLeft{worker, Departure::Planned});
  }
}

void Coordinator::register_worker(std::uint32_t pid, const protocol::Hello& hello) {
  const Process::Settings& settings = outside_.settings(pid);
  WorkerJoined event{.worker = WorkerId{++registrations_}, .host = HostId{settings.host}};
  event.abilities = settings.abilities;
  event.leases = settings.leases;
  for (const AttemptId attempt : hello.running) {
    HeldAttempt held{.attempt = attempt};
    const auto known = durable_.attempts.find(attempt);
    const bool told = world_.random().chance(world_.drawn_faults().knows_attempts);
    if (known != durable_.attempts.end() && told) held.job = known->second;
    event.held.push_back(held);
  }
  if (const auto old = workers_.find(pid); old != workers_.end()) event.replaces = old->second;
  workers_[pid] = event.worker;
  outside_.send(pid, protocol::Welcome{.worker = event.worker.value(), .epoch = durable_.epoch},
                durable_.epoch);
  tell(event);
}

void Coordinator::ended(WorkerId worker, const protocol::Outcomes& outcomes) {
  AttemptsEnded event{worker, {}};
  for (const protocol::AttemptOutcome& item : outcomes.outcomes) {
    EndedAttempt ended{item.attempt, item.outcome.ending, {}};
    for (const base::Digest& blob : item.outcome.lost) {
      for (std::uint32_t job = 0; job < added_; ++job) {
        if (blob_of(job) == blob) ended.lost.emplace_back(job);
      }
    }
    event.ended.push_back(std::move(ended));
  }
  tell(event);
}

void Coordinator::process_ended(std::uint32_t pid, Departure how) {
  if (!alive_) return;
  const auto it = workers_.find(pid);
  if (it == workers_.end()) return;
  const WorkerId worker = it->second;
  workers_.erase(it);
  tell(WorkerLeft{worker, how});
}

void Coordinator::workers_expected(std::uint32_t count) {
  if (alive_) tell(WorkersExpected{count});
}

void Coordinator::tell(const Event& event) {
  if (world_.recording()) world_.note("> " + test::text_of(event));
  for (const auto& checker : checkers_) checker->event(event);
  const std::vector<Action> actions = core_.step(event, world_.now());
  if (const std::string broken = core_.check_invariants(); !broken.empty()) {
    world_.fail("core: " + broken);
  }
  // All are seen before any is carried out: carrying out may bring the next event.
  for (const Action& action : actions) {
    if (world_.recording()) world_.note("  < " + test::text_of(action));
    for (const auto& checker : checkers_) checker->action(action);
  }
  for (const Action& action : actions) carry_out(action);
  schedule_tick();
}

void Coordinator::carry_out(const Action& action) {
  std::visit([this](const auto& a) { on(a); }, action);
}

void Coordinator::on(const GiveLease& action) {
  protocol::Lease lease;
  for (const GivenJob& given : action.jobs) {
    protocol::LeasedJob job;
    job.attempt = given.attempt;
    job.layer = given.job.value();
    job.stage = world_.workload().jobs[given.job.value()].spec.stage;
    job.memory_factor = given.memory_factor;
    lease.jobs.push_back(job);
    durable_.attempts[given.attempt] = given.job;
  }
  if (const auto pid = pid_of(action.worker)) outside_.send(*pid, lease, durable_.epoch);
}

void Coordinator::on(const CancelAttempts& action) {
  if (const auto pid = pid_of(action.worker)) {
    outside_.send(*pid, protocol::Cancel{action.attempts}, durable_.epoch);
  }
}

void Coordinator::on(const JobSettled& action) {
  settled_[action.job.value()] = action.how;
  if (!open_) {
    open_.emplace();
    world_.after(world_.random().duration(1ms, 5ms), [this] { commit(); });
  }
  if (const auto* answered = std::get_if<Answered>(&action.how)) {
    if (domain::answers_later_runs(answered->ending)) {
      open_->answers[action.job.value()] = answered->ending;
    }
  }
  ++to_follow_up_;  // not at once: the core is asked one thing after the other
  world_.after(0ms, [this, job = action.job, good = success(action.how), again = action.again] {
    if (!alive_) return;
    --to_follow_up_;
    if (!again) follow_up(job, good);
    if (job == JobId{0} && good && added_ == 1) add_jobs(1, world_.workload().jobs.size());
  });
}

void Coordinator::on(const Acknowledge& action) {
  const auto pid = pid_of(action.worker);
  if (!pid) return;
  if (!open_) {
    open_.emplace();
    world_.after(world_.random().duration(1ms, 5ms), [this] { commit(); });
  }
  auto& attempts = open_->acknowledgements[*pid];
  attempts.insert(attempts.end(), action.attempts.begin(), action.attempts.end());
}

void Coordinator::on(const DropWorker& action) {
  const auto pid = pid_of(action.worker);
  if (!pid) return;
  workers_.erase(*pid);
  if (local_) {
    world_.after(0ms, [this, pid = *pid] {
      if (alive_) outside_.kill_process(pid);
    });
  }
}

void Coordinator::on(const AskHello& action) {
  if (const auto pid = pid_of(action.worker)) {
    outside_.send(*pid, protocol::HelloAgain{}, durable_.epoch);
  }
}

void Coordinator::commit() {
  if (!alive_) return;
  const bool killed = world_.random().chance(world_.faults().coordinator_kill);
  if (killed && world_.random().chance(500)) {
    outside_.die();
    return;
  }
  for (const auto& [job, ending] : open_->answers) durable_.answers[job] = ending;
  if (killed) {
    outside_.die();
    return;
  }
  const Group group = std::move(*open_);
  open_.reset();
  for (const auto& [pid, attempts] : group.acknowledgements) {
    outside_.send(pid, protocol::OutcomesKept{attempts}, durable_.epoch);
  }
}

bool Coordinator::done() const {
  const Counts counts = core_.counts();
  return alive_ && !open_ && to_follow_up_ == 0 && counts.settled == counts.jobs;
}

void Coordinator::schedule_tick() {
  const auto due = core_.next_deadline();
  if (!due) return;
  const base::Time at = std::max(*due, world_.now());
  if (tick_at_ >= world_.now() && tick_at_ <= at) return;
  tick_at_ = at;
  world_.after(at - world_.now(), [this, at] {
    if (!alive_ || tick_at_ != at) return;
    tick_at_ = base::Time{-1};
    tell(Tick{});
  });
}

std::optional<std::uint32_t> Coordinator::pid_of(WorkerId worker) const {
  for (const auto& [pid, id] : workers_) {
    if (id == worker) return pid;
  }
  return std::nullopt;
}

}  // namespace layerfarm::sim
