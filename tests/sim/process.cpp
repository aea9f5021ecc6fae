#include "tests/sim/process.h"

#include <algorithm>
#include <utility>

namespace layerfarm::sim {
namespace {

using domain::Ending;
using namespace std::chrono_literals;

protocol::Hello hello_of(const Process::Settings& settings) {
  protocol::Hello hello;
  hello.pid = settings.pid;
  hello.host = "h" + std::to_string(settings.host);
  return hello;
}

domain::Outcome cancelled(domain::Stage stage) {
  domain::Outcome outcome;
  outcome.stage = stage;
  outcome.ending = Ending::Cancelled;
  return outcome;
}

}  // namespace

base::Digest blob_of(std::uint32_t job) { return base::digest_of("job " + std::to_string(job)); }

Process::Process(World& world, Settings settings, Send send, Ended ended)
    : world_(world),
      settings_(std::move(settings)),
      send_(std::move(send)),
      ended_(std::move(ended)),
      core_(hello_of(settings_), worker::core::Policy{}) {
  bad_ = world_.random().chance(world_.faults().bad_worker);
  if (world_.random().chance(world_.faults().slow_workers)) {
    slowness_ = world_.random().between(2, 8);
  }
}

void Process::start() { feed(worker::core::Tick{}); }

void Process::deliver(const protocol::FromCoordinator& message, std::uint64_t epoch) {
  later(0ms, [this, message, epoch] { feed(worker::core::MessageArrived{message, epoch}); });
}

void Process::kill() {
  if (!std::exchange(alive_, false)) return;
  world_.note("pid " + std::to_string(settings_.pid) + " dies");
  ended_(settings_.pid, /*planned=*/false);
}

/// Not while the process is stopped, and not when it is dead.
void Process::later(base::Duration delay, std::function<void()> what) {
  world_.after(delay, [this, what = std::move(what)] {
    if (!alive_) return;
    if (world_.now() < still_until_) {
      later(still_until_ - world_.now(), what);
    } else {
      what();
    }
  });
}

void Process::feed(worker::core::Event event) {
  for (worker::core::Action& action : core_.step(std::move(event), world_.now())) {
    if (auto* send = std::get_if<worker::core::Send>(&action)) {
      send_(settings_.pid, std::move(send->message));
    } else if (auto* begin = std::get_if<worker::core::BeginLease>(&action)) {
      lease_ = begin->lease;
      next_ = 0;
      endings_.clear();
      cancelled_.clear();
      later(0ms, [this] { begin_next(); });
    } else if (auto* cancel = std::get_if<worker::core::CancelJobs>(&action)) {
      cancelled_.insert(cancel->attempts.begin(), cancel->attempts.end());
      // The one that runs is ended soon; a job not begun is answered when its turn comes.
      later(1ms, [this, run = running_] {
        if (lease_ && busy_ && run == running_ &&
            cancelled_.contains(lease_->jobs[next_].attempt)) {
          end_job(lease_->jobs[next_], cancelled(lease_->jobs[next_].stage));
        }
      });
    } else if (std::holds_alternative<worker::core::Quit>(action)) {
      if (!std::exchange(alive_, false)) return;
      world_.note("pid " + std::to_string(settings_.pid) + " quits");
      ended_(settings_.pid, /*planned=*/true);
      return;
    }
  }
  if (const std::string broken = core_.check_invariants(); !broken.empty()) {
    world_.fail("worker core: " + broken);
  }
  schedule_tick();
}

void Process::schedule_tick() {
  const base::Time due = std::max(core_.next_deadline(), world_.now() + 1ms);
  if (core_.next_deadline() == base::Time::max()) return;
  if (tick_at_ > world_.now() && tick_at_ <= due) return;
  tick_at_ = due;
  later(due - world_.now(), [this] { feed(worker::core::Tick{}); });
}

void Process::begin_next() {
  if (!lease_) return;
  if (next_ == lease_->jobs.size()) {
    end_lease();
    return;
  }
  const protocol::LeasedJob leased = lease_->jobs[next_];
  const SimJob& job = world_.workload().jobs[leased.layer];
  const bool needs_failed =
      std::any_of(job.spec.needs.begin(), job.spec.needs.end(), [&](protocol::JobId need) {
        const auto it = endings_.find(need.value());
        return it != endings_.end() && it->second != Ending::Done;
      });
  if (needs_failed || cancelled_.contains(leased.attempt)) {
    end_job(leased, cancelled(leased.stage));
    return;
  }
  ++running_;
  busy_ = true;
  feed(worker::core::JobsBegan{{leased.attempt}});
  const Fate fate = draw_fate(job);
  if (fate == Fate::Dies) {
    later(job.takes / 2 + 1ms, [this] { kill(); });
    return;
  }
  if (fate == Fate::Stops) stand_still();
  const domain::Outcome outcome = draw_outcome(leased, job);
  later(duration_of(job, outcome.ending), [this, leased, outcome, run = running_] {
    if (lease_ && run == running_) end_job(leased, outcome);  // else it was cancelled meanwhile
  });
}

void Process::end_job(const protocol::LeasedJob& job, const domain::Outcome& outcome) {
  ++running_;
  busy_ = false;
  ++next_;
  endings_[job.layer] = outcome.ending;
  feed(worker::core::JobsEnded{{{job.attempt, outcome}}});
  later(0ms, [this] { begin_next(); });
}

void Process::end_lease() {
  lease_.reset();
  feed(worker::core::LeaseEnded{});
}

void Process::stand_still() {
  const base::Time end = world_.drawn_faults().until + 5s;
  const base::Duration span = world_.random().duration(100ms, 60s);
  still_until_ = std::min(world_.now() + span, std::max(end, world_.now()));
  world_.note("pid " + std::to_string(settings_.pid) + " stands still");
}

Process::Fate Process::draw_fate(const SimJob& job) {
  const Faults& faults = world_.faults();
  if (job.nature == Nature::KillsWorker || world_.random().chance(faults.crash)) return Fate::Dies;
  return world_.random().chance(faults.stop) ? Fate::Stops : Fate::Ends;
}

domain::Outcome Process::draw_outcome(const protocol::LeasedJob& leased, const SimJob& job) {
  domain::Outcome out;
  out.stage = leased.stage;
  const Faults& faults = world_.faults();
  if ((bad_ && world_.now() < world_.drawn_faults().until) ||
      world_.random().chance(faults.infrastructure)) {
    out.ending = Ending::Infrastructure;
  } else if (world_.random().chance(faults.lost_blob)) {
    out.ending = Ending::LostBlob;
    const auto& needs = job.spec.needs;
    const std::size_t which = world_.random().below(needs.size() + 1);
    out.lost = {blob_of(which < needs.size() ? needs[which].value() : 0)};
  } else if (world_.flakes(leased.layer)) {
    out.ending = Ending::Crashed;
  } else {
    const auto factor = static_cast<std::uint8_t>(leased.memory_factor);
    out.ending = own_ending(job.nature, factor).value_or(Ending::Done);
  }
  return out;
}

base::Duration Process::duration_of(const SimJob& job, Ending ending) {
  if (ending == Ending::Infrastructure || ending == Ending::LostBlob) return 2ms;
  return ending == Ending::TimedOut ? 20s : job.takes * slowness_;
}

}  // namespace layerfarm::sim
