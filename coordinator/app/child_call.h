// A program of ours run to its end for one answer: what it is told, what it says. For the few
// things that are done before or without workers of a run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/result.h"
#include "shared/base/time.h"

namespace layerfarm::coordinator::app {

/// Which of the child's outputs is taken. Errors: what it prints besides goes nowhere, as ours is
/// for results; Output: its errors go where ours go.
enum class Take : std::uint8_t { Output, Errors };

struct ChildAnswer {
  int status = 0;  ///< as wait gives it; 0 = it ended well
  std::string text;
};

/// `argv[0]` is the program's path; `input` comes by its standard input. Unavailable when it cannot
/// be started, takes longer than `patience` (it is ended then) or says more than 16 MiB.
[[nodiscard]] base::Result<ChildAnswer> call_child(std::vector<std::string> argv,
                                                   std::string_view input, Take take,
                                                   base::Duration patience);

}  // namespace layerfarm::coordinator::app
