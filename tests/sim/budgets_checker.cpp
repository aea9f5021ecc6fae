#include <map>
#include <set>

#include "tests/sim/checkers.h"

namespace layerfarm::sim {
namespace {

using namespace coordinator::core;
using domain::Ending;

/// What was really seen of a job in this coordinator's life.
struct Seen {
  std::map<Ending, std::uint32_t> endings;
  std::set<WorkerId> places;  ///< infrastructure endings, and losses of workers that held it
  std::uint32_t faults = 0;
  std::uint32_t deaths = 0;        ///< workers that died with it in hand
  std::uint32_t begun_deaths = 0;  ///< ... and had said that they began it
};

class Budgets final : public Checker {
 public:
  explicit Budgets(World& world) : world_(world) {}

  void new_life(const CorePolicy& policy) override {
    policy_ = policy;
    seen_.clear();
    newest_.clear();
    held_.clear();
  }

  void event(const Event& event) override {
    if (const auto* ended = std::get_if<AttemptsEnded>(&event)) {
      for (const EndedAttempt& one : ended->ended) note(ended->worker, one);
    }
    if (const auto* started = std::get_if<AttemptsStarted>(&event)) {
      for (const AttemptId attempt : started->attempts) {
        if (held_[started->worker].contains(attempt)) begun_.insert(attempt);
      }
    }
    if (const auto* joined = std::get_if<WorkerJoined>(&event)) join(*joined);
    if (const auto* left = std::get_if<WorkerLeft>(&event)) {
      const bool died =
          left->how == Departure::Died || (policy_.local && left->how == Departure::Lost);
      if (left->how != Departure::Planned) lost(left->worker, died);
    }
  }

  void action(const Action& action) override {
    if (const auto* lease = std::get_if<GiveLease>(&action)) {
      for (const GivenJob& job : lease->jobs) {
        held_[lease->worker][job.attempt] = job.job;
        job_of_[job.attempt] = job.job;
        newest_[job.job] = job.attempt;
      }
    }
    // Jobs that the core has counted are counted here before it says so: the drop comes first.
    if (const auto* dropped = std::get_if<DropWorker>(&action)) lost(dropped->worker, false);
    if (const auto* settled = std::get_if<JobSettled>(&action)) judge(*settled);
  }

 private:
  /// An over-estimate of what is in a worker's hand: attempts are forgotten only when answered.
  void join(const WorkerJoined& joined) {
    for (const HeldAttempt& one : joined.held) {
      const auto known = job_of_.find(one.attempt);
      if (known == job_of_.end() && !one.job) continue;
      const JobId job = known != job_of_.end() ? known->second : *one.job;
      job_of_[one.attempt] = job;
      held_[joined.worker][one.attempt] = job;
    }
  }

  void note(WorkerId worker, const EndedAttempt& ended) {
    const auto job = job_of_.find(ended.attempt);
    if (job == job_of_.end()) return;
    Seen& seen = seen_[job->second];
    ++seen.endings[ended.ending];
    // A lost blob of which nobody knows a producer counts as a fault too.
    if (ended.ending == Ending::Infrastructure || ended.ending == Ending::LostBlob) {
      ++seen.faults;
      seen.places.insert(worker);
    }
    held_[worker].erase(ended.attempt);
  }

  void lost(WorkerId worker, bool died) {
    for (const auto& [attempt, job] : held_[worker]) {
      Seen& seen = seen_[job];
      ++seen.faults;
      seen.places.insert(worker);
      if (died) ++seen.deaths;
      const bool current = newest_.contains(job) && newest_[job] == attempt;
      if (died && current && begun_.contains(attempt)) ++seen.begun_deaths;
    }
    held_.erase(worker);
  }

  void judge(const JobSettled& settled) {
    const std::string name = "job " + std::to_string(settled.job.value());
    Seen& seen = seen_[settled.job];
    if (const auto* answered = std::get_if<Answered>(&settled.how)) {
      const bool has_tries = answered->ending == Ending::Crashed ||
                             answered->ending == Ending::TimedOut ||
                             answered->ending == Ending::OverMemory;
      if (has_tries && seen.endings[answered->ending] < policy_.tries_per_kind) {
        world_.fail(name + " was not tried twice");
      }
    } else if (std::holds_alternative<KillsWorker>(settled.how)) {
      if (seen.deaths < policy_.deaths_verdict) world_.fail(name + " did not kill its workers");
    } else if (const auto* unsettled = std::get_if<Unsettled>(&settled.how)) {
      if (unsettled->cause == settled.job) unsettle(*unsettled, seen, name);
    }
  }

  void unsettle(const Unsettled& how, Seen& seen, const std::string& name) {
    switch (how.reason) {
      case UnsettledReason::Infrastructure:
        if (seen.places.size() < policy_.max_places && seen.faults < policy_.max_faults) {
          world_.fail(name + " is unsettled without as many faults");
        }
        if (seen.begun_deaths >= policy_.deaths_verdict) {
          world_.fail(name + " kills its worker, and is only unsettled");
        }
        return;
      case UnsettledReason::LostBlobs:
        if (seen.endings[Ending::LostBlob] <= policy_.max_lost_blobs) {
          world_.fail(name + " is unsettled without as many lost blobs");
        }
        return;
      case UnsettledReason::NoWorker:
        world_.fail(name + " is said to have no worker, but one is always started again");
        return;
    }
  }

  World& world_;
  CorePolicy policy_;
  std::map<JobId, Seen> seen_;
  std::map<AttemptId, JobId> job_of_;
  std::map<JobId, AttemptId> newest_;
  std::set<AttemptId> begun_;
  std::map<WorkerId, std::map<AttemptId, JobId>> held_;
};

}  // namespace

std::unique_ptr<Checker> budgets(World& world) { return std::make_unique<Budgets>(world); }

}  // namespace layerfarm::sim
