// second_try: for what a job goes on without when it fails, so that the failure would last.
#pragma once

#include "shared/domain/outcome.h"

namespace layerfarm::worker::toolchain {

/// Asks, and once more when the process that was asked died: the machine's memory killer and people
/// with kill -9 pick anybody, and only a death that repeats says something of the request. `ask`
/// returns a struct with an `ending`.
template <typename Ask>
[[nodiscard]] auto second_try(const Ask& ask) {
  auto answer = ask();
  if (answer.ending == domain::Ending::Crashed) answer = ask();
  return answer;
}

}  // namespace layerfarm::worker::toolchain
