// Ready jobs, most urgent first. One queue for each kind of equal work: ability, group, stage,
// flavour. Internal to coordinator/core.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "coordinator/core/ids.h"
#include "coordinator/core/jobs.h"
#include "shared/base/time.h"
#include "shared/domain/outcome.h"

namespace layerfarm::coordinator::core {

enum class Flavour : std::uint8_t {
  Normal,
  Speculative,  ///< only on a worker that would idle
  Exclusive,    ///< only on a host that does nothing else
};
inline constexpr std::size_t kFlavours = 3;

struct QueueKey {
  ClassId ability;
  GroupId group;
  domain::Stage stage = domain::Stage::Execute;
  Flavour flavour = Flavour::Normal;
  friend auto operator<=>(const QueueKey&, const QueueKey&) = default;
};

/// A job's place in the order: priority, then cost, then id.
struct Entry {
  std::int16_t priority = 0;
  std::uint32_t cost_us = 0;
  std::uint32_t job = kNone;
  /// Less = goes first.
  friend bool operator<(const Entry& a, const Entry& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.cost_us != b.cost_us) return a.cost_us > b.cost_us;
    return a.job < b.job;
  }
};
static_assert(sizeof(Entry) <= 12, "a ready job has one");

[[nodiscard]] inline Entry entry_of(JobId id, const Job& job) {
  return {.priority = job.priority, .cost_us = job.cost_us, .job = id.value()};
}

/// The jobs that troubles keep from some workers, by the workers that they avoid (sorted).
using Specials = std::map<std::vector<WorkerId>, std::set<Entry>>;

class ReadyQueue {
 public:
  ReadyQueue(std::uint16_t index, QueueKey key) : key_(key), index_(index) {}

  [[nodiscard]] const QueueKey& key() const { return key_; }
  [[nodiscard]] std::uint32_t size() const { return ready_; }
  [[nodiscard]] const Specials& specials() const { return specials_; }

  /// The job is now Ready and belongs here. `avoid` only for special ones.
  void push(JobId id, const Job& job);
  void push_special(JobId id, const Job& job, const std::vector<WorkerId>& avoid);
  /// The job is Ready no more (leased, waiting again, dropped, in another queue).
  void leave() { --ready_; }
  void leave_special(JobId id, const Job& job, const std::vector<WorkerId>& avoid);

  /// The most urgent job that is not special.
  [[nodiscard]] std::optional<Entry> top(const JobTable& jobs);

  /// All that are not special, in no order that means anything but always the same.
  [[nodiscard]] std::vector<JobId> normal_jobs(const JobTable& jobs) const;

  /// Mean time that one case of this queue takes; zero = not known yet.
  [[nodiscard]] base::Duration mean() const { return mean_; }
  void learn(base::Duration sample);

 private:
  [[nodiscard]] bool valid(const Entry& entry, const JobTable& jobs) const;

  QueueKey key_;
  std::uint16_t index_;
  std::uint32_t ready_ = 0;  ///< ready jobs, special ones included
  /// A heap. Entries of jobs that left are skipped when they come up, so leaving costs nothing.
  std::vector<Entry> heap_;
  Specials specials_;
  base::Duration mean_{0};
};

}  // namespace layerfarm::coordinator::core
