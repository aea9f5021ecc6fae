#include "tests/support/coordinator/in_memory_store.h"

#include <utility>

namespace layerfarm::test {
namespace cs = coordinator::store;

base::Result<cs::RunId> InMemoryStore::begin_run(const cs::RunStart& start) {
  if (trouble_) return base::fail(*trouble_);
  cs::RunRecord run;
  run.id = cs::RunId(static_cast<std::uint32_t>(runs_.size() + 1));
  run.start = start;
  runs_.push_back(run);
  return run.id;
}

cs::Ticket InMemoryStore::append(std::vector<cs::Fact> facts) {
  for (cs::Fact& fact : facts) waiting_.push_back(std::move(fact));
  ++last_ticket_;
  if (commit_at_once_) commit();
  return cs::Ticket(last_ticket_);
}

void InMemoryStore::commit() {
  cs::News news;
  if (trouble_) {
    news.trouble = trouble_;
    news_.put(std::move(news));
    return;
  }
  for (cs::Fact& fact : std::exchange(waiting_, {})) {
    if (const auto* outcome = std::get_if<cs::OutcomeFact>(&fact)) {
      if (domain::answers_later_runs(outcome->outcome->ending)) latest_[outcome->key] = log_.size();
      log_.push_back(
          {cs::Sequence(log_.size() + 1), outcome->run, outcome->key, *outcome->outcome});
    } else if (auto* file = std::get_if<cs::RunFileFact>(&fact)) {
      runs_.at(file->run.value() - 1).files.push_back(std::move(file->file));
    } else if (const auto* ended = std::get_if<cs::RunEndedFact>(&fact)) {
      runs_.at(ended->run.value() - 1).ended = true;
      runs_.at(ended->run.value() - 1).exit_code = ended->exit_code;
    }
  }
  news.durable = cs::Ticket(last_ticket_);
  news_.put(std::move(news));
}

cs::News InMemoryStore::take_news() {
  cs::News out;
  for (cs::News& news : news_.take()) {
    out.trouble = std::move(news.trouble);
    if (news.durable.value() != 0) out.durable = news.durable;
  }
  return out;
}

std::optional<cs::StoredOutcome> InMemoryStore::find(const base::Digest& key) {
  const auto at = latest_.find(key);
  if (at == latest_.end()) return std::nullopt;
  return log_[at->second];
}

std::vector<cs::StoredOutcome> InMemoryStore::outcomes_of(cs::RunId run, Which which) {
  std::vector<cs::StoredOutcome> out;
  for (const cs::StoredOutcome& row : log_) {
    if (row.run != run) continue;
    if (which == Which::NotAnswering && domain::answers_later_runs(row.outcome.ending)) continue;
    out.push_back(row);
  }
  return out;
}

std::vector<cs::RunRecord> InMemoryStore::runs(bool only_open) {
  std::vector<cs::RunRecord> out;
  for (const cs::RunRecord& run : runs_) {
    if (!only_open || !run.ended) out.push_back(run);
  }
  return out;
}

cs::TypicalTimes InMemoryStore::typical_times() {
  std::array<std::int64_t, domain::kStageNumbers> sum{};
  std::array<std::int64_t, domain::kStageNumbers> count{};
  for (const cs::StoredOutcome& row : log_) {
    if (row.outcome.ending != domain::Ending::Done) continue;
    sum[static_cast<std::size_t>(row.outcome.stage)] += row.outcome.took_us;
    ++count[static_cast<std::size_t>(row.outcome.stage)];
  }
  cs::TypicalTimes out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (count[i] > 0) out[i] = sum[i] / count[i];
  }
  return out;
}

}  // namespace layerfarm::test
