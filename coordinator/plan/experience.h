// Experience: how long jobs took, as means by stage and group, for estimates. Part of CaseBook.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "coordinator/plan/case_book.h"

namespace layerfarm::coordinator::plan {

class Experience {
 public:
  void saw(domain::Stage stage, Group group, std::int64_t took_us) {
    if (took_us <= 0) return;
    auto& [sum, count] = seen_[{stage, group}];
    sum += took_us;
    ++count;
  }
  /// 0 = no experience.
  [[nodiscard]] std::uint32_t estimate(domain::Stage stage, Group group) const {
    const auto at = seen_.find({stage, group});
    std::int64_t us = typical_[static_cast<std::size_t>(stage)].value_or(0);
    if (at != seen_.end()) us = at->second.first / at->second.second;
    return static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(us, 0, std::numeric_limits<std::uint32_t>::max()));
  }
  /// Means of each stage (by number), where nothing was seen.
  void set_typical(const std::array<std::optional<std::int64_t>, domain::kStageNumbers>& times) {
    typical_ = times;
  }

 private:
  std::array<std::optional<std::int64_t>, domain::kStageNumbers> typical_{};
  std::map<std::pair<domain::Stage, Group>, std::pair<std::int64_t, std::int64_t>>
      seen_;  // sum, count
};

}  // namespace layerfarm::coordinator::plan
