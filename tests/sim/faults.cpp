#include "tests/sim/faults.h"

namespace layerfarm::sim {
namespace {

/// Often nothing, sometimes up to `most`: so that each fault is also seen alone.
std::uint32_t some(Random& random, std::uint32_t most) {
  if (random.chance(600)) return 0;
  return static_cast<std::uint32_t>(random.between(1, most));
}

}  // namespace

Faults draw_faults(Random& random) {
  Faults faults;
  if (random.chance(100)) {
    faults.until = base::Time{0};
    return faults;  // a quiet life
  }
  faults.lost = some(random, 150);
  faults.doubled = some(random, 150);
  faults.delayed = some(random, 200);
  faults.reordered = some(random, 300);
  faults.longest_delay = random.duration(std::chrono::milliseconds(10), std::chrono::seconds(20));
  faults.crash = some(random, 100);
  faults.stop = some(random, 60);
  faults.unnoticed = some(random, 500);
  faults.infrastructure = some(random, 150);
  faults.lost_blob = some(random, 150);
  faults.flake = some(random, 200);
  faults.slow_workers = some(random, 400);
  faults.bad_worker = some(random, 300);
  faults.coordinator_kill = some(random, 200);
  faults.knows_attempts = some(random, 1000);
  faults.until = random.duration(std::chrono::seconds(5), std::chrono::seconds(90));
  return faults;
}

std::string text_of(const Faults& f) {
  const auto part = [](const char* name, std::uint32_t value) {
    return value == 0 ? std::string() : std::string(" ") + name + "=" + std::to_string(value);
  };
  return "faults:" + part("lost", f.lost) + part("doubled", f.doubled) +
         part("delayed", f.delayed) + part("reordered", f.reordered) + part("crash", f.crash) +
         part("stop", f.stop) + part("unnoticed", f.unnoticed) +
         part("infrastructure", f.infrastructure) + part("lost_blob", f.lost_blob) +
         part("flake", f.flake) + part("slow_workers", f.slow_workers) +
         part("bad_worker", f.bad_worker) + part("coordinator_kill", f.coordinator_kill) +
         part("knows_attempts", f.knows_attempts);
}

}  // namespace layerfarm::sim
