// Workers as the core sees them, in the order of their registration; hosts; and workers of equal
// abilities as one kind. Internal to coordinator/core.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "coordinator/core/ids.h"
#include "coordinator/core/queues.h"
#include "shared/base/time.h"

namespace layerfarm::coordinator::core {

struct Quarantine {
  base::Time next_probe{0};
  base::Duration interval{0};
};

struct Worker {
  HostId host;
  std::uint32_t kind = 0;
  std::uint32_t credits = 1;
  std::vector<std::uint32_t> leases;  ///< in hand, in the order in which it works on them
  bool alone = false;                 ///< what it has in hand bears nothing beside it
  bool suspect = false;               ///< silent for a while
  std::uint32_t faults_in_row = 0;
  std::optional<Quarantine> quarantine;
  base::Time heard{0};     ///< by the attentive clock
  base::Time progress{0};  ///< when it last was given, began or ended something
  base::Time lease_ended{0};
  base::Time declines_until{0};            ///< it handed work back unasked
  std::optional<base::Time> astray_since;  ///< it works on a later lease, an earlier one is open
  base::Time asked_hello{0};
  base::Time next_look{0};        ///< when its timer fires
  bool hungry = false;            ///< in its kind's set
  std::uint32_t hungry_with = 0;  ///< under this number of leases

  [[nodiscard]] bool fit() const { return !quarantine.has_value(); }
};

/// Workers with the same abilities.
struct Kind {
  std::vector<ClassId> classes;  ///< sorted
  std::vector<bool> can;         ///< by class
  /// Workers that may be given a lease, those with the least in hand first.
  std::set<std::pair<std::uint32_t, WorkerId>> hungry;
  std::uint32_t workers = 0;

  [[nodiscard]] bool able(ClassId ability) const {
    return ability.value() < can.size() && can[ability.value()];
  }
};

/// One ability: who has it, and what waits for it.
struct WorkClass {
  std::vector<std::uint32_t> kinds;   ///< that have it
  std::vector<std::uint16_t> queues;  ///< of it
  std::uint32_t able = 0;
  std::uint32_t fit = 0;
  std::uint32_t ready[kFlavours] = {};
  std::uint32_t ready_alone = 0;
  std::optional<base::Time> missing_since;  ///< work is ready and nothing fit has the ability
  bool missing_said = false;
  std::optional<base::Time> exclusive_since;  ///< exclusive work is ready
  bool dirty = false;

  [[nodiscard]] std::uint32_t all_ready() const { return ready[0] + ready[1] + ready[2]; }
};

struct Host {
  std::set<WorkerId> workers;
  std::uint32_t leases = 0;  ///< in hand of all its workers
  bool exclusive = false;    ///< its one lease bears nothing beside it
  bool draining = false;     ///< no new leases, so that an exclusive job gets its turn
};

}  // namespace layerfarm::coordinator::core
