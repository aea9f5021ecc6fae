// The scheduler's events and actions as lines of text, for transcripts and scenario tests.
#pragma once

#include <functional>
#include <string>

#include "coordinator/core/actions.h"
#include "coordinator/core/events.h"
#include "coordinator/core/explain.h"

namespace layerfarm::test {

/// How jobs are called in the text; the default is "j12".
using JobNames = std::function<std::string(coordinator::core::JobId)>;
[[nodiscard]] std::string number_name(coordinator::core::JobId job);

[[nodiscard]] std::string text_of(const coordinator::core::Action& action,
                                  const JobNames& names = number_name);
[[nodiscard]] std::string text_of(const coordinator::core::Event& event,
                                  const JobNames& names = number_name);
[[nodiscard]] std::string text_of(const coordinator::core::Explanation& explanation,
                                  const JobNames& names = number_name);
/// "1.5s", "200ms": exact to the microsecond.
[[nodiscard]] std::string text_of(base::Duration duration);

}  // namespace layerfarm::test
