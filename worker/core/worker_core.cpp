#include "worker/core/worker_core.h"

#include <algorithm>
#include <utility>

namespace layerfarm::worker::core {
using protocol::AttemptId;
using protocol::AttemptOutcome;

namespace {

constexpr base::Time kNever = base::Time::max();

AttemptOutcome cancelled(AttemptId attempt, domain::Stage stage) {
  AttemptOutcome out;
  out.attempt = attempt;
  out.outcome.stage = stage;
  out.outcome.ending = domain::Ending::Cancelled;
  return out;
}

}  // namespace

std::vector<Action> WorkerCore::step(Event event, base::Time now) {
  now_ = std::max(now_, now);
  std::visit([this](auto& e) { on(e); }, event);
  leave_when_done();
  return std::exchange(actions_, {});
}

base::Time WorkerCore::next_deadline() const {
  if (quit_) return kNever;
  base::Time next = registered_ ? next_heartbeat_ : next_hello_;
  if (leaving_) next = std::min(next, leave_by_);
  return next;
}

void WorkerCore::on(MessageArrived& event) {
  // Welcome and its kin open an epoch; anything else of another epoch was meant for a registration
  // that is over.
  const bool opens = std::holds_alternative<protocol::Welcome>(event.message) ||
                     std::holds_alternative<protocol::Reject>(event.message) ||
                     std::holds_alternative<protocol::HelloAgain>(event.message) ||
                     std::holds_alternative<protocol::Stop>(event.message);
  if (!opens && event.epoch != epoch_) return;
  std::visit([this](auto& message) { on(message); }, event.message);
}

void WorkerCore::on(protocol::Welcome& welcome) {
  registered_ = true;
  epoch_ = welcome.epoch;
  heartbeat_every_ = std::chrono::milliseconds(std::max<std::int64_t>(welcome.heartbeat_ms, 10));
  next_heartbeat_ = now_ + heartbeat_every_;
  if (unacknowledged_.empty()) return;
  protocol::Outcomes again;
  for (const auto& [attempt, outcome] : unacknowledged_)
    again.outcomes.push_back({attempt, outcome});
  actions_.push_back(Send{std::move(again)});
}

void WorkerCore::on(protocol::Reject& reject) {
  quit_ = true;
  actions_.push_back(Quit{1, "the coordinator refused this worker: " + reject.reason});
}

void WorkerCore::on(protocol::HelloAgain&) { say_hello(); }

void WorkerCore::on(protocol::Lease& lease) {
  // A lease that arrives twice (resent after a reconnect) is taken once.
  const auto known = [this](AttemptId attempt) {
    return pending_.contains(attempt) || unacknowledged_.contains(attempt);
  };
  if (std::any_of(lease.jobs.begin(), lease.jobs.end(),
                  [&](const auto& job) { return known(job.attempt); }))
    return;
  for (const protocol::LeasedJob& job : lease.jobs) pending_.emplace(job.attempt, Phase::Queued);
  if (leaving_) {
    std::vector<AttemptOutcome> back;
    for (const protocol::LeasedJob& job : lease.jobs)
      back.push_back(cancelled(job.attempt, job.stage));
    answer(std::move(back));
    return;
  }
  queue_.push_back(std::make_shared<protocol::Lease>(std::move(lease)));
  begin_next();
}

void WorkerCore::on(protocol::OutcomesKept& kept) {
  for (const AttemptId attempt : kept.attempts) unacknowledged_.erase(attempt);
}

void WorkerCore::on(protocol::Cancel& cancel) {
  std::vector<AttemptOutcome> at_once;
  std::vector<AttemptId> in_hand;
  for (const AttemptId attempt : cancel.attempts) {
    const auto it = pending_.find(attempt);
    if (it == pending_.end()) continue;  // answered already, or never ours
    if (it->second != Phase::Queued) {
      in_hand.push_back(attempt);
      continue;
    }
    for (const auto& lease : queue_) {
      // The job stays in its lease, as later jobs refer to it by place; begin_next leaves it out.
      for (const protocol::LeasedJob& job : lease->jobs) {
        if (job.attempt == attempt) at_once.push_back(cancelled(attempt, job.stage));
      }
    }
  }
  cancel_in_hand(std::move(in_hand));
  if (!at_once.empty()) answer(std::move(at_once));
}

void WorkerCore::on(protocol::Stop& stop) {
  LeaveRequested leave{stop.now};
  on(leave);
}

void WorkerCore::on(LeaveRequested& event) {
  if (!leaving_) leave_by_ = kNever;
  leaving_ = true;
  std::vector<AttemptOutcome> back;
  for (const auto& lease : queue_) {
    for (const protocol::LeasedJob& job : lease->jobs) {
      if (pending_.contains(job.attempt)) back.push_back(cancelled(job.attempt, job.stage));
    }
  }
  queue_.clear();
  if (!back.empty()) answer(std::move(back));
  if (event.now && in_hand_) {
    std::vector<AttemptId> all;
    for (const protocol::LeasedJob& job : in_hand_->jobs) {
      if (pending_.contains(job.attempt)) all.push_back(job.attempt);
    }
    cancel_in_hand(std::move(all));
  }
}

void WorkerCore::on(Waits& event) {
  waits_for_ = std::move(event.what);
  waits_since_ = now_;
  if (registered_) heartbeat();
}

void WorkerCore::on(JobsBegan& event) {
  if (event.attempts.empty()) return;
  waits_for_.clear();
  for (const AttemptId attempt : event.attempts) {
    if (const auto it = pending_.find(attempt); it != pending_.end()) it->second = Phase::Running;
  }
  running_ = event.attempts;
  running_since_ = now_;
  actions_.push_back(Send{protocol::Started{std::move(event.attempts)}});
}

void WorkerCore::on(JobsEnded& event) {
  for (const AttemptOutcome& item : event.outcomes) {
    std::erase(running_, item.attempt);
    cancelling_.erase(item.attempt);
  }
  answer(std::move(event.outcomes));
}

void WorkerCore::on(LeaseEnded&) {
  in_hand_.reset();
  waits_for_.clear();
  running_.clear();
  cancelling_.clear();
  begin_next();
}

void WorkerCore::on(Tick&) {
  if (!registered_ && now_ >= next_hello_) say_hello();
  if (registered_ && now_ >= next_heartbeat_) heartbeat();
}

void WorkerCore::begin_next() {
  while (!in_hand_ && !queue_.empty()) {
    const std::shared_ptr<protocol::Lease> lease = std::move(queue_.front());
    queue_.pop_front();
    std::vector<AttemptId> gone;
    std::size_t left = 0;
    for (const protocol::LeasedJob& job : lease->jobs) {
      if (const auto it = pending_.find(job.attempt); it != pending_.end()) {
        it->second = Phase::InHand;
        ++left;
      } else {
        gone.push_back(job.attempt);
      }
    }
    if (left == 0) continue;
    in_hand_ = lease;
    actions_.push_back(BeginLease{lease});
    if (!gone.empty()) actions_.push_back(CancelJobs{std::move(gone), false});
  }
}

void WorkerCore::cancel_in_hand(std::vector<AttemptId> attempts) {
  if (attempts.empty()) return;
  cancelling_.insert(attempts.begin(), attempts.end());
  const bool all_running =
      !running_.empty() && std::all_of(running_.begin(), running_.end(), [this](AttemptId attempt) {
        return cancelling_.contains(attempt);
      });
  actions_.push_back(CancelJobs{std::move(attempts), all_running});
}

void WorkerCore::answer(std::vector<AttemptOutcome> outcomes) {
  protocol::Outcomes message;
  message.outcomes.reserve(outcomes.size());
  for (AttemptOutcome& item : outcomes) {
    if (pending_.erase(item.attempt) == 0) continue;  // cancelled while queued and answered then
    unacknowledged_.insert_or_assign(item.attempt, item.outcome);
    message.outcomes.push_back(std::move(item));
  }
  if (registered_ && !message.outcomes.empty()) actions_.push_back(Send{std::move(message)});
}

void WorkerCore::say_hello() {
  registered_ = false;
  protocol::Hello hello = self_;
  for (const auto& [attempt, phase] : pending_) hello.running.push_back(attempt);
  for (const auto& [attempt, outcome] : unacknowledged_) hello.running.push_back(attempt);
  next_hello_ = now_ + policy_.hello_every;
  actions_.push_back(Send{std::move(hello)});
}

void WorkerCore::heartbeat() {
  next_heartbeat_ = now_ + heartbeat_every_;
  protocol::Heartbeat beat;
  if (!running_.empty() && in_hand_) {
    beat.attempt = running_.front();
    for (const protocol::LeasedJob& job : in_hand_->jobs) {
      if (job.attempt == beat.attempt) beat.phase = domain::stage_name(job.stage);
    }
    beat.phase_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(now_ - running_since_).count();
  } else if (!waits_for_.empty() && in_hand_) {
    // The lease is not lost: a heartbeat without an attempt would say so.
    for (const protocol::LeasedJob& job : in_hand_->jobs) {
      if (beat.attempt == AttemptId{} && pending_.contains(job.attempt)) beat.attempt = job.attempt;
    }
    beat.phase = "waits";
    beat.phase_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(now_ - waits_since_).count();
    beat.waits_for = waits_for_;
  }
  actions_.push_back(Send{std::move(beat)});
}

void WorkerCore::leave_when_done() {
  if (!leaving_ || quit_) return;
  if (in_hand_) return;
  if (leave_by_ == kNever) leave_by_ = now_ + policy_.leave_patience;
  if (!unacknowledged_.empty() && registered_ && now_ < leave_by_) return;
  quit_ = true;
  if (registered_) actions_.push_back(Send{protocol::Goodbye{"asked to stop"}});
  actions_.push_back(Quit{0, ""});
}

std::string WorkerCore::check_invariants() const {
  for (const auto& [attempt, outcome] : unacknowledged_) {
    if (pending_.contains(attempt))
      return "attempt " + std::to_string(attempt.value()) + " is pending and answered";
  }
  if (!in_hand_ && !queue_.empty()) return "a lease waits while nothing is in hand";
  for (const auto& [attempt, phase] : pending_) {
    const bool queued = std::any_of(queue_.begin(), queue_.end(), [&](const auto& lease) {
      return std::any_of(lease->jobs.begin(), lease->jobs.end(),
                         [&](const auto& job) { return job.attempt == attempt; });
    });
    const bool in_hand =
        in_hand_ && std::any_of(in_hand_->jobs.begin(), in_hand_->jobs.end(),
                                [&](const auto& job) { return job.attempt == attempt; });
    if (!queued && !in_hand)
      return "attempt " + std::to_string(attempt.value()) + " is pending in no lease";
    if (queued && phase != Phase::Queued)
      return "attempt " + std::to_string(attempt.value()) + " runs in a queued lease";
  }
  return {};
}

}  // namespace layerfarm::worker::core
