// A lease while it is put together: leading jobs of one queue, and of their cases what else this
// worker can do. Internal to coordinator/core.
#pragma once

#include <cstdint>

#include "coordinator/core/state.h"

namespace layerfarm::coordinator::core {

class Draft {
 public:
  Draft(State& state, WorkerId worker, std::uint16_t queue);

  /// Adds a ready job and what follows from it. False when the lease is full.
  bool add_case(JobId lead);
  /// Gives it: the lease is the worker's from here on.
  void give();

 private:
  [[nodiscard]] bool full() const;
  [[nodiscard]] bool holds(JobId job) const;
  [[nodiscard]] bool fits(JobId job) const;
  [[nodiscard]] bool can_pull(JobId job) const;
  void add(JobId job);
  void follow(JobId job);
  void take_up(JobId dependent);
  /// What stands from `first` on: prepare, compile, execute. Over a whole lease it is for batches,
  /// whose compile jobs are done at once; else for one case.
  void order_by_stage(std::size_t first);

  State& state_;
  WorkerId worker_;
  const Kind& kind_;
  QueueKey key_;
  GroupId group_;
  bool alone_ = false;
  std::uint8_t memory_factor_ = 1;
  std::uint32_t slot_;
};

}  // namespace layerfarm::coordinator::core
