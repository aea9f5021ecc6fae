// Files that a chip's options name: what they hold decides results as the options themselves do.
#pragma once

#include <filesystem>
#include <vector>

#include "shared/base/digest.h"
#include "shared/domain/chip.h"

namespace layerfarm::worker::toolchain {

/// Existing regular files that a value of the chip's options or its executors' names: the whole of
/// it, or a part that begins and ends at a `=`, `:`, `,` or `@` ("--flagfile=PATH"). Each once, in
/// the order of the options.
[[nodiscard]] std::vector<std::filesystem::path> option_files(const domain::ChipSpec& chip);

/// Files above this count by their size and times, not by their content: that would be read anew by
/// every command for which nothing is remembered yet.
inline constexpr std::uintmax_t kMostOptionFile = std::uintmax_t{256} << 20;

/// One digest over what these files hold.
[[nodiscard]] base::Digest digest_of_option_files(const std::vector<std::filesystem::path>& files);

}  // namespace layerfarm::worker::toolchain
