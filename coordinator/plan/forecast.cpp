#include "coordinator/plan/forecast.h"

#include <algorithm>

namespace layerfarm::coordinator::plan {

Forecast& Forecast::operator+=(const Forecast& other) {
  cases += other.cases;
  known += other.known;
  skipped += other.skipped;
  copied += other.copied;
  untestable += other.untestable;
  open += other.open;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i] += other.jobs[i];
    speculative[i] += other.speculative[i];
  }
  without_estimate += other.without_estimate;
  work_us += other.work_us;
  expected_us += other.expected_us;
  return *this;
}

Forecast forecast(const Added& added, std::size_t workers) {
  Forecast out;
  out.cases = added.counts.cases;
  out.open = added.counts.cases - added.counts.settled;
  for (const CaseSettled& settled : added.turn.settled) {
    switch (settled.how) {
      case How::Judged:
        ++out.known;
        break;
      case How::Failed:
        ++(settled.outcome && settled.outcome->stage == domain::Stage::Analyze ? out.untestable
                                                                               : out.known);
        break;
      case How::Copied:
      case How::CopiedOld:
        ++out.copied;
        break;
      case How::Skipped:
        ++out.skipped;
        break;
      case How::Unsettled:
        break;
    }
  }
  std::int64_t alone_us = 0;
  for (const PlannedJob& job : added.turn.jobs) {
    if (job.known) continue;
    const auto stage = static_cast<std::size_t>(job.stage);
    ++out.jobs[stage];
    if (job.cost_us == 0) ++out.without_estimate;
    if (job.speculative) {
      ++out.speculative[stage];
      continue;
    }
    out.work_us += job.cost_us;
    if (job.exclusive) alone_us += job.cost_us;
  }
  out.expected_us = alone_us + (out.work_us - alone_us) /
                                   std::max<std::int64_t>(static_cast<std::int64_t>(workers), 1);
  return out;
}

}  // namespace layerfarm::coordinator::plan
