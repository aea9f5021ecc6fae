#include "coordinator/app/known_outcomes.h"

#include <utility>

namespace layerfarm::coordinator::app {

namespace {
constexpr std::size_t kMostRecent = 4096;
}  // namespace

std::shared_ptr<const domain::Outcome> KnownOutcomes::find(const base::Digest& key) {
  if (const auto it = recent_.find(key); it != recent_.end()) return it->second;
  auto stored = store_.find(key);
  if (!stored) {
    const auto it = of_run_.find(key);
    return it == of_run_.end() ? nullptr : it->second;
  }
  auto outcome = std::make_shared<const domain::Outcome>(std::move(stored->outcome));
  if (outcome->prepared || outcome->artifact) {
    if (recent_.size() >= kMostRecent) recent_.clear();
    recent_.emplace(key, outcome);
  }
  return outcome;
}

void KnownOutcomes::include_all_of(store::RunId run) {
  for (store::StoredOutcome& stored : store_.outcomes_of(run, store::Store::Which::NotAnswering)) {
    of_run_.insert_or_assign(stored.key,
                             std::make_shared<const domain::Outcome>(std::move(stored.outcome)));
  }
}

}  // namespace layerfarm::coordinator::app
