// InMemoryStore: the Store contract without a disk. Nothing is durable until the test says so.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "coordinator/store/store.h"
#include "shared/base/mailbox.h"

namespace layerfarm::test {

class InMemoryStore final : public coordinator::store::Store {
 public:
  /// Facts become durable by themselves (true), or when `commit` is called.
  explicit InMemoryStore(bool commit_at_once = true) : commit_at_once_(commit_at_once) {}

  /// Makes everything appended so far durable.
  void commit();
  /// From now on commits fail with this; empty = they work again.
  void set_trouble(std::optional<base::Error> trouble) { trouble_ = std::move(trouble); }

  base::Result<coordinator::store::RunId> begin_run(
      const coordinator::store::RunStart& start) override;
  coordinator::store::Ticket append(std::vector<coordinator::store::Fact> facts) override;
  int fd() const override { return news_.fd(); }
  coordinator::store::News take_news() override;
  void refresh() override {}
  std::optional<coordinator::store::StoredOutcome> find(const base::Digest& key) override;
  std::vector<coordinator::store::StoredOutcome> outcomes_of(coordinator::store::RunId run,
                                                             Which which) override;
  std::vector<coordinator::store::RunRecord> runs(bool only_open) override;
  coordinator::store::TypicalTimes typical_times() override;

 private:
  const bool commit_at_once_;
  std::optional<base::Error> trouble_;
  std::uint64_t last_ticket_ = 0;
  std::vector<coordinator::store::Fact> waiting_;
  base::Mailbox<coordinator::store::News> news_;
  std::vector<coordinator::store::StoredOutcome> log_;
  std::map<base::Digest, std::size_t> latest_;  // into log_
  std::vector<coordinator::store::RunRecord> runs_;
};

}  // namespace layerfarm::test
