// Exit codes of every program here (spec section 11, design.md section 6).
#pragma once

namespace layerfarm::base {
enum class ExitCode : int {
  Success = 0,
  Failed = 1,     ///< any difference or error case, bad input, missing tool
  Usage = 2,      ///< bad flags
  Unsettled = 3,  ///< infrastructure kept some cases from a verdict; wins over Failed
};
}  // namespace layerfarm::base
