#include "coordinator/core/state.h"

namespace layerfarm::coordinator::core {

WorkClass& State::class_at(ClassId ability) {
  if (ability.value() >= classes.size()) classes.resize(ability.value() + std::size_t{1});
  return classes[ability.value()];
}

Worker* State::worker(WorkerId id) {
  const auto it = workers.find(id);
  return it == workers.end() ? nullptr : &it->second;
}

const Trouble* State::trouble(JobId job) const {
  const auto it = troubles.find(job);
  return it == troubles.end() ? nullptr : &it->second;
}

void State::mark_dirty(ClassId ability) {
  WorkClass& work = class_at(ability);
  if (work.dirty) return;
  work.dirty = true;
  dirty_classes.push_back(ability);
}

}  // namespace layerfarm::coordinator::core
