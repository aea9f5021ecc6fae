// The jobs as the core keeps them: hot, small, indexed by JobId. Internal to coordinator/core.
#pragma once

#include <array>
#include <cstdint>
#include <variant>
#include <vector>

#include "coordinator/core/actions.h"
#include "coordinator/core/ids.h"

namespace layerfarm::coordinator::core {

inline constexpr std::uint32_t kNone = 0xffffffffU;

/// What a settled job means for those that build on it.
enum class Fate : std::uint8_t { Succeeded, Failed, NoWorker, Infrastructure, LostBlobs };

struct Waiting {};  ///< for other jobs
struct Ready {};    ///< in its queue
struct Resting {};  ///< until a timer ends, or another place appears
struct Leased {
  std::uint32_t lease = kNone;
  std::uint32_t item = 0;
};
struct Settled {
  JobId cause;  ///< the job that came to this fate by itself
  Fate fate = Fate::Succeeded;
};
struct Dropped {};
using JobState = std::variant<Waiting, Ready, Resting, Leased, Settled, Dropped>;
inline constexpr std::size_t kJobStates = std::variant_size_v<JobState>;

struct Job {
  std::array<std::uint32_t, 2> needs{kNone, kNone};
  /// Dependents of a job form a list through the jobs themselves: next[i] follows this one in the
  /// list of needs[i].
  std::array<std::uint32_t, 2> next{kNone, kNone};
  std::uint32_t first_dependent = kNone;
  std::uint32_t last_dependent = kNone;
  std::uint32_t cost_us = 0;
  std::uint32_t limit_ms = 0;
  JobState state;
  std::uint16_t queue = 0;
  std::int16_t priority = 0;
  bool settled_before = false;  ///< its next answer renews an older one
  bool special = false;         ///< its Trouble limits where it may run: kept apart in its queue
};
static_assert(sizeof(Job) <= 56, "a job is held a million times");

/// All jobs ever added, and how many are in which state.
class JobTable {
 public:
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(jobs_.size()); }
  [[nodiscard]] bool contains(JobId id) const { return id.value() < jobs_.size(); }
  [[nodiscard]] Job& operator[](JobId id) { return jobs_[id.value()]; }
  [[nodiscard]] const Job& operator[](JobId id) const { return jobs_[id.value()]; }

  /// Adds a job and links it behind the jobs that it needs.
  void add(Job job);
  void set_state(JobId id, JobState state);

  template <typename State>
  [[nodiscard]] bool is(JobId id) const {
    return std::holds_alternative<State>(jobs_[id.value()].state);
  }
  [[nodiscard]] bool succeeded(JobId id) const;
  /// Settled (with whatever fate) or dropped.
  [[nodiscard]] bool over(JobId id) const { return is<Settled>(id) || is<Dropped>(id); }
  template <typename State>
  [[nodiscard]] std::uint32_t count() const {
    return counts_[JobState(State{}).index()];
  }
  [[nodiscard]] std::uint32_t open() const { return size() - count<Settled>() - count<Dropped>(); }

  /// Calls f(JobId) for each job that needs `id`, in the order in which they were added, until it
  /// returns false.
  template <typename F>
  void each_dependent(JobId id, F&& f) const {
    std::uint32_t dependent = jobs_[id.value()].first_dependent;
    while (dependent != kNone) {
      const Job& job = jobs_[dependent];
      const std::uint32_t following = job.needs[0] == id.value() ? job.next[0] : job.next[1];
      if (!f(JobId{dependent})) return;
      dependent = following;
    }
  }

 private:
  std::vector<Job> jobs_;
  std::array<std::uint32_t, kJobStates> counts_{};
};

}  // namespace layerfarm::coordinator::core
