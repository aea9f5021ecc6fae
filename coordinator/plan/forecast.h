// Forecast: what `--dry-run` tells of a plan that is then thrown away.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "coordinator/plan/case_book.h"

namespace layerfarm::coordinator::plan {

struct Forecast {
  std::uint64_t cases = 0;  ///< selected
  std::uint64_t known = 0;  ///< settled by what the store knows
  std::uint64_t skipped = 0;
  std::uint64_t copied = 0;      ///< of those settled already
  std::uint64_t untestable = 0;  ///< the layer itself has a problem
  std::uint64_t open = 0;        ///< wait for jobs, or for the case that they copy
  std::array<std::uint64_t, domain::kStageNumbers>
      jobs{};  ///< to run, by the number of domain::Stage
  std::array<std::uint64_t, domain::kStageNumbers>
      speculative{};                   ///< of these, only if a higher executor does not work
  std::uint64_t without_estimate = 0;  ///< jobs of which nothing is known how long they take
  std::int64_t work_us = 0;            ///< sum of the estimates, speculative jobs left out
  std::int64_t expected_us =
      0;  ///< the same spread over the workers; timing jobs one after the other

  Forecast& operator+=(const Forecast& other);
};

/// Of one model. A book of several models makes one for each; they add up.
[[nodiscard]] Forecast forecast(const Added& added, std::size_t workers);

}  // namespace layerfarm::coordinator::plan
