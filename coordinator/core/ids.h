// Ids of the scheduler. All are given by the caller (coordinator/app) except AttemptId, which the
// core counts.
#pragma once

#include "shared/base/ids.h"
#include "shared/protocol/ids.h"

namespace layerfarm::coordinator::core {

/// Dense: the n-th job that was ever added has id n (from 0).
using JobId = protocol::JobId;
using AttemptId = protocol::AttemptId;
/// One registration of a worker process: a *place*. Never used twice.
using WorkerId = base::StrongId<struct WorkerTag, std::uint32_t>;
/// A machine. Workers with the same host share it; an exclusive job has it for itself.
using HostId = base::StrongId<struct HostTag, std::uint32_t>;
/// What a worker must be able to do: one number per (chip, toolchain, kind of work); analyze and
/// prepare have classes of their own. Small and dense (an index).
using ClassId = base::StrongId<struct ClassTag, std::uint16_t>;
/// Jobs that may share a lease: one number per (chip, executor). 0 = belongs to no chip (analyze,
/// prepare), fits beside any group.
using GroupId = base::StrongId<struct GroupTag, std::uint16_t>;

inline constexpr GroupId kNoGroup{0};

}  // namespace layerfarm::coordinator::core
