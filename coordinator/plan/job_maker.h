// JobMaker: makes jobs and counts who wants them; one that nobody wants any more is dropped with
// what only it needed. Part of CaseBook.
#pragma once

#include <cstdint>

#include "coordinator/plan/answers.h"

namespace layerfarm::coordinator::plan {

struct NewJob {
  bool known = false;
  bool speculative = false;
  std::uint32_t needs[2] = {kNone, kNone};
};

class JobMaker {
 public:
  /// Jobs and orders about them go to `turn`.
  JobMaker(BookTables& tables, const Experience& experience, Turn& turn)
      : tables_(tables), jobs_(tables.jobs()), experience_(experience), turn_(turn) {}

  /// The turn is empty: jobs made from here on are new in it.
  void begin_turn() { first_new_ = jobs_.size(); }

  [[nodiscard]] PlannedJob make_analyze(const base::Digest& key, bool known);
  std::uint32_t make(const Place& at, domain::Stage stage, const NewJob& how);
  /// The job behind `what`, made if the book has none.
  std::uint32_t job_for(const Place& at, domain::Stage stage, const Knowledge& what,
                        bool speculative);
  /// Jobs that one needs which runs the case; kNone for what its chip does not need.
  struct Needed {
    std::uint32_t prepare = kNone;
    std::uint32_t compile = kNone;
  };
  Needed needed_for(const Place& at, const Knowledge& prepare, const Knowledge& compile,
                    bool speculative);

  /// Wanted for certain, with all that it needs.
  void make_firm(std::uint32_t job);
  /// One that wanted the job does not any more.
  void give_up(std::uint32_t job);
  /// It is over: it wants no others any more.
  void give_back_needs(std::uint32_t job);

 private:
  [[nodiscard]] bool any_open(const std::uint32_t (&needs)[2]) const;

  BookTables& tables_;
  JobTable& jobs_;
  const Experience& experience_;
  Turn& turn_;
  std::uint32_t first_new_ = 0;
};

}  // namespace layerfarm::coordinator::plan
