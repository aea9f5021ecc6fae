#include "tests/sim/cluster.h"

#include <algorithm>

#include "tests/sim/verdicts.h"
#include "tests/support/coordinator/scheduler_text.h"

namespace layerfarm::sim {
namespace {

using coordinator::core::ClassId;
using coordinator::core::Departure;
using namespace std::chrono_literals;

/// Once nothing goes wrong any more, all must end within this (probes rest for up to 5 minutes, a
/// missing ability waits 10).
constexpr base::Duration kLongest = std::chrono::hours(3);

class Cluster {
 public:
  Cluster(std::uint64_t seed, bool recording) : world_(seed, recording) {
    world_.note(text_of(world_.drawn_faults()));
    local_ = world_.random().chance(500);
    const std::int64_t count = world_.random().between(1, 5);
    for (std::int64_t i = 0; i < count; ++i) slots_.push_back(draw_slot(i == 0));
    checkers_.push_back(settled_once(world_));
    checkers_.push_back(fenced(world_));
    checkers_.push_back(slots(world_));
    checkers_.push_back(budgets(world_));
  }

  Life live() {
    start_coordinator();
    const base::Time end = world_.drawn_faults().until + kLongest;
    Life life;
    while (world_.failure().empty() && !coordinator_->done() && world_.step()) {
      ++life.steps;
      if (world_.now() > end)
        world_.fail("not all is settled long after the last fault: " + stuck());
    }
    if (world_.failure().empty()) {
      life.verdicts = verdicts();
      check_verdicts(world_, life.verdicts);
    }
    life.failure = world_.failure();
    life.transcript = world_.transcript();
    life.ended = world_.now();
    life.coordinators = durable_.epoch;
    life.processes = next_pid_ - 1;
    return life;
  }

 private:
  Process::Settings draw_slot(bool first) {
    Process::Settings settings;
    settings.host = static_cast<std::uint32_t>(local_ ? 1 : world_.random().between(1, 3));
    settings.leases = static_cast<std::uint32_t>(world_.random().between(1, 3));
    for (std::uint16_t c = 0; c < world_.workload().classes; ++c) {
      // The first can do everything, so that nothing has to stay unsettled.
      if (first || world_.random().chance(700)) settings.abilities.emplace_back(c);
    }
    return settings;
  }

  void start_coordinator() {
    Coordinator::Outside outside;
    outside.send = [this](std::uint32_t pid, protocol::FromCoordinator message,
                          std::uint64_t epoch) {
      carry(from_coordinator_[pid], [this, pid, message = std::move(message), epoch] {
        const auto it = processes_.find(pid);
        if (it != processes_.end() && it->second->alive()) it->second->deliver(message, epoch);
      });
    };
    outside.kill_process = [this](std::uint32_t pid) {
      if (const auto it = processes_.find(pid); it != processes_.end()) it->second->kill();
    };
    outside.settings = [this](std::uint32_t pid) -> const Process::Settings& {
      return processes_.at(pid)->settings();
    };
    outside.die = [this] { kill_coordinator(); };
    coordinator_ =
        std::make_unique<Coordinator>(world_, durable_, std::move(outside), local_, checkers_);
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (!running_.contains(slot)) start_process(slot);
    }
    coordinator_->start(local_ ? static_cast<std::uint32_t>(slots_.size()) : 0);
  }

  void kill_coordinator() {
    world_.note("coordinator is killed");
    coordinator_->stop();
    dead_ = true;
    if (local_) {  // its workers go with it
      for (const auto& [pid, process] : processes_) {
        if (process->alive()) process->kill();
      }
    }
    world_.after(world_.random().duration(50ms, 5s), [this] {
      dead_ = false;
      graveyard_.push_back(std::move(coordinator_));
      start_coordinator();
    });
  }

  void start_process(std::size_t slot) {
    Process::Settings settings = slots_[slot];
    settings.pid = next_pid_++;
    const std::uint32_t pid = settings.pid;
    running_[slot] = pid;
    world_.note("pid " + std::to_string(pid) + " starts");
    processes_[pid] = std::make_unique<Process>(
        world_, std::move(settings),
        [this](std::uint32_t from, protocol::FromWorker message) {
          carry(from_worker_[from], [this, from, message = std::move(message)] {
            if (dead_) return;
            coordinator_->receive(from, message);
            if (local_ && std::holds_alternative<protocol::Hello>(message)) tell_expected();
          });
        },
        [this, slot](std::uint32_t ended, bool planned) { process_ended(slot, ended, planned); });
    processes_[pid]->start();
  }

