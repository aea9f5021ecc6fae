// What a compiler wrote of its intermediate forms (`--debug-ir`), kept as one blob that the
// coordinator unpacks. Job thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/base/digest.h"
#include "shared/domain/chip.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {

/// Option of a chip or executor that asks for dumps: "1".
[[nodiscard]] bool wants_ir_dump(const domain::Options& options);

/// Bound of one dump: what is beyond it is named in `left_out.txt`. Prints after all passes of a
/// large layer are many times its size.
inline constexpr std::uint64_t kMostDumpBytes = std::uint64_t{64} << 20;

/// Files and folders (with all that is below) of the step's scratch folder; those that are not
/// there are left out. Empty when there is nothing, or when it cannot be stored: a dump that is
/// missing is no reason for a case to fail.
[[nodiscard]] std::optional<base::Digest> keep_ir_dump(const std::vector<std::string>& names,
                                                       const StepContext& context,
                                                       std::uint64_t most_bytes = kMostDumpBytes);

}  // namespace layerfarm::worker::toolchain
