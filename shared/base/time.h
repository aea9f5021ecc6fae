// Time as the pure parts see it: a duration since some start, from a clock that is handed in.
#pragma once

#include <chrono>

namespace layerfarm::base {

using Duration = std::chrono::nanoseconds;
/// Monotonic; only differences mean something, and only within one process.
using Time = std::chrono::nanoseconds;

/// The clock is outside the process's logic, so it comes in by constructor.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Time now() const = 0;
};

class MonotonicClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override {
    return std::chrono::steady_clock::now().time_since_epoch();
  }
};

}  // namespace layerfarm::base
