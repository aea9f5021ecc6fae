// Seeded randomness that gives the same numbers everywhere (std's distributions need not).
#pragma once

#include <cstdint>
#include <random>

#include "shared/base/time.h"

namespace layerfarm::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// 0 .. below-1; below > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t below) { return engine_() % below; }
  [[nodiscard]] std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low + 1)));
  }
  /// True in `per_mille` of 1000 cases.
  [[nodiscard]] bool chance(std::uint32_t per_mille) { return below(1000) < per_mille; }
  [[nodiscard]] base::Duration duration(base::Duration low, base::Duration high) {
    return base::Duration(between(low.count(), high.count()));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace layerfarm::sim
