// Ids that coordinator and workers both say.
#pragma once

#include <cstdint>

#include "shared/base/ids.h"

namespace layerfarm::protocol {

using JobId = base::StrongId<struct JobTag, std::uint32_t>;
/// One try of a job; grows with every try, so that a late answer of an older one is known as such.
using AttemptId = base::StrongId<struct AttemptTag, std::uint64_t>;
using RunId = base::StrongId<struct RunTag, std::uint32_t>;

}  // namespace layerfarm::protocol
