// Between planning and the scheduler, which do not know each other: planned jobs as core takes
// them, and core's words for an end as the case book takes them. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/app/discover_request.h"
#include "coordinator/core/actions.h"
#include "coordinator/core/events.h"
#include "coordinator/plan/case_book.h"

namespace layerfarm::coordinator::app {

/// Jobs of one run as the core takes them.
class JobSpecs {
 public:
  explicit JobSpecs(const DiscoverRequest& request) : request_(request) {}

  /// Before any job of these groups.
  [[nodiscard]] core::GroupsAdded groups(const std::vector<plan::PlannedGroup>& groups);
  [[nodiscard]] core::JobSpec spec(const plan::PlannedJob& job) const;

 private:
  [[nodiscard]] std::uint32_t limit_of(const plan::PlannedJob& job) const;

  const DiscoverRequest& request_;
  std::map<plan::Group, std::size_t> chip_of_group_;
};

/// A job under which workers died, as an outcome like any other.
[[nodiscard]] std::shared_ptr<const domain::Outcome> death_of(const core::KillsWorker& kills,
                                                              domain::Stage stage);
/// Why a job has no verdict, for people. `trouble` is what the last attempt said that failed for a
/// reason that is not the job's; empty when none did.
[[nodiscard]] std::string reason_of(const core::Unsettled& unsettled, const std::string& trouble);

}  // namespace layerfarm::coordinator::app