  void process_ended(std::size_t slot, std::uint32_t pid, bool planned) {
    running_.erase(slot);
    const bool noticed = local_ || planned || !world_.random().chance(world_.faults().unnoticed);
    const Departure how = planned                                 ? Departure::Planned
                          : local_ || world_.random().chance(500) ? Departure::Died
                                                                  : Departure::Lost;
    if (noticed) {
      world_.after(world_.random().duration(1ms, 20ms), [this, pid, how] {
        if (dead_) return;
        coordinator_->process_ended(pid, how);
        if (local_) tell_expected();
      });
    }
    if (dead_ && local_) return;  // the next coordinator starts its own
    world_.after(world_.random().duration(100ms, 2s), [this, slot] {
      if ((dead_ && local_) || running_.contains(slot)) return;
      start_process(slot);
    });
  }

  /// A local coordinator knows how many of its workers are still to come.
  void tell_expected() {
    std::uint32_t expected = 0;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      const auto it = running_.find(slot);
      if (it == running_.end() || !coordinator_->registered(it->second)) ++expected;
    }
    coordinator_->workers_expected(expected);
  }

  /// One direction of one connection.
  struct Link {
    base::Time last{0};
  };

  void carry(Link& link, std::function<void()> deliver) {
    const Faults& faults = world_.faults();
    Random& random = world_.random();
    if (random.chance(faults.lost)) return;
    const int copies = random.chance(faults.doubled) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      base::Duration delay = random.duration(50us, 2ms);
      if (random.chance(faults.delayed)) delay += random.duration(1ms, faults.longest_delay);
      if (!random.chance(faults.reordered)) {
        delay = std::max(delay, link.last - world_.now());
        link.last = world_.now() + delay;
      }
      world_.after(delay, deliver);
    }
  }

  std::string stuck() {
    std::string out;
    for (std::uint32_t i = 0; i < coordinator_->core().counts().jobs; ++i) {
      const auto why = coordinator_->core().explain(coordinator::core::JobId{i});
      if (why.why == coordinator::core::Why::Settled) continue;
      if (why.why == coordinator::core::Why::Dropped) continue;
      out += " j" + std::to_string(i) + ": " + test::text_of(why) + ";";
    }
    return out;
  }

  std::vector<std::string> verdicts() {
    std::vector<std::string> out;
    for (std::uint32_t i = 0; i < coordinator_->added(); ++i) {
      const auto& settled = coordinator_->settled();
      if (const auto it = settled.find(i); it != settled.end()) {
        out.push_back(word(it->second));
      } else if (const auto known = durable_.answers.find(i); known != durable_.answers.end()) {
        out.emplace_back(domain::ending_name(known->second));
      } else {
        out.emplace_back("dropped");
      }
    }
    return out;
  }

  static std::string word(const coordinator::core::Settlement& how) {
    using namespace coordinator::core;
    if (const auto* answered = std::get_if<Answered>(&how)) {
      return std::string(domain::ending_name(answered->ending));
    }
    if (std::holds_alternative<DependencyFailed>(how)) return "needs what failed";
    return std::holds_alternative<Unsettled>(how) ? "unsettled" : "kills its worker";
  }

  World world_;
  Durable durable_;
  bool local_ = true;
  bool dead_ = false;
  std::vector<Process::Settings> slots_;
  std::vector<std::unique_ptr<Checker>> checkers_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<std::unique_ptr<Coordinator>> graveyard_;  ///< what is to happen may still name them
  std::map<std::uint32_t, std::unique_ptr<Process>> processes_;
  std::map<std::size_t, std::uint32_t> running_;
  std::map<std::uint32_t, Link> from_worker_;
  std::map<std::uint32_t, Link> from_coordinator_;
  std::uint32_t next_pid_ = 1;
};

}  // namespace

Life live(std::uint64_t seed, bool recording) { return Cluster(seed, recording).live(); }

}  // namespace layerfarm::sim
