// The rules that hold between the calls of a CaseBook, for tests. Part of CaseBook.
#pragma once

#include <string>

#include "coordinator/plan/cases.h"

namespace layerfarm::coordinator::plan {

/// CaseBook::check_invariants: the first broken rule in words, empty when all hold.
[[nodiscard]] std::string first_broken_rule(const BookTables& tables, const Cases& cases);

}  // namespace layerfarm::coordinator::plan
