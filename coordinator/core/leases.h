// Leases in workers' hands. An attempt is found through the leases of the worker that speaks of it,
// so whatever is not in them is late by definition. Internal to coordinator/core.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "coordinator/core/ids.h"
#include "shared/base/time.h"

namespace layerfarm::coordinator::core {

enum class ItemState : std::uint8_t {
  Given,
  Begun,
  Fenced,  ///< its answer counts no more, but the worker has still to give one
  Closed,
};

struct Item {
  AttemptId attempt;
  JobId job;
  ItemState state = ItemState::Given;
  bool cancelled = false;  ///< asked back
};

struct Lease {
  WorkerId worker;
  std::uint32_t queue = 0;  ///< of its leading jobs
  std::uint32_t cases = 0;  ///< leading jobs
  std::uint32_t open = 0;   ///< items not closed
  bool alone = false;
  bool exclusive = false;
  bool untouched = true;  ///< nothing of it was begun or answered
  base::Time given{0};
  std::vector<Item> items;  ///< attempts ascend

  [[nodiscard]] const Item* find(AttemptId attempt) const;
  [[nodiscard]] Item* find(AttemptId attempt) {
    return const_cast<Item*>(std::as_const(*this).find(attempt));
  }
};

class LeaseTable {
 public:
  [[nodiscard]] Lease& operator[](std::uint32_t slot) { return leases_[slot]; }
  [[nodiscard]] const Lease& operator[](std::uint32_t slot) const { return leases_[slot]; }
  [[nodiscard]] std::uint32_t create();
  void remove(std::uint32_t slot);
  [[nodiscard]] std::uint32_t live() const {
    return static_cast<std::uint32_t>(leases_.size() - free_.size());
  }
  [[nodiscard]] std::uint32_t slots() const { return static_cast<std::uint32_t>(leases_.size()); }
  /// A slot is free when its lease has no open item.
  [[nodiscard]] bool in_use(std::uint32_t slot) const { return leases_[slot].open > 0; }

 private:
  std::vector<Lease> leases_;
  std::vector<std::uint32_t> free_;
};

}  // namespace layerfarm::coordinator::core
