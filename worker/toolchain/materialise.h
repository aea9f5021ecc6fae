// The cache's words for placing blobs, as the stages and adapters use them.
#pragma once

#include "worker/cache/materialise.h"

namespace layerfarm::worker::toolchain {

using cache::missing_blobs;
using cache::place_artifact;
using cache::place_module;
using cache::Placed;

}  // namespace layerfarm::worker::toolchain
