// CHECK: an invariant of our own code, kept on in release. Never for bytes from a peer, a file or a
// user.
#pragma once

namespace layerfarm::base {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}

#define LAYERFARM_CHECK(condition)                                                     \
  do {                                                                                 \
    if (!(condition)) ::layerfarm::base::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
