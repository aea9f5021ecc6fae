#include "coordinator/core/leases.h"

#include <algorithm>

namespace layerfarm::coordinator::core {

const Item* Lease::find(AttemptId attempt) const {
  if (items.empty() || attempt < items.front().attempt) return nullptr;
  // Attempts of a lease usually have consecutive numbers.
  const std::uint64_t guess = attempt.value() - items.front().attempt.value();
  if (guess < items.size() && items[guess].attempt == attempt) return &items[guess];
  const auto it = std::lower_bound(items.begin(), items.end(), attempt,
                                   [](const Item& a, AttemptId b) { return a.attempt < b; });
  return it != items.end() && it->attempt == attempt ? &*it : nullptr;
}

std::uint32_t LeaseTable::create() {
  if (free_.empty()) {
    leases_.emplace_back();
    return slots() - 1;
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void LeaseTable::remove(std::uint32_t slot) {
  leases_[slot] = Lease{};
  free_.push_back(slot);
}

}  // namespace layerfarm::coordinator::core
