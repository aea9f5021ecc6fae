// The virtual world that all parts of a simulation share: clock, what is to happen, chance, notes.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "shared/base/time.h"
#include "tests/sim/faults.h"
#include "tests/sim/random.h"
#include "tests/sim/workload.h"

namespace layerfarm::sim {

class World {
 public:
  World(std::uint64_t seed, bool recording);

  [[nodiscard]] base::Time now() const { return now_; }
  /// Calls `what` later. Equal times keep the order in which they were asked for.
  void after(base::Duration delay, std::function<void()> what);
  /// Lets the next thing happen; false when nothing is left.
  bool step();

  [[nodiscard]] Random& random() { return random_; }
  /// None once their time is over.
  [[nodiscard]] const Faults& faults() const { return now_ < faults_.until ? faults_ : none_; }
  [[nodiscard]] const Faults& drawn_faults() const { return faults_; }
  [[nodiscard]] const Workload& workload() const { return workload_; }

  /// True once per job: its tool crashes for no reason of its own.
  [[nodiscard]] bool flakes(std::uint32_t job) {
    return random_.chance(faults().flake) && flaked_.insert(job).second;
  }

  [[nodiscard]] bool recording() const { return recording_; }
  void note(const std::string& line);
  [[nodiscard]] const std::vector<std::string>& transcript() const { return transcript_; }

  /// The first thing that a checker found; empty while all is well.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  void fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }

 private:
  struct Happening {
    base::Time at;
    std::uint64_t sequence;
    std::function<void()> what;
    friend bool operator<(const Happening& a, const Happening& b) {  // a heap's top is its greatest
      return std::pair(b.at, b.sequence) < std::pair(a.at, a.sequence);
    }
  };

  Random random_;
  Workload workload_;
  Faults faults_;
  Faults none_;
  base::Time now_{0};
  std::uint64_t sequence_ = 0;
  std::priority_queue<Happening> heap_;
  std::set<std::uint32_t> flaked_;
  bool recording_;
  std::vector<std::string> transcript_;
  std::string failure_;
};

}  // namespace layerfarm::sim
