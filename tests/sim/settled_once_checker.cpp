#include <set>

#include "tests/sim/checkers.h"

namespace layerfarm::sim {
namespace {

using namespace coordinator::core;

class SettledOnce final : public Checker {
 public:
  explicit SettledOnce(World& world) : world_(world) {}

  void new_life(const CorePolicy&) override {
    settled_.clear();
    dropped_.clear();
  }

  void event(const Event& event) override {
    if (const auto* added = std::get_if<JobsAdded>(&event)) {
      for (const JobSpec& spec : added->jobs) {
        if (spec.known != Known::No) settled_.insert(spec.id);
      }
    }
    if (const auto* dropped = std::get_if<JobsDropped>(&event)) {
      for (const JobId job : dropped->jobs) {
        if (!settled_.contains(job)) dropped_.insert(job);
      }
    }
  }

  void action(const Action& action) override {
    const auto* settled = std::get_if<JobSettled>(&action);
    if (settled == nullptr) return;
    const std::string job = "job " + std::to_string(settled->job.value());
    if (dropped_.contains(settled->job)) world_.fail(job + " was dropped and settles");
    const bool before = !settled_.insert(settled->job).second;
    if (before && !settled->again) world_.fail(job + " settles twice");
    if (!before && settled->again) world_.fail(job + " settles again before it ever did");
  }

 private:
  World& world_;
  std::set<JobId> settled_;
  std::set<JobId> dropped_;
};

}  // namespace

std::unique_ptr<Checker> settled_once(World& world) { return std::make_unique<SettledOnce>(world); }

}  // namespace layerfarm::sim
