// What must be true of every simulated life, each rule by itself. They see what goes into the
// scheduler and what comes out, and keep their own books.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "coordinator/core/actions.h"
#include "coordinator/core/events.h"
#include "coordinator/core/policy.h"
#include "tests/sim/world.h"

namespace layerfarm::sim {

class Checker {
 public:
  virtual ~Checker() = default;
  /// A new coordinator with this policy begins; nothing of the last one is known any more.
  virtual void new_life(const coordinator::core::CorePolicy& /*policy*/) {}
  virtual void event(const coordinator::core::Event& /*event*/) {}
  virtual void action(const coordinator::core::Action& /*action*/) {}
};

/// Each job settles exactly once in a coordinator's life (a renewed answer says so), and what is
/// dropped never does.
[[nodiscard]] std::unique_ptr<Checker> settled_once(World& world);
/// Attempt numbers are never used twice; an answer counts only from the worker that has the attempt
/// and only for its job; every answer is acknowledged; what is settled is not leased again.
[[nodiscard]] std::unique_ptr<Checker> fenced(World& world);
/// No worker is given more leases than it has credits, nothing goes to one that is gone or lacks
/// the ability, what is alone is alone, and the order within a lease respects what needs what.
[[nodiscard]] std::unique_ptr<Checker> slots(World& world);
/// Tries, faults and deaths that were really seen justify every verdict, and stay within the
/// budget.
[[nodiscard]] std::unique_ptr<Checker> budgets(World& world);

}  // namespace layerfarm::sim
