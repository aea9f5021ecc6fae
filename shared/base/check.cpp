#include "shared/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace layerfarm::base {
void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "layerfarm: broken invariant (a fault of this program): %s at %s:%d\n",
               condition, file, line);
  std::abort();
}
}  // namespace layerfarm::base
