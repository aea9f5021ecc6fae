// Names as people write them beside names as they are: capitals that differ, letters that slipped.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace layerfarm::base {

/// The one of `known` that `name` means: the same, else the only one that differs in capitals at
/// most.
[[nodiscard]] std::optional<std::string> find_any_case(const std::vector<std::string>& known,
                                                       std::string_view name);
/// The known names most like this one, best first, at most `count`. Capitals make no difference.
[[nodiscard]] std::vector<std::string> nearest(std::string_view name,
                                               std::vector<std::string> known, std::size_t count);
/// Those that `name` is likely a slip of: the nearest, where no more than a third of its letters
/// are wrong.
[[nodiscard]] std::vector<std::string> likely_meant(std::string_view name,
                                                    const std::vector<std::string>& known);

}  // namespace layerfarm::base
