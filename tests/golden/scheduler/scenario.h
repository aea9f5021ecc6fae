// Runs one scenario file: blocks of commands, each with the scheduler's actions below a line
// "----".
#pragma once

#include <string>

namespace layerfarm::test {

/// The same text with every output renewed. A broken invariant shows as a line "BROKEN: ...".
[[nodiscard]] std::string run_scenario(const std::string& text);

}  // namespace layerfarm::test
