#include "coordinator/store/outcome_index.h"

#include <utility>

namespace layerfarm::coordinator::store {

std::size_t OutcomeIndex::slot_of(std::uint64_t fingerprint) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = fingerprint & mask;
  while (slots_[at].sequence != 0 && slots_[at].fingerprint != fingerprint) at = (at + 1) & mask;
  return at;
}

void OutcomeIndex::grow() {
  std::vector<Slot> old =
      std::exchange(slots_, std::vector<Slot>(slots_.empty() ? 1024 : slots_.size() * 2));
  used_ = 0;
  for (const Slot& slot : old) {
    if (slot.sequence == 0 || slot.sequence == kDropped) continue;
    slots_[slot_of(slot.fingerprint)] = slot;
    ++used_;
  }
}

void OutcomeIndex::put(std::uint64_t fingerprint, std::uint64_t sequence) {
  if ((used_ + 1) * 4 > slots_.size() * 3) grow();
  Slot& slot = slots_[slot_of(fingerprint)];
  if (slot.sequence == 0) ++used_;
  if (slot.sequence == 0 || slot.sequence == kDropped) {
    ++live_;
  } else if (slot.sequence >= sequence) {
    return;
  }
  slot = {fingerprint, sequence};
}

std::optional<std::uint64_t> OutcomeIndex::find(std::uint64_t fingerprint) const {
  if (slots_.empty()) return std::nullopt;
  const std::uint64_t sequence = slots_[slot_of(fingerprint)].sequence;
  if (sequence == 0 || sequence == kDropped) return std::nullopt;
  return sequence;
}

void OutcomeIndex::drop(std::uint64_t fingerprint, std::uint64_t sequence) {
  if (slots_.empty()) return;
  Slot& slot = slots_[slot_of(fingerprint)];
  if (slot.sequence != sequence || sequence == 0 || sequence == kDropped) return;
  slot.sequence = kDropped;
  --live_;
}

}  // namespace layerfarm::coordinator::store
