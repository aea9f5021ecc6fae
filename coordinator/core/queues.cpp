#include "coordinator/core/queues.h"

#include <algorithm>

namespace layerfarm::coordinator::core {
namespace {

/// std heaps keep the greatest on top; ours shall be the first to go.
constexpr auto kLater = [](const Entry& a, const Entry& b) { return b < a; };

}  // namespace

void ReadyQueue::push(JobId id, const Job& job) {
  ++ready_;
  heap_.push_back(entry_of(id, job));
  std::push_heap(heap_.begin(), heap_.end(), kLater);
}

void ReadyQueue::push_special(JobId id, const Job& job, const std::vector<WorkerId>& avoid) {
  ++ready_;
  specials_[avoid].insert(entry_of(id, job));
}

void ReadyQueue::leave_special(JobId id, const Job& job, const std::vector<WorkerId>& avoid) {
  --ready_;
  const auto it = specials_.find(avoid);
  it->second.erase(entry_of(id, job));
  if (it->second.empty()) specials_.erase(it);
}

bool ReadyQueue::valid(const Entry& entry, const JobTable& jobs) const {
  const JobId id{entry.job};
  const Job& job = jobs[id];
  return jobs.is<Ready>(id) && job.queue == index_ && !job.special;
}

std::optional<Entry> ReadyQueue::top(const JobTable& jobs) {
  while (!heap_.empty() && !valid(heap_.front(), jobs)) {
    std::pop_heap(heap_.begin(), heap_.end(), kLater);
    heap_.pop_back();
  }
  if (heap_.empty()) return std::nullopt;
  return heap_.front();
}

std::vector<JobId> ReadyQueue::normal_jobs(const JobTable& jobs) const {
  std::vector<JobId> found;
  for (const Entry& entry : heap_) {
    if (valid(entry, jobs)) found.emplace_back(entry.job);
  }
  return found;
}

void ReadyQueue::learn(base::Duration sample) {
  mean_ = mean_ == base::Duration{0} ? sample : (3 * mean_ + sample) / 4;
  mean_ = std::max(mean_, base::Duration{1});
}

}  // namespace layerfarm::coordinator::core
