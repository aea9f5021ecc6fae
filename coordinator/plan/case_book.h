// CaseBook: which jobs follow from models, chips and options, which cases hang on which job, and
// what each case comes to. Pure: what happened goes in, jobs to schedule and cases that are settled
// come out; the same calls give the same answers, and the set of settled cases does not depend on
// the order in which jobs are settled. Owned by the coordinator's loop thread (docs/planning.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "coordinator/plan/case_settled.h"
#include "coordinator/plan/plan_request.h"
#include "shared/base/digest.h"
#include "shared/base/result.h"
#include "shared/domain/outcome.h"

namespace layerfarm::coordinator::plan {

/// What is known already: the store, as planning sees it. Must find every Done and Refused outcome
/// that was handed to CaseBook::on_settled (which the caller does when it is durable).
class Known {
 public:
  virtual ~Known() = default;
  /// Null when nothing answers this key.
  [[nodiscard]] virtual std::shared_ptr<const domain::Outcome> find(const base::Digest& key) = 0;
};

/// (chip, executor), as far as jobs are concerned; 0 = none. Equal work on two chip files of one
/// description is one group.
using Group = std::uint16_t;

struct PlannedGroup {
  Group group = 0;
  std::shared_ptr<const PlanChip> chip;
  std::uint32_t executor = 0;  ///< place in the chip
};

/// What the scheduler must know of a job (core::JobSpec is made of it).
struct PlannedJob {
  JobId id;  ///< dense, in the order in which jobs are handed out
  domain::Stage stage = domain::Stage::Execute;
  Group group = 0;  ///< 0 for analyze and prepare
  std::array<std::optional<JobId>, 2> needs;
  bool known = false;         ///< answered Done in the store: runs only when a blob of it was lost
  bool speculative = false;   ///< only for an idle worker, until it is wanted
  bool exclusive = false;     ///< nothing else on its machine meanwhile
  std::uint32_t cost_us = 0;  ///< estimate from earlier outcomes; 0 = no experience
};

/// How a job ended. A worker killed by the job is an outcome like any other (Ending::Crashed, its
/// cause says so).
struct Answered {
  std::shared_ptr<const domain::Outcome> outcome;
};
struct DependencyFailed {};
struct NotSettled {
  std::string reason;  ///< for people
};
using JobAnswer = std::variant<Answered, DependencyFailed, NotSettled>;

/// What follows from one call, to be carried out in this order: groups and jobs are new, then
/// orders about jobs, then cases.
struct Turn {
  std::vector<PlannedGroup> groups;
  std::vector<PlannedJob> jobs;
  std::vector<JobId> wanted;   ///< were speculative
  std::vector<JobId> dropped;  ///< nobody wants them any more
  std::vector<CaseSettled> settled;
};

struct FileCounts {
  std::uint64_t cases = 0;  ///< selected: tested, copied and skipped ones
  std::uint64_t settled = 0;
  std::uint64_t layers = 0;  ///< selected

  FileCounts& operator+=(const FileCounts& other) {
    cases += other.cases;
    settled += other.settled;
    layers += other.layers;
    return *this;
  }
};

struct Added {
  FileId first_file;  ///< one for each chip of the request, in its order
  FileCounts counts;  ///< of all of them
  Turn turn;
};

/// All that a lease says of a job.
struct JobContent {
  domain::Stage stage = domain::Stage::Execute;
  // All but analyze:
  std::shared_ptr<const domain::ModelAnalysis> model;
  std::uint32_t layer = 0;
  domain::InputSet inputs;
  // All but analyze and prepare:
  std::shared_ptr<const PlanChip> chip;
  std::uint32_t executor = 0;
  domain::Tolerance tolerance;
  int runs = 0;                  ///< time
  std::optional<JobId> analyze;  ///< made the layer's module (PlanRequest::analyze)
  // What it builds on; absent when it needs none.
  std::optional<JobId> prepare;
  std::optional<JobId> compile;
  std::optional<JobId> execute;  ///< recompare
  base::Digest prepare_key;
  base::Digest compile_key;
  base::Digest execute_key;
};

class CaseBook {
 public:
  explicit CaseBook(Known& known);
  ~CaseBook();
  CaseBook(const CaseBook&) = delete;
  CaseBook& operator=(const CaseBook&) = delete;

  /// A job that reads a model, so that its number is one of the book's and lost layer modules have
  /// a producer. Its settlement is the caller's business (decode the analysis, `add` it). `known`:
  /// the store has its answer.
  [[nodiscard]] PlannedJob add_analyze(const base::Digest& key, bool known);
  /// Cases of one model. May be called at any time; equal work that is under way, or known, is not
  /// planned again. InvalidInput when there are more cases than can be counted.
  [[nodiscard]] base::Result<Added> add(PlanRequest request);
  /// A job has its answer, or (after a loss) a new one.
  [[nodiscard]] Turn on_settled(JobId job, const JobAnswer& answer);
  /// Who made these blobs that a job missed: its producers run again. Blobs that nobody known made
  /// are left out.
  [[nodiscard]] std::vector<JobId> producers_of(JobId job, const std::vector<base::Digest>& lost);
  /// Nobody waits for these reports any more (a cancelled run): their open cases are not settled,
  /// their jobs dropped.
  [[nodiscard]] Turn cancel(FileId file);

  [[nodiscard]] JobContent content(JobId job) const;
  /// The outcome is stored under it. Not part of the content: workers do not read it, and it takes
  /// two hashes.
  [[nodiscard]] base::Digest key(JobId job) const;
  [[nodiscard]] FileCounts counts(FileId file) const;
  /// The job that an open case waits for (`explain`); none when it waits for another case, or is
  /// settled.
  [[nodiscard]] std::optional<JobId> waits_for(FileId file, std::uint32_t layer,
                                               std::uint32_t executor) const;
  [[nodiscard]] domain::Tolerance tolerance(FileId file, std::uint32_t layer,
                                            std::uint32_t executor) const;

  /// Mean times of each stage (by number) for estimates, where the book has seen none itself.
  void set_typical_times(
      const std::array<std::optional<std::int64_t>, domain::kStageNumbers>& times);

  /// Bytes held for cases and jobs, models and results apart.
  [[nodiscard]] std::size_t memory_bytes() const;
  /// For tests: the first broken rule in words, empty when all hold.
  [[nodiscard]] std::string check_invariants() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace layerfarm::coordinator::plan
