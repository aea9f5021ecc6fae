// Leftovers: scratch folders of processes that were killed before they could remove them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "shared/base/time.h"

namespace layerfarm::base {

/// Old enough to be nobody's, where the maker cannot be asked.
inline constexpr Duration kStrangerAge = std::chrono::hours(24);

/// What lies in `parent` (made by ScratchFolder::make, or in its way by another) and belongs to a
/// process that is gone. What names no process that can be seen from here counts when nothing in it
/// was changed for `stranger_age`.
[[nodiscard]] std::vector<std::filesystem::path> leftovers(const std::filesystem::path& parent,
                                                           Duration stranger_age = kStrangerAge);
/// Removes them; the number of those that are really gone. Several processes may do so at once.
std::size_t sweep_leftovers(const std::filesystem::path& parent,
                            Duration stranger_age = kStrangerAge);

}  // namespace layerfarm::base
