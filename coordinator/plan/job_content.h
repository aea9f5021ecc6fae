// What others ask of a CaseBook's jobs: what a lease must say of one, and who made the blobs that
// one missed. Part of CaseBook.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/plan/answers.h"

namespace layerfarm::coordinator::plan {

/// CaseBook::content
[[nodiscard]] JobContent content_of(const BookTables& tables, std::uint32_t job);
/// CaseBook::producers_of. An execute job among them makes the counts that `job` wants now.
[[nodiscard]] std::vector<JobId> find_producers(BookTables& tables, const Answers& answers,
                                                std::uint32_t job,
                                                const std::vector<base::Digest>& lost);

}  // namespace layerfarm::coordinator::plan
