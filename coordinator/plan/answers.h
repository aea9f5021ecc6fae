// Answers: what is known of a piece of work, from the jobs of this book or from the store, and
// whether it counts for a request. Part of CaseBook.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "coordinator/plan/book_tables.h"
#include "coordinator/plan/experience.h"

namespace layerfarm::coordinator::plan {

using OutcomePtr = std::shared_ptr<const domain::Outcome>;

/// What is known of a piece of work.
struct Knowledge {
  enum class Kind : std::uint8_t {
    Nothing,
    Open,
    Done,
    Failed,
    Blocked,
    Stuck
  } kind = Kind::Nothing;
  std::uint32_t job = kNone;  // when the book has one that counts
  OutcomePtr outcome;         // Done, Failed
  bool stored = false;        // from before this run
};

/// A failure that no tool reported.
[[nodiscard]] OutcomePtr made_failure(domain::Stage stage, std::string where, std::string cause,
                                      std::string text);

class Answers {
 public:
  Answers(Known& known, BookTables& tables, Experience& experience)
      : known_(known), tables_(tables), experience_(experience) {}

  /// Puts the answer into the job's record and keeps what the store will not have.
  void take(std::uint32_t job, const JobAnswer& answer);
  /// The end of the call that `take` was for: from here on the store is asked.
  void let_go();

  [[nodiscard]] Knowledge ask(const Place& at, domain::Stage stage);
  /// The same of a stage that this chip may not need: then nothing is known.
  [[nodiscard]] Knowledge ask_if_needed(const Place& at, domain::Stage stage);
  [[nodiscard]] Knowledge ask_recompare(const Place& at, std::uint32_t execute_job,
                                        const domain::Tolerance& wanted);
  /// Whether what became of this job counts for a case of `request`.
  [[nodiscard]] bool counts_for(std::uint32_t job, const BookRequest& request) const;
  /// Null when it is gone.
  [[nodiscard]] OutcomePtr outcome_of(std::uint32_t job) const;
  /// Why a stuck job has no verdict, for people.
  [[nodiscard]] std::string stuck_reason(std::uint32_t job) const;

 private:
  [[nodiscard]] Knowledge of_job(std::uint32_t job) const;
  [[nodiscard]] Knowledge of_store(const base::Digest& wanted, domain::Stage stage, Group group);

  Known& known_;
  BookTables& tables_;
  Experience& experience_;
  std::map<std::uint32_t, OutcomePtr> failures_;  // of jobs whose outcome answers no later run
  std::map<std::uint32_t, std::string> stuck_reasons_;
  // Between take and let_go.
  std::uint32_t last_job_ = kNone;
  OutcomePtr last_outcome_;
};

}  // namespace layerfarm::coordinator::plan
