#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tests/sim/checkers.h"

namespace layerfarm::sim {
namespace {

using namespace coordinator::core;

class Slots final : public Checker {
 public:
  explicit Slots(World& world) : world_(world) {}

  void new_life(const CorePolicy&) override {
    workers_.clear();
    succeeded_.clear();
  }

  void event(const Event& event) override {
    if (const auto* added = std::get_if<JobsAdded>(&event)) {
      for (const JobSpec& spec : added->jobs) {
        if (spec.known == Known::Succeeded) succeeded_.insert(spec.id);
      }
    }
    if (const auto* joined = std::get_if<WorkerJoined>(&event)) join(*joined);
    if (const auto* left = std::get_if<WorkerLeft>(&event)) workers_.erase(left->worker);
    if (const auto* ended = std::get_if<AttemptsEnded>(&event)) {
      for (const EndedAttempt& one : ended->ended) {
        close(ended->worker, one.attempt, one.ending == domain::Ending::Done);
      }
    }
  }

  void action(const Action& action) override {
    if (const auto* lease = std::get_if<GiveLease>(&action)) give(*lease);
    if (const auto* dropped = std::get_if<DropWorker>(&action)) workers_.erase(dropped->worker);
    if (const auto* settled = std::get_if<JobSettled>(&action)) {
      const auto* answered = std::get_if<Answered>(&settled->how);
      const bool good = answered != nullptr && answered->ending == domain::Ending::Done;
      if (good) succeeded_.insert(settled->job);
      if (!good) forget_followers(settled->job);
    }
    if (const auto* retried = std::get_if<JobRetried>(&action)) forget_followers(retried->job);
  }

 private:
  struct Held {
    std::map<AttemptId, JobId> open;
    bool alone = false;
    bool exclusive = false;
  };
  struct Registered {
    WorkerJoined joined;
    std::vector<Held> leases;
  };

  /// Leases of the earlier registration stay as far as they are still held; attempts that are taken
  /// on make one that no credit was asked for.
  void join(const WorkerJoined& joined) {
    Registered fresh{joined, {}};
    std::set<AttemptId> held;
    for (const HeldAttempt& one : joined.held) held.insert(one.attempt);
    const auto old = std::find_if(workers_.begin(), workers_.end(), [&](const auto& entry) {
      if (joined.replaces) return entry.first == *joined.replaces;
      return std::any_of(
          entry.second.leases.begin(), entry.second.leases.end(), [&](const Held& h) {
            return std::any_of(h.open.begin(), h.open.end(),
                               [&](const auto& item) { return held.contains(item.first); });
          });
    });
    if (old != workers_.end()) {
      for (Held lease : old->second.leases) {
        std::erase_if(lease.open, [&](const auto& item) { return !held.contains(item.first); });
        if (!lease.open.empty()) fresh.leases.push_back(lease);
      }
      workers_.erase(old);
    }
    workers_[joined.worker] = std::move(fresh);
  }

  void close(WorkerId worker, AttemptId attempt, bool done) {
    const auto it = workers_.find(worker);
    if (it == workers_.end()) return;
    for (Held& lease : it->second.leases) {
      const auto item = lease.open.find(attempt);
      if (item == lease.open.end()) continue;
      const JobId job = item->second;
      lease.open.erase(item);
      if (!done) forget_followers(lease, job);
    }
    std::erase_if(it->second.leases, [](const Held& lease) { return lease.open.empty(); });
  }

  /// Jobs of the same lease that need a job that failed will not be done by it.
  void forget_followers(JobId job) {
    for (auto& [id, worker] : workers_) {
      for (Held& lease : worker.leases) forget_followers(lease, job);
      std::erase_if(worker.leases, [](const Held& lease) { return lease.open.empty(); });
    }
  }

  void forget_followers(Held& lease, JobId job) {
    std::vector<JobId> gone;
    for (const auto& [attempt, held] : lease.open) {
      const auto& needs = world_.workload().jobs[held.value()].spec.needs;
      if (std::find(needs.begin(), needs.end(), job) != needs.end()) gone.push_back(held);
    }
    std::erase_if(lease.open, [&](const auto& item) {
      return std::find(gone.begin(), gone.end(), item.second) != gone.end();
    });
    for (const JobId held : gone) forget_followers(lease, held);
  }

  void give(const GiveLease& lease) {
    const std::string name = "worker " + std::to_string(lease.worker.value());
    const auto it = workers_.find(lease.worker);
    if (it == workers_.end()) {
      world_.fail(name + " is gone and gets a lease");
      return;
    }
    Registered& worker = it->second;
    if (worker.leases.size() >= worker.joined.leases) world_.fail(name + " gets too many leases");
    const bool beside_alone = std::any_of(worker.leases.begin(), worker.leases.end(),
                                          [](const Held& held) { return held.alone; });
    if (beside_alone) world_.fail(name + " gets a lease beside one that is to be alone");
    if (lease.alone && (lease.jobs.size() != 1 || !worker.leases.empty())) {
      world_.fail(name + " gets a lease alone that is not alone");
    }
    check_host(lease, worker, name);
    check_jobs(lease, worker, name);
    Held held{{}, lease.alone, lease.exclusive};
    for (const GivenJob& job : lease.jobs) held.open[job.attempt] = job.job;
    worker.leases.push_back(std::move(held));
  }

  /// An exclusive job has its host for itself, and who needs twice the memory is exclusive.
  void check_host(const GiveLease& lease, const Registered& worker, const std::string& name) {
    for (const auto& [id, other] : workers_) {
      if (other.joined.host != worker.joined.host) continue;
      if (lease.exclusive && !other.leases.empty())
        world_.fail(name + " gets an exclusive lease on a host that works");
      const bool beside = std::any_of(other.leases.begin(), other.leases.end(),
                                      [](const Held& held) { return held.exclusive; });
      if (beside) world_.fail(name + " gets a lease beside an exclusive one of its host");
    }
    const bool more_memory = std::any_of(lease.jobs.begin(), lease.jobs.end(),
                                         [](const GivenJob& job) { return job.memory_factor > 1; });
    if (more_memory && (!lease.exclusive || lease.jobs.size() != 1))
      world_.fail(name + " gets a retry after a memory kill that is not alone on its host");
  }

  void check_jobs(const GiveLease& lease, const Registered& worker, const std::string& name) {
    std::set<JobId> before;
    for (const GivenJob& given : lease.jobs) {
      const JobSpec& spec = world_.workload().jobs[given.job.value()].spec;
      const auto& can = worker.joined.abilities;
      if (std::find(can.begin(), can.end(), spec.ability) == can.end()) {
        world_.fail(name + " gets what it cannot do");
      }
      if (spec.group != kNoGroup && spec.group != lease.group) {
        world_.fail(name + " gets jobs of several groups in one lease");
      }
      for (const JobId need : spec.needs) {
        if (!succeeded_.contains(need) && !before.contains(need)) {
          world_.fail(name + " gets a job before what it needs");
        }
      }
      before.insert(given.job);
    }
    if (lease.jobs.empty()) world_.fail(name + " gets an empty lease");
  }

  World& world_;
  std::map<WorkerId, Registered> workers_;
  std::set<JobId> succeeded_;
};

}  // namespace

std::unique_ptr<Checker> slots(World& world) { return std::make_unique<Slots>(world); }

}  // namespace layerfarm::sim
