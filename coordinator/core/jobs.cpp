#include "coordinator/core/jobs.h"

namespace layerfarm::coordinator::core {

void JobTable::add(Job job) {
  const std::uint32_t id = size();
  for (std::size_t i = 0; i < job.needs.size(); ++i) {
    if (job.needs[i] == kNone) continue;
    Job& needed = jobs_[job.needs[i]];
    if (needed.last_dependent == kNone) {
      needed.first_dependent = id;
    } else {
      Job& last = jobs_[needed.last_dependent];
      last.next[last.needs[0] == job.needs[i] ? 0 : 1] = id;
    }
    needed.last_dependent = id;
  }
  ++counts_[job.state.index()];
  jobs_.push_back(job);
}

void JobTable::set_state(JobId id, JobState state) {
  JobState& now = jobs_[id.value()].state;
  --counts_[now.index()];
  now = state;
  ++counts_[now.index()];
}

bool JobTable::succeeded(JobId id) const {
  const auto* settled = std::get_if<Settled>(&jobs_[id.value()].state);
  return settled != nullptr && settled->fate == Fate::Succeeded;
}

}  // namespace layerfarm::coordinator::core
