// Everything the scheduler can order. The caller makes facts (JobSettled) durable before it sends
// what promises them (Acknowledge).
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "coordinator/core/ids.h"
#include "shared/base/time.h"
#include "shared/domain/outcome.h"

namespace layerfarm::coordinator::core {

struct GivenJob {
  JobId job;
  AttemptId attempt;
  /// After a memory kill: how much more it may claim (the machine's memory is the bound).
  std::uint8_t memory_factor = 1;
  friend bool operator==(const GivenJob&, const GivenJob&) = default;
};

/// Send a lease. Jobs are in the order in which they are to be done: what a job needs is settled or
/// earlier in the same lease. The worker answers every attempt; a job whose earlier part failed in
/// this lease it answers Cancelled.
struct GiveLease {
  WorkerId worker;
  GroupId group;  ///< of all its jobs that have one; kNoGroup when none has
  /// One job that is to be done by itself: workers died under it.
  bool alone = false;
  bool exclusive = false;  ///< nothing else runs on the host meanwhile (timing, a retry that needs
                           ///< the host's memory)
  std::vector<GivenJob> jobs;
};

struct CancelAttempts {
  WorkerId worker;
  std::vector<AttemptId> attempts;
};

/// This attempt's outcome is the job's answer (whatever its ending).
struct Answered {
  AttemptId attempt;
  domain::Ending ending = domain::Ending::Done;
  friend bool operator==(const Answered&, const Answered&) = default;
};
/// A job it needs failed; `cause` is the one that failed by itself.
struct DependencyFailed {
  JobId cause;
  friend bool operator==(const DependencyFailed&, const DependencyFailed&) = default;
};

enum class UnsettledReason : std::uint8_t {
  Infrastructure,  ///< faults that are not the case's, at too many places or too often
  NoWorker,        ///< nothing that can do it is connected
  LostBlobs,       ///< what it needs was lost again and again
};
/// No verdict; never stored.
struct Unsettled {
  UnsettledReason reason = UnsettledReason::Infrastructure;
  JobId cause;               ///< the job that came to this: itself, or one that it needs
  ClassId ability{};         ///< NoWorker: what is missing
  std::uint32_t places = 0;  ///< Infrastructure: at how many distinct places
  std::uint32_t faults = 0;  ///< Infrastructure, LostBlobs: how often
  AttemptId last{};          ///< the last attempt whose outcome tells more; 0 = none
  friend bool operator==(const Unsettled&, const Unsettled&) = default;
};
/// Workers died under it; a verdict of its own.
struct KillsWorker {
  std::uint32_t deaths = 0;
  friend bool operator==(const KillsWorker&, const KillsWorker&) = default;
};
using Settlement = std::variant<Answered, DependencyFailed, Unsettled, KillsWorker>;

/// The job has its answer. Exactly once for each job, except that a producer whose blob was lost
/// answers again (`again`).
struct JobSettled {
  JobId job;
  Settlement how;
  bool again = false;  ///< it had been settled (or known) before; now its answer is renewed
};

/// An attempt ended and the job is tried once more; its outcome may be forgotten or shown.
struct JobRetried {
  JobId job;
  AttemptId attempt;
  domain::Ending ending = domain::Ending::Crashed;  ///< Infrastructure also for a lost worker
};

/// An answer of an attempt that does not count any more: forget its outcome.
struct IgnoreLate {
  AttemptId attempt;
};

/// These answers are dealt with; once what they settled is durable the worker may forget them.
struct Acknowledge {
  WorkerId worker;
  std::vector<AttemptId> attempts;
};

enum class DropReason : std::uint8_t {
  Silent,   ///< nothing was heard from it for policy.silent_after
  Overdue,  ///< a job is far over the time that the worker itself allows
};
/// The core does not count on this registration any more; end the process if it is ours, forget the
/// peer.
struct DropWorker {
  WorkerId worker;
  DropReason reason = DropReason::Silent;
};

/// What the worker says does not fit what it was given, so a message was lost: ask it for a Hello.
/// WorkerJoined with `replaces` then says what it really holds.
struct AskHello {
  WorkerId worker;
};

/// For the log and the progress line.
struct WorkerQuarantined {
  WorkerId worker;
  std::uint32_t faults = 0;     ///< in a row
  base::Duration next_probe{};  ///< from now
};
struct WorkerReadmitted {
  WorkerId worker;
};

/// Jobs wait and nothing that is connected can do them; `jobs` of them are ready now. Said once
/// when it begins; AbilityFound when it is over.
struct AbilityMissing {
  ClassId ability;
  std::uint32_t jobs = 0;
};
struct AbilityFound {
  ClassId ability;
};

/// Every job added so far is settled or dropped (said each time that this becomes true).
struct AllSettled {};
/// After Stop: no worker has anything in hand.
struct Stopped {};

using Action = std::variant<GiveLease, CancelAttempts, JobSettled, JobRetried, IgnoreLate,
                            Acknowledge, DropWorker, AskHello, WorkerQuarantined, WorkerReadmitted,
                            AbilityMissing, AbilityFound, AllSettled, Stopped>;

}  // namespace layerfarm::coordinator::core
