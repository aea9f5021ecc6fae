// The coordinator around the scheduler's core: registrations, what is durable, what is sent when.
// A small model of coordinator/app: nothing is acknowledged or shown before it is durable.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "coordinator/core/core.h"
#include "shared/protocol/messages.h"
#include "tests/sim/checkers.h"
#include "tests/sim/process.h"
#include "tests/sim/world.h"

namespace layerfarm::sim {

/// What survives the coordinator: answers that hold for later runs, and which job an attempt was
/// of.
struct Durable {
  std::map<std::uint32_t, domain::Ending> answers;
  std::map<protocol::AttemptId, coordinator::core::JobId> attempts;
  std::uint64_t epoch = 0;
};

class Coordinator {
 public:
  struct Outside {
    std::function<void(std::uint32_t pid, protocol::FromCoordinator message, std::uint64_t epoch)>
        send;
    std::function<void(std::uint32_t pid)> kill_process;
    /// What a process can do and how many leases it takes (its Hello would say so).
    std::function<const Process::Settings&(std::uint32_t pid)> settings;
    std::function<void()> die;  ///< this coordinator is killed
  };

  Coordinator(World& world, Durable& durable, Outside outside, bool local,
              std::vector<std::unique_ptr<Checker>>& checkers);

  /// Adds what there is to do. `workers` are on their way.
  void start(std::uint32_t workers);
  void receive(std::uint32_t pid, const protocol::FromWorker& message);
  void process_ended(std::uint32_t pid, coordinator::core::Departure how);
  void workers_expected(std::uint32_t count);
  void stop() { alive_ = false; }
  /// All that there is to do is settled, durable and said.
  [[nodiscard]] bool done() const;
  /// Jobs that it knows of: without an analysis there are no more than that.
  [[nodiscard]] std::size_t added() const { return added_; }
  [[nodiscard]] bool registered(std::uint32_t pid) const { return workers_.contains(pid); }
  /// How each job was settled in this life; known ones are not in it.
  [[nodiscard]] const std::map<std::uint32_t, coordinator::core::Settlement>& settled() const {
    return settled_;
  }
  [[nodiscard]] const coordinator::core::Core& core() const { return core_; }

 private:
  struct Group {
    std::map<std::uint32_t, domain::Ending> answers;
    std::map<std::uint32_t, std::vector<protocol::AttemptId>> acknowledgements;
  };

  void tell(const coordinator::core::Event& event);
  void carry_out(const coordinator::core::Action& action);
  void on(const coordinator::core::GiveLease& action);
  void on(const coordinator::core::CancelAttempts& action);
  void on(const coordinator::core::JobSettled& action);
  void on(const coordinator::core::Acknowledge& action);
  void on(const coordinator::core::DropWorker& action);
  void on(const coordinator::core::AskHello& action);
  template <typename Other>
  void on(const Other&) {}

  void register_worker(std::uint32_t pid, const protocol::Hello& hello);
  void ended(coordinator::core::WorkerId worker, const protocol::Outcomes& outcomes);
  void add_jobs(std::size_t from, std::size_t to);
  void follow_up(coordinator::core::JobId job, bool success);
  void commit();
  void schedule_tick();
  [[nodiscard]] std::optional<std::uint32_t> pid_of(coordinator::core::WorkerId worker) const;

  World& world_;
  Durable& durable_;
  Outside outside_;
  bool local_;
  std::vector<std::unique_ptr<Checker>>& checkers_;
  coordinator::core::Core core_;
  bool alive_ = true;
  std::map<std::uint32_t, coordinator::core::WorkerId> workers_;  ///< by pid
  std::uint32_t registrations_ = 0;
  std::size_t added_ = 0;
  std::optional<Group> open_;
  std::map<std::uint32_t, coordinator::core::Settlement> settled_;
  std::size_t to_follow_up_ = 0;
  base::Time tick_at_{-1};
};

}  // namespace layerfarm::sim
