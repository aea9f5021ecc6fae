// `layerfarm cache stats|prune`: what is stored, and making room.
#pragma once

#include <cstdint>

namespace layerfarm::coordinator::app {

struct CacheOptions {
  bool prune = false;
  bool json = false;
  std::int64_t max_bytes = std::int64_t{20} << 30;
};

/// Prints to standard output; returns the exit code.
int cmd_cache(const CacheOptions& options);

}  // namespace layerfarm::coordinator::app
