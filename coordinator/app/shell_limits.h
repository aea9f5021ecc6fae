// The limits of the shell (`ulimit`) that this program and its workers live under. Where one is too
// small, libraries end far from the cause and in words that do not name it, so it is looked at
// first.
#pragma once

#include <cstdint>
#include <string>

#include "shared/base/result.h"

namespace layerfarm::coordinator::app {

struct ShellLimit {
  std::uint64_t soft = UINT64_MAX;  ///< in force; UINT64_MAX = none
  std::uint64_t hard = UINT64_MAX;  ///< up to which the soft one may be raised
};
struct ShellLimits {
  ShellLimit files;   ///< `ulimit -n`, number
  ShellLimit stack;   ///< `ulimit -s`, bytes
  ShellLimit memory;  ///< `ulimit -v`, bytes
};
[[nodiscard]] ShellLimits read_shell_limits();

/// The first limit that is too small for so many local workers however far it may be raised, what
/// it is, what is needed and what to type; empty when all is well. Pure.
[[nodiscard]] std::string shell_limit_problem(const ShellLimits& limits, std::size_t workers);

/// Raises soft limits that are too small, for this process and the children it will have; an error
/// where a hard one does not allow it.
[[nodiscard]] base::Result<void> ensure_shell_limits(std::size_t workers);

}  // namespace layerfarm::coordinator::app
