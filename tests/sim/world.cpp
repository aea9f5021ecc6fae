#include "tests/sim/world.h"

#include "tests/support/coordinator/scheduler_text.h"

namespace layerfarm::sim {

World::World(std::uint64_t seed, bool recording)
    : random_(seed),
      workload_(draw_workload(random_)),
      faults_(draw_faults(random_)),
      recording_(recording) {
  none_.until = base::Time{0};
}

void World::after(base::Duration delay, std::function<void()> what) {
  heap_.push({now_ + delay, sequence_++, std::move(what)});
}

bool World::step() {
  if (heap_.empty()) return false;
  now_ = heap_.top().at;
  const std::function<void()> what = heap_.top().what;
  heap_.pop();
  what();
  return true;
}

void World::note(const std::string& line) {
  if (recording_) transcript_.push_back(test::text_of(now_) + " " + line);
}

}  // namespace layerfarm::sim
