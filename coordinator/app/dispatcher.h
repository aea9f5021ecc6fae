// Dispatcher: the coordinator's loop. Couples the pure core with workers (hub), what is kept
// (store), processes of our own (local workers) and signals. Nothing is acknowledged or shown
// before it is durable. Loop thread only.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "coordinator/app/local_workers.h"
#include "coordinator/app/worker_hub.h"
#include "coordinator/core/core.h"
#include "coordinator/plan/case_book.h"
#include "coordinator/store/store.h"
#include "shared/base/time.h"
#include "shared/domain/analyze_request.h"
#include "shared/domain/chip.h"
#include "shared/domain/layer.h"
#include "shared/domain/whole_request.h"

namespace layerfarm::coordinator::app {

/// What a lease says of a job: the plan's words, and for analyze and whole jobs what is asked.
struct JobContent {
  plan::JobContent job;
  const domain::AnalyzeRequest* analyze = nullptr;
  const domain::WholeRequest* whole = nullptr;
};

/// Who knows the jobs: the run.
class JobSource {
 public:
  virtual ~JobSource() = default;
  [[nodiscard]] virtual JobContent content(core::JobId job) const = 0;
  /// Key under which the job's outcome is stored.
  [[nodiscard]] virtual base::Digest key(core::JobId job) const = 0;
  /// The jobs that made what this job found missing.
  [[nodiscard]] virtual std::vector<core::JobId> producers_of(
      core::JobId job, const std::vector<base::Digest>& lost) = 0;
  /// A job's answer, durable by now. `outcome` is null unless an attempt answered.
  virtual void on_settled(const core::JobSettled& settled,
                          const std::shared_ptr<const domain::Outcome>& outcome) = 0;
  /// Something people may want to know (a retry, a lost worker, a quarantine). `verbose`: only
  /// those who asked for it.
  virtual void on_note(const std::string& text, bool verbose) = 0;
  /// A worker works on something else now.
  virtual void on_activity(const std::string& worker, const std::string& what) = 0;
  /// SIGINT or SIGTERM.
  virtual void on_interrupt() = 0;
};

/// SIGINT, SIGTERM and SIGHUP are read by the dispatcher. Call before any thread exists: a thread
/// that does not block them would get them.
void block_stop_signals();

class Dispatcher {
 public:
  struct Settings {
    core::CorePolicy policy;
    std::uint64_t epoch = 1;
    store::RunId run;
    domain::Limits limits;                ///< the user's
    std::vector<domain::ChipSpec> chips;  ///< class n + 1 is the ability for chip n; class 0 reads
                                          ///< models and makes references
  };
  /// `local` may be null when nothing is started here.
  Dispatcher(Settings settings, WorkerHub& hub, store::Store& store, LocalWorkers* local,
             JobSource& source);
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  static constexpr core::ClassId kReader{0};
  [[nodiscard]] static core::ClassId class_of_chip(std::size_t chip) {
    return core::ClassId(static_cast<std::uint16_t>(chip + 1));
  }

  /// Feeds the core; its actions are carried out at once.
  void tell(core::Event event);
  /// Starts local workers as long as fewer run than there are slots and there is work for them.
  void start_workers();
  /// Waits at most so long, then takes in everything that arrived.
  void turn(std::chrono::milliseconds longest);
  /// Whether all that was added is settled and everything that was settled has been handed to the
  /// source.
  [[nodiscard]] bool idle() const;
  /// What the last attempt said that failed for a reason that is not the job's; empty when none
  /// did.
  [[nodiscard]] std::string trouble_of(core::JobId job) const;
  [[nodiscard]] core::Counts counts() const { return core_.counts(); }
  [[nodiscard]] const core::Core& core() const { return core_; }
  /// Outcome of a settled job: of this run, or from the store.
  [[nodiscard]] std::shared_ptr<const domain::Outcome> result(core::JobId job);
  /// Tells the workers to stop and ends what does not.
  void shut_down();
  /// A worker program that cannot even start: the reason; the run cannot go on.
  [[nodiscard]] const std::string& fatal() const { return fatal_; }
  [[nodiscard]] base::Time now() const { return clock_.now(); }

 private:
  struct Worker;
  struct Group;  ///< what waits for one ticket
  void carry_out(const core::GiveLease& action);
  void carry_out(const core::CancelAttempts& action);
  void carry_out(const core::JobSettled& action);
  void carry_out(const core::JobRetried& action);
  void carry_out(const core::IgnoreLate& action);
  void carry_out(const core::Acknowledge& action);
  void carry_out(const core::DropWorker& action);
  void carry_out(const core::AskHello& action);
  void carry_out(const core::WorkerQuarantined& action);
  void carry_out(const core::WorkerReadmitted& action);
  void carry_out(const core::AbilityMissing& action);
  void carry_out(const core::AbilityFound& action);
  void carry_out(const core::AllSettled& action);
  void carry_out(const core::Stopped& action);

  void on(Joined& joined);
  void on(Said& said);
  void on_outcomes(core::WorkerId worker, protocol::Outcomes& outcomes);
  void note_trouble(core::WorkerId worker, const protocol::AttemptOutcome& item);
  void reap_local();
  void commit();
  void release();
  [[nodiscard]] protocol::Lease build_lease(const core::GiveLease& action);
  void lose(core::WorkerId worker, core::Departure how);

  Settings settings_;
  WorkerHub& hub_;
  store::Store& store_;
  LocalWorkers* local_;
  JobSource& source_;
  base::MonotonicClock clock_;
  core::Core core_;
  std::map<core::WorkerId, Worker> workers_;
  std::map<std::string, core::HostId> hosts_;
  std::unordered_map<core::AttemptId, std::shared_ptr<const domain::Outcome>>
      received_;                                               ///< not judged by the core yet
  std::unordered_map<core::AttemptId, core::JobId> attempts_;  ///< leased and not answered
  std::unordered_map<core::JobId, std::shared_ptr<const domain::Outcome>>
      results_;  ///< of prepare, compile and execute jobs that others build on
  std::unordered_map<core::JobId, std::string>
      troubles_;  ///< of jobs whose attempt ended as Infrastructure
  std::set<std::string> troubles_said_;
  std::set<std::pair<std::string, std::string>> waits_said_;  ///< worker, what it waits for
  std::unique_ptr<Group> open_;                               ///< collects this turn's promises
  std::deque<Group> waiting_;  ///< handed to the store, not durable yet
  std::vector<unsigned>
      quick_deaths_;  ///< per slot: workers that died before they joined, in a row
  std::vector<base::Time> restart_at_;  ///< per slot
  int signals_ = -1;
  bool stopping_ = false;
  bool store_in_trouble_ = false;
  std::string fatal_;
};

}  // namespace layerfarm::coordinator::app
