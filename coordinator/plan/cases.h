// Cases: how far each case of a CaseBook is, and what takes it on. Part of CaseBook, which tells it
// what is new; jobs and settled cases go to the turn. One class, because a case that ends may end
// or wake others (skip mode, copies); its functions by topic:
//   case_start.cpp     a new file's cases: what is decided without a job, and the first step
//   case_steps.cpp     one case and its jobs: waiting, judging, timing
//   case_verdicts.cpp  a verdict that is there: skip mode, settling, copies
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "coordinator/plan/answers.h"
#include "coordinator/plan/job_maker.h"

namespace layerfarm::coordinator::plan {

enum class CaseState : std::uint8_t {
  NotSelected,
  Idle,          ///< selected, nothing asked yet
  Waiting,       ///< for a job that decides its verdict
  WaitingEarly,  ///< the same, on an idle worker only: a higher executor is not decided
  Held,          ///< has its verdict, shown only when the higher executors have theirs
  Timing,        ///< has its verdict, waits for its times
  TimingSuccess,
  WaitingForSource,  ///< will be what the case that it copies becomes
  // Settled:
  Tested,  ///< no success
  Works,
  Skipped,
  Unsettled,
};

constexpr bool is_settled(CaseState state) { return state >= CaseState::Tested; }

class Cases {
 public:
  Cases(BookTables& tables, Answers& answers, JobMaker& maker, Turn& turn)
      : tables_(tables), jobs_(tables.jobs()), answers_(answers), maker_(maker), turn_(turn) {}

  /// The next file of the tables: opens its cases.
  void add(std::uint32_t file_number);
  /// A job's answer was taken: the cases that wait for it go on.
  void on_job_settled(std::uint32_t job);
  /// The file's open cases are not wanted any more.
  void cancel(std::uint32_t file_number);

  [[nodiscard]] CaseState state(std::uint32_t id) const { return state_[id]; }
  /// The job that the case waits for, or kNone.
  [[nodiscard]] std::uint32_t waits(std::uint32_t id) const { return waits_[id]; }
  [[nodiscard]] bool holds_verdict(std::uint32_t id) const { return held_.contains(id); }
  [[nodiscard]] const FileCounts& counts(std::uint32_t file_number) const {
    return counts_[file_number];
  }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  // case_start.cpp
  void open_layer(std::uint32_t file_number, std::uint32_t layer);
  void start_layer(std::uint32_t file_number, std::uint32_t layer);
  [[nodiscard]] CaseSettled skipped_source(const Place& source) const;

  // case_steps.cpp
  void wait_for(const Place& at, std::uint32_t job, CaseState as);
  void stop_waiting(std::uint32_t id);
  void step(const Place& at);
  void judge(const Place& at, const Knowledge& execute);
  [[nodiscard]] bool judge_by(const Knowledge& what, const Place& at, CaseSettled& out) const;
  std::uint32_t make_recompare(const Place& at, const Knowledge& execute,
                               const domain::Tolerance& wanted);
  void release(const Place& at, CaseSettled out);
  void on_timed(const Place& at, std::uint32_t job);
  [[nodiscard]] CaseSettled settled(const Place& at, How how) const;
  [[nodiscard]] CaseSettled failed(const Place& at, const Knowledge& what) const;
  [[nodiscard]] CaseSettled stuck(const Place& at, std::uint32_t job) const;

  // case_verdicts.cpp
  void verdict(const Place& at, CaseSettled out);
  void resolve_layer(const Place& any);
  void skip_below(const Place& any, std::uint32_t executor);
  void skip(const Place& at, SkipReason reason, std::uint32_t executor = 0);
  void settle(const Place& at, CaseSettled out);
  void copy(const Place& at, const CaseSettled& from);

  BookTables& tables_;
  JobTable& jobs_;
  Answers& answers_;
  JobMaker& maker_;
  Turn& turn_;

  // By case.
  std::vector<CaseState> state_;
  std::vector<std::uint32_t> waits_;  // the job, or kNone
  std::vector<std::uint32_t> link_;   // next case that waits for the same job

  std::unordered_map<std::uint32_t, CaseSettled> held_;  // verdicts of cases in Held and Timing
  std::vector<FileCounts> counts_;                       // by file
};

}  // namespace layerfarm::coordinator::plan
