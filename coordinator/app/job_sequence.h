// JobSequence: jobs of a command that come one after the other, each building on what the one
// before gave. Loop thread only.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "coordinator/app/console.h"
#include "coordinator/app/dispatcher.h"
#include "coordinator/plan/plan_request.h"
#include "shared/domain/tolerance.h"

namespace layerfarm::coordinator::app {

/// One job: an analyze job, or with a chip a whole job.
struct SequencedJob {
  base::Digest key;
  std::optional<domain::AnalyzeRequest> analyze;
  std::optional<domain::WholeRequest> whole;
  std::shared_ptr<const plan::PlanChip> chip;
  domain::InputSet inputs;
  domain::Tolerance tolerance;
};

/// How a job ended.
struct SequencedEnd {
  std::shared_ptr<const domain::Outcome> outcome;  ///< null: there is none
  std::string reason;                              ///< then why
  bool interrupted = false;
};

class JobSequence final : public JobSource {
 public:
  explicit JobSequence(Console& console) : console_(console) {}

  /// Runs the job and waits for its end. `dispatcher` has this as its source; its first chip is the
  /// job's.
  SequencedEnd run(Dispatcher& dispatcher, SequencedJob job);
  /// Takes a job's answer from the store: it runs again only when a later one misses a blob of it.
  void add_known(Dispatcher& dispatcher, SequencedJob job);

  // JobSource
  [[nodiscard]] JobContent content(core::JobId job) const override;
  [[nodiscard]] base::Digest key(core::JobId job) const override;
  [[nodiscard]] std::vector<core::JobId> producers_of(
      core::JobId job, const std::vector<base::Digest>& lost) override;
  void on_settled(const core::JobSettled& settled,
                  const std::shared_ptr<const domain::Outcome>& outcome) override;
  void on_note(const std::string& text, bool verbose) override;
  void on_activity(const std::string& worker, const std::string& what) override;
  void on_interrupt() override;

 private:
  core::JobId add(Dispatcher& dispatcher, SequencedJob job, bool known);

  Console& console_;
  Dispatcher* dispatcher_ = nullptr;
  std::deque<SequencedJob> jobs_;  ///< by id; requests stay where they are
  std::optional<core::JobId> awaited_;
  std::optional<SequencedEnd> end_;
  std::string activity_;
  bool interrupted_ = false;
};

}  // namespace layerfarm::coordinator::app
