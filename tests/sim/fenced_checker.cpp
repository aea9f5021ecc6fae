#include <map>
#include <optional>
#include <set>

#include "tests/sim/checkers.h"

namespace layerfarm::sim {
namespace {

using namespace coordinator::core;

class Fenced final : public Checker {
 public:
  explicit Fenced(World& world) : world_(world) {}

  void new_life(const CorePolicy&) override {
    given_.clear();
    holder_.clear();
    newest_.clear();
    over_.clear();
    current_.reset();
  }

  void event(const Event& event) override {
    current_.reset();
    if (const auto* ended = std::get_if<AttemptsEnded>(&event)) {
      current_ = *ended;
      for (const EndedAttempt& one : ended->ended) {
        renewable_.insert(one.lost.begin(), one.lost.end());
      }
    }
    if (const auto* joined = std::get_if<WorkerJoined>(&event)) join(*joined);
  }

  void action(const Action& action) override {
    if (const auto* lease = std::get_if<GiveLease>(&action)) give(*lease);
    if (const auto* settled = std::get_if<JobSettled>(&action)) settle(*settled);
    if (const auto* retried = std::get_if<JobRetried>(&action)) newest_.erase(retried->job);
    if (const auto* done = std::get_if<Acknowledge>(&action)) acknowledge(*done);
  }

 private:
  /// What it holds is its own from here on: attempts move with the process, or are taken on.
  void join(const WorkerJoined& joined) {
    for (const HeldAttempt& held : joined.held) {
      holder_[held.attempt] = joined.worker;
      if (!given_.contains(held.attempt) && held.job) given_[held.attempt] = *held.job;
      adopted_.insert(held.attempt);
    }
  }

  void give(const GiveLease& lease) {
    for (const GivenJob& job : lease.jobs) {
      const std::string name = "attempt " + std::to_string(job.attempt.value());
      if (!ever_.insert(job.attempt).second) world_.fail(name + " is given twice");
      if (over_.contains(job.job) && !renewable_.contains(job.job))
        world_.fail(name + " is for a job that is settled");
      given_[job.attempt] = job.job;
      holder_[job.attempt] = lease.worker;
      newest_[job.job] = job.attempt;
    }
  }

  void settle(const JobSettled& settled) {
    over_.insert(settled.job);
    const auto* answered = std::get_if<Answered>(&settled.how);
    if (answered == nullptr) return;
    const AttemptId attempt = answered->attempt;
    const std::string name = "attempt " + std::to_string(attempt.value());
    if (!given_.contains(attempt) || given_[attempt] != settled.job) {
      world_.fail(name + " answers a job that is not its own");
    } else if (!current_ || holder_[attempt] != current_->worker) {
      world_.fail(name + " is answered by a worker that does not have it");
    } else if (newest_[settled.job] != attempt && !adopted_.contains(attempt)) {
      world_.fail(name + " answers though a newer attempt was given");
    }
  }

  void acknowledge(const Acknowledge& done) {
    if (!current_ || done.worker != current_->worker ||
        done.attempts.size() != current_->ended.size()) {
      world_.fail("what is acknowledged is not what was answered");
    }
  }

  World& world_;
  std::set<AttemptId> ever_;  ///< over all lives
  std::map<AttemptId, JobId> given_;
  std::map<AttemptId, WorkerId> holder_;
  std::map<JobId, AttemptId> newest_;
  std::set<AttemptId> adopted_;
  std::set<JobId> over_;
  std::set<JobId> renewable_;  ///< what they made was lost once, so they may run again
  std::optional<AttemptsEnded> current_;
};

}  // namespace

std::unique_ptr<Checker> fenced(World& world) { return std::make_unique<Fenced>(world); }

}  // namespace layerfarm::sim
