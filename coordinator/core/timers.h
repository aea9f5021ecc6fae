// Deadlines in state, fired by Tick. Owners check for themselves whether a deadline still means
// something, so an early or stale one does no harm. Internal to coordinator/core.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>

#include "shared/base/time.h"

namespace layerfarm::coordinator::core {

enum class TimerKind : std::uint8_t { Worker, Job, Class };

struct Timer {
  base::Time at{0};
  TimerKind kind = TimerKind::Worker;
  std::uint32_t id = 0;
  friend auto operator<=>(const Timer&, const Timer&) = default;
};

class Timers {
 public:
  void arm(base::Time at, TimerKind kind, std::uint32_t id) { timers_.insert({at, kind, id}); }
  [[nodiscard]] std::optional<base::Time> next() const {
    if (timers_.empty()) return std::nullopt;
    return timers_.begin()->at;
  }
  /// The next one that is due at `now`, removed.
  [[nodiscard]] std::optional<Timer> pop_due(base::Time now) {
    if (timers_.empty() || timers_.begin()->at > now) return std::nullopt;
    const Timer timer = *timers_.begin();
    timers_.erase(timers_.begin());
    return timer;
  }

 private:
  std::set<Timer> timers_;
};

}  // namespace layerfarm::coordinator::core
