// JobThread: the worker's second thread. It goes through one lease at a time with plain blocking
// code, so that adapters are ordinary functions and the loop's heartbeats never wait for a
// comparison or a tool. Values cross by mailboxes only.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "shared/base/mailbox.h"
#include "shared/base/time.h"
#include "shared/protocol/messages.h"
#include "worker/core/worker_core.h"
#include "worker/process/process_runner.h"

namespace layerfarm::worker::app {

/// Beginnings and ends that follow one another faster than this reach the loop together. Each wake
/// costs as much as a tenth of a tool that takes a millisecond. A worker that dies meanwhile seems
/// to have died under the job before; that one is tried again like after any death, and alone
/// before it is blamed.
inline constexpr base::Duration kGatherNews = std::chrono::milliseconds(5);

/// What the code that works on a lease may say and ask. Job thread only.
class LeaseControl {
 public:
  LeaseControl(base::Mailbox<core::Event>& out,
               base::Mailbox<std::vector<protocol::AttemptId>>& cancels,
               process::CancelToken& token, const std::atomic<bool>& leaving)
      : out_(out), cancels_(cancels), token_(token), leaving_(leaving) {}

  /// Nothing of the lease could begin for a while; `what` reads after "waits for".
  void waits(std::string what);
  /// These begin now (together, for a batch). Returns those that were not cancelled before; the
  /// others are answered here.
  [[nodiscard]] std::vector<protocol::LeasedJob> begin(
      const std::vector<protocol::LeasedJob>& jobs);
  void end(std::vector<protocol::AttemptOutcome> outcomes);
  void end(const protocol::LeasedJob& job, domain::Outcome outcome);
  [[nodiscard]] bool cancelled(const protocol::LeasedJob& job);
  [[nodiscard]] const process::CancelToken& token() const { return token_; }

 private:
  void drain();
  base::Mailbox<core::Event>& out_;
  base::Mailbox<std::vector<protocol::AttemptId>>& cancels_;
  process::CancelToken& token_;
  const std::atomic<bool>& leaving_;
  std::set<protocol::AttemptId> cancelled_;
  base::MonotonicClock clock_;
  std::optional<base::Time> woken_;  ///< when the loop was last woken from here
};

/// Works through a lease and answers each of its jobs once through the control.
using LeaseFunction = std::function<void(const protocol::Lease&, LeaseControl&)>;

class JobThread {
 public:
  /// Events for the worker core arrive in `out`; whoever took some looks there again after
  /// kGatherNews, as what came meanwhile may not wake it. `work` runs on the new thread only; what
  /// it waits for watches `token`.
  JobThread(base::Mailbox<core::Event>& out, process::CancelToken& token, LeaseFunction work);
  /// Ends what runs, answers the rest of the lease Cancelled, and joins.
  ~JobThread();
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;

  void begin(std::shared_ptr<const protocol::Lease> lease);
  void cancel(std::vector<protocol::AttemptId> attempts, bool end_running);

 private:
  void loop();
  base::Mailbox<core::Event>& out_;
  LeaseFunction work_;
  base::Mailbox<std::shared_ptr<const protocol::Lease>> in_;  ///< a null lease ends the thread
  base::Mailbox<std::vector<protocol::AttemptId>> cancels_;
  process::CancelToken& token_;
  std::atomic<bool> leaving_{false};  ///< set once, by the destructor
  std::thread thread_;
};

}  // namespace layerfarm::worker::app
