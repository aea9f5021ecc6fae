#include "coordinator/core/quarantine.h"

#include <algorithm>

#include "coordinator/core/leasing.h"

namespace layerfarm::coordinator::core {
namespace {

bool last_fit(const State& state, const Worker& worker) {
  const Kind& kind = state.kinds[worker.kind];
  return std::any_of(kind.classes.begin(), kind.classes.end(),
                     [&](ClassId ability) { return state.classes[ability.value()].fit <= 1; });
}

void arm_probe(State& state, WorkerId id, Worker& worker) {
  Quarantine& quarantine = *worker.quarantine;
  quarantine.next_probe = state.now + quarantine.interval;
  state.timers.arm(quarantine.next_probe, TimerKind::Worker, id.value());
  state.emit(WorkerQuarantined{id, worker.faults_in_row, quarantine.interval});
  refresh(state, id);
}

void quarantine(State& state, WorkerId id, Worker& worker) {
  worker.quarantine = Quarantine{.interval = state.policy.probe_first};
  count_fit(state, state.kinds[worker.kind], -1);
  cancel_untouched(state, id);
  arm_probe(state, id, worker);
}

void readmit(State& state, WorkerId id, Worker& worker) {
  worker.quarantine.reset();
  worker.faults_in_row = 0;
  count_fit(state, state.kinds[worker.kind], +1);
  state.emit(WorkerReadmitted{id});
  refresh(state, id);
}

void note_fault(State& state, WorkerId id, Worker& worker) {
  ++worker.faults_in_row;
  if (worker.quarantine) {
    // What was in its hand when it was quarantined is no probe.
    if (state.now < worker.quarantine->next_probe) return;
    worker.quarantine->interval =
        std::min(worker.quarantine->interval * 2, state.policy.probe_longest);
    arm_probe(state, id, worker);
    return;
  }
  if (worker.faults_in_row < state.policy.quarantine_after) return;
  if (state.policy.local && last_fit(state, worker)) return;
  quarantine(state, id, worker);
}

}  // namespace

void note_ending(State& state, WorkerId id, domain::Ending ending) {
  Worker& worker = state.workers.at(id);
  switch (ending) {
    case domain::Ending::Infrastructure:
      note_fault(state, id, worker);
      return;
    case domain::Ending::LostBlob:
    case domain::Ending::Cancelled:
      return;  // says nothing about the worker
    case domain::Ending::Done:
    case domain::Ending::Refused:
    case domain::Ending::Crashed:
    case domain::Ending::TimedOut:
    case domain::Ending::OverMemory:
    case domain::Ending::OverOutput:
      worker.faults_in_row = 0;
      if (worker.quarantine) readmit(state, id, worker);
      return;
  }
}

void keep_one_fit(State& state) {
  if (!state.policy.local) return;
  for (auto& [id, worker] : state.workers) {
    if (!worker.quarantine) continue;
    const Kind& kind = state.kinds[worker.kind];
    const bool needed = std::any_of(kind.classes.begin(), kind.classes.end(), [&](ClassId ability) {
      return state.classes[ability.value()].fit == 0;
    });
    if (needed) readmit(state, id, worker);
  }
}

void count_fit(State& state, const Kind& kind, int change) {
  for (const ClassId ability : kind.classes) {
    state.classes[ability.value()].fit += static_cast<std::uint32_t>(change);
    // Fewer may free a job that waited for another worker; more may take what waits.
    state.mark_dirty(ability);
  }
}

}  // namespace layerfarm::coordinator::core
