// KnownOutcomes: what the store knows, as planning and reporting ask for it. Loop thread only.
#pragma once

#include <memory>
#include <unordered_map>

#include "coordinator/plan/case_book.h"
#include "coordinator/store/store.h"

namespace layerfarm::coordinator::app {

class KnownOutcomes final : public plan::Known {
 public:
  explicit KnownOutcomes(store::Store& store) : store_(store) {}

  [[nodiscard]] std::shared_ptr<const domain::Outcome> find(const base::Digest& key) override;
  /// Also gives what this run left that does not answer later runs (time-outs, crashes): for
  /// bringing its report up to date.
  void include_all_of(store::RunId run);

 private:
  store::Store& store_;
  std::unordered_map<base::Digest, std::shared_ptr<const domain::Outcome>>
      recent_;  ///< prepare and compile answers: many cases ask for one
  std::unordered_map<base::Digest, std::shared_ptr<const domain::Outcome>> of_run_;
};

}  // namespace layerfarm::coordinator::app
