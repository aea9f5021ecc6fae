// Everything that can happen to the scheduler. Facts, in the past tense; bad or late ones are
// answered by actions, never by a crash.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "coordinator/core/ids.h"
#include "coordinator/core/job_spec.h"
#include "shared/domain/outcome.h"

namespace layerfarm::coordinator::core {

struct GroupsAdded {
  std::vector<GroupSpec> groups;
};

struct JobsAdded {
  std::vector<JobSpec> jobs;
};

/// Nobody wants these any more (skip mode, a cancelled run). Attempts under way are cancelled,
/// their answers ignored; what builds on them is dropped too. Settled ones stay settled. No
/// JobSettled follows for a dropped job.
struct JobsDropped {
  std::vector<JobId> jobs;
};

/// These were speculative and are wanted now.
struct JobsWanted {
  std::vector<JobId> jobs;
};

/// An attempt that a worker says it has, in its Hello.
struct HeldAttempt {
  AttemptId attempt;
  /// For an attempt of an earlier life of the coordinator, when the caller knows it: it is taken on
  /// if the job is neither settled nor in anybody's hand. For attempts of this life the core's own
  /// books decide.
  std::optional<JobId> job = {};
};

struct WorkerJoined {
  WorkerId worker;  ///< a new one, also when a known process registers again
  HostId host;
  std::vector<ClassId> abilities;
  /// How many leases it may have in hand: the one it works on and prefetched ones.
  std::uint32_t leases = 2;
  /// Kept where still valid, else cancelled.
  std::vector<HeldAttempt> held = {};
  /// The same process's earlier registration, on the same host: its leases move over; what is not
  /// in `held` goes back to the queue unblamed.
  std::optional<WorkerId> replaces = {};
};

enum class Departure : std::uint8_t {
  Planned,  ///< said Goodbye, or was told to stop: counts against nobody
  Died,     ///< its process ended unplanned
  Lost,     ///< its link broke, or nobody knows
};

struct WorkerLeft {
  WorkerId worker;
  Departure how = Departure::Lost;
};

/// So many workers have been started, or will be, and have not joined yet: "nothing can run this"
/// is not judged meanwhile. On one machine (policy.local) the core counts one more by itself when
/// it loses one unplanned; the next event of this kind sets the number anew.
struct WorkersExpected {
  std::uint32_t count = 0;
};

struct AttemptsStarted {
  WorkerId worker;
  std::vector<AttemptId> attempts;
};

struct EndedAttempt {
  AttemptId attempt;
  domain::Ending ending = domain::Ending::Done;
  /// LostBlob: the jobs that made what was lost. Empty = the caller knows no producer: taken as
  /// Infrastructure.
  std::vector<JobId> lost = {};
};

struct AttemptsEnded {
  WorkerId worker;
  std::vector<EndedAttempt> ended;
};

/// Any sign of life besides the above; for a heartbeat, what it works on.
struct WorkerHeard {
  WorkerId worker;
  bool idle = false;    ///< a heartbeat that names no attempt
  AttemptId attempt{};  ///< a heartbeat's first running attempt; 0 = none, or no heartbeat
};

/// Leasing stops while the coordinator cannot keep results (store or disk full).
struct LeasingPaused {
  bool paused = true;
};

/// Time passed: send it at next_deadline() at the latest.
struct Tick {};

/// The end: no new leases; with `now` everything under way is cancelled. `Stopped` follows when
/// nothing is in hand.
struct Stop {
  bool now = false;
};

using Event = std::variant<GroupsAdded, JobsAdded, JobsDropped, JobsWanted, WorkerJoined,
                           WorkerLeft, WorkersExpected, AttemptsStarted, AttemptsEnded, WorkerHeard,
                           LeasingPaused, Tick, Stop>;

}  // namespace layerfarm::coordinator::core
