#include "coordinator/plan/case_book.h"

#include <algorithm>
#include <utility>

#include "coordinator/plan/answers.h"
#include "coordinator/plan/book_check.h"
#include "coordinator/plan/book_tables.h"
#include "coordinator/plan/cases.h"
#include "coordinator/plan/experience.h"
#include "coordinator/plan/job_content.h"
#include "coordinator/plan/job_maker.h"
#include "shared/base/check.h"

namespace layerfarm::coordinator::plan {

/// Each knows only those above it.
struct CaseBook::Impl {
  explicit Impl(Known& known) : answers(known, tables, experience) {}

  BookTables tables;
  Experience experience;
  Answers answers;
  Turn turn;  // of the call that is under way
  JobMaker maker{tables, experience, turn};
  Cases cases{tables, answers, maker, turn};

  void begin_turn() {
    turn = {};
    maker.begin_turn();
  }

  [[nodiscard]] Turn end_turn() {
    answers.let_go();
    // A job may be dropped in the call that made it wanted.
    std::erase_if(turn.wanted,
                  [this](JobId job) { return tables.jobs()[job.value()].state != JobState::Open; });
    return std::exchange(turn, {});
  }
};

CaseBook::CaseBook(Known& known) : impl_(std::make_unique<Impl>(known)) {}
CaseBook::~CaseBook() = default;

// ---- what happens ----

PlannedJob CaseBook::add_analyze(const base::Digest& key, bool known) {
  return impl_->maker.make_analyze(key, known);
}

base::Result<Added> CaseBook::add(PlanRequest request) {
  Impl& book = *impl_;
  const std::size_t layers = request.model->layers.size();
  std::size_t cases = book.tables.cases();
  for (const auto& chip : request.chips) {
    if (chip->spec.executors.empty()) {
      return base::fail(base::ErrorCode::InvalidInput,
                        "the chip " + chip->spec.name + " has no executors");
    }
    cases += layers * chip->spec.executors.size();
  }
  if (cases >= kNone / 4) {
    return base::fail(
        base::ErrorCode::InvalidInput,
        std::to_string(cases) + " cases are more than one coordinator can hold; split the request");
  }
  book.begin_turn();
  Added out;
  out.first_file = FileId(book.tables.files());
  const auto chips = static_cast<std::uint32_t>(request.chips.size());
  const std::uint32_t number = book.tables.add_request(std::move(request));
  for (std::uint32_t chip = 0; chip < chips; ++chip) {
    const std::uint32_t file = book.tables.add_file(number, chip, book.turn.groups);
    book.cases.add(file);
    out.counts += book.cases.counts(file);
  }
  out.turn = book.end_turn();
  return out;
}

Turn CaseBook::on_settled(JobId id, const JobAnswer& answer) {
  Impl& book = *impl_;
  const std::uint32_t job = id.value();
  LAYERFARM_CHECK(job < book.tables.jobs().size());
  const JobRecord& record = book.tables.jobs()[job];
  if (record.state == JobState::Dropped) return {};  // too late to matter
  book.begin_turn();
  book.answers.take(job, answer);
  if (record.stage != domain::Stage::Analyze) {
    book.cases.on_job_settled(job);
    book.maker.give_back_needs(job);
  }
  return book.end_turn();
}

Turn CaseBook::cancel(FileId file) {
  Impl& book = *impl_;
  book.begin_turn();
  book.cases.cancel(file.value());
  return book.end_turn();
}

void CaseBook::set_typical_times(
    const std::array<std::optional<std::int64_t>, domain::kStageNumbers>& times) {
  impl_->experience.set_typical(times);
}

// ---- what is asked ----

std::vector<JobId> CaseBook::producers_of(JobId job, const std::vector<base::Digest>& lost) {
  return find_producers(impl_->tables, impl_->answers, job.value(), lost);
}

JobContent CaseBook::content(JobId job) const { return content_of(impl_->tables, job.value()); }

base::Digest CaseBook::key(JobId job) const { return impl_->tables.key(job.value()); }

FileCounts CaseBook::counts(FileId file) const { return impl_->cases.counts(file.value()); }

std::optional<JobId> CaseBook::waits_for(FileId file, std::uint32_t layer,
                                         std::uint32_t executor) const {
  const std::uint32_t id = impl_->tables.file(file.value()).case_of(layer, executor);
  const std::uint32_t job = impl_->cases.waits(id);
  return job == kNone ? std::nullopt : std::optional(JobId(job));
}

domain::Tolerance CaseBook::tolerance(FileId file, std::uint32_t layer,
                                      std::uint32_t executor) const {
  const std::uint32_t id = impl_->tables.file(file.value()).case_of(layer, executor);
  return impl_->tables.place_in(file.value(), id).tolerance();
}

std::size_t CaseBook::memory_bytes() const {
  return impl_->tables.memory_bytes() + impl_->cases.memory_bytes();
}

std::string CaseBook::check_invariants() const {
  return first_broken_rule(impl_->tables, impl_->cases);
}

}  // namespace layerfarm::coordinator::plan
