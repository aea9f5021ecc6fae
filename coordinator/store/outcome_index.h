// OutcomeIndex: key -> place in the log of the latest outcome that answers it, for millions of
// keys. Keeps the first eight bytes of a key; the row itself tells whether it is really that key.
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace layerfarm::coordinator::store {

class OutcomeIndex {
 public:
  /// The later place wins, whatever the order of the calls. `sequence` is above 0.
  void put(std::uint64_t fingerprint, std::uint64_t sequence);
  [[nodiscard]] std::optional<std::uint64_t> find(std::uint64_t fingerprint) const;
  /// Forgets it, if it still points there.
  void drop(std::uint64_t fingerprint, std::uint64_t sequence);
  [[nodiscard]] std::size_t size() const { return live_; }
  [[nodiscard]] std::size_t memory_bytes() const { return slots_.capacity() * sizeof(Slot); }

 private:
  struct Slot {
    std::uint64_t fingerprint = 0;
    std::uint64_t sequence = 0;  ///< 0 = free, kDropped = was used
  };
  static constexpr std::uint64_t kDropped = ~std::uint64_t{0};

  /// Slot of the fingerprint, or the free one where it belongs. Needs a free slot somewhere.
  [[nodiscard]] std::size_t slot_of(std::uint64_t fingerprint) const;
  void grow();

  std::vector<Slot> slots_;  // a power of two, at most 3/4 used
  std::size_t used_ = 0;     // slots that are not free
  std::size_t live_ = 0;
};

}  // namespace layerfarm::coordinator::store
