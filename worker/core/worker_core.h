// WorkerCore: what does this worker do next? Pure: events in, actions out; no I/O, clock, thread or
// randomness. worker/app's loop thread owns one, feeds it what arrives from the coordinator and
// from the job thread, and carries out its actions.
//
// Rules: leases are worked through in order of arrival, one in hand; every attempt that a
// coordinator leased is answered once; answers are kept and sent again until they are acknowledged
// as durable; after a reconnect Hello lists what is still held.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "shared/base/time.h"
#include "shared/protocol/messages.h"

namespace layerfarm::worker::core {

// ---- events ----

/// A decoded message of the coordinator, with the epoch of its header.
struct MessageArrived {
  protocol::FromCoordinator message;
  std::uint64_t epoch = 0;
};
/// The job thread began these jobs of the lease in hand (several at once for a batch).
struct JobsBegan {
  std::vector<protocol::AttemptId> attempts;
};
/// The job thread has waited for a while with the lease in hand and goes on waiting; `what` reads
/// after "waits for".
struct Waits {
  std::string what;
};
/// The job thread is done with these.
struct JobsEnded {
  std::vector<protocol::AttemptOutcome> outcomes;
};
/// The job thread has gone through the whole lease and wants the next one.
struct LeaseEnded {};
/// SIGTERM or the end of the parent: finish (`now`: at once) and leave.
struct LeaveRequested {
  bool now = false;
};
/// Time passes; also sent once at the start.
struct Tick {};
using Event =
    std::variant<MessageArrived, Waits, JobsBegan, JobsEnded, LeaseEnded, LeaveRequested, Tick>;

// ---- actions ----

struct Send {
  protocol::FromWorker message;
};
/// Give this lease to the job thread, which is idle.
struct BeginLease {
  std::shared_ptr<const protocol::Lease> lease;
};
/// The job thread shall answer these Cancelled without beginning them. `end_running`: all that runs
/// right now is among them, so end it; a batch of which others are still wanted goes on.
struct CancelJobs {
  std::vector<protocol::AttemptId> attempts;
  bool end_running = false;
};
/// Leave the process; `reason` is worth a line when it is not empty.
struct Quit {
  int exit_code = 0;
  std::string reason;
};
using Action = std::variant<Send, BeginLease, CancelJobs, Quit>;

struct Policy {
  base::Duration hello_every{std::chrono::seconds(2)};  ///< until a coordinator answers
  base::Duration leave_patience{
      std::chrono::seconds(3)};  ///< how long answers wait for their acknowledgement when leaving
};

class WorkerCore {
 public:
  /// `self` is what Hello says of this worker; its `running` is filled in here.
  WorkerCore(protocol::Hello self, Policy policy) : self_(std::move(self)), policy_(policy) {}

  [[nodiscard]] std::vector<Action> step(Event event, base::Time now);
  /// When a Tick is due at the latest.
  [[nodiscard]] base::Time next_deadline() const;
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] bool registered() const { return registered_; }
  /// Attempts leased and not yet acknowledged.
  [[nodiscard]] std::size_t held() const { return pending_.size() + unacknowledged_.size(); }
  /// Empty when all is well, else what is broken. For tests.
  [[nodiscard]] std::string check_invariants() const;

 private:
  void on(MessageArrived& event);
  void on(Waits& event);
  void on(JobsBegan& event);
  void on(JobsEnded& event);
  void on(LeaseEnded& event);
  void on(LeaveRequested& event);
  void on(Tick& event);
  void on(protocol::Welcome& welcome);
  void on(protocol::Reject& reject);
  void on(protocol::HelloAgain& again);
  void on(protocol::Lease& lease);
  void on(protocol::OutcomesKept& kept);
  void on(protocol::Cancel& cancel);
  void on(protocol::Stop& stop);
  void begin_next();
  void answer(std::vector<protocol::AttemptOutcome> outcomes);
  void cancel_in_hand(std::vector<protocol::AttemptId> attempts);
  void say_hello();
  void heartbeat();
  void leave_when_done();

  protocol::Hello self_;
  Policy policy_;
  base::Time now_{0};
  std::vector<Action> actions_;

  bool registered_ = false;
  std::uint64_t epoch_ = 0;
  base::Duration heartbeat_every_{std::chrono::seconds(2)};
  base::Time next_hello_{0};
  base::Time next_heartbeat_{0};

  enum class Phase : std::uint8_t { Queued, InHand, Running };
  std::map<protocol::AttemptId, Phase> pending_;  ///< leased, not answered
  std::deque<std::shared_ptr<protocol::Lease>> queue_;
  std::shared_ptr<const protocol::Lease> in_hand_;
  std::map<protocol::AttemptId, domain::Outcome> unacknowledged_;
  std::set<protocol::AttemptId> cancelling_;  ///< in hand and asked to be cancelled
  std::vector<protocol::AttemptId> running_;  ///< begun and not ended, as begun together
  base::Time running_since_{0};
  std::string waits_for_;  ///< empty: works, or has waited for a moment only
  base::Time waits_since_{0};
  bool leaving_ = false;
  bool quit_ = false;
  base::Time leave_by_{0};
};

}  // namespace layerfarm::worker::core
