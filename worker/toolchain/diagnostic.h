// Tools' texts as reports show them: equal failures read equal on every machine, in every folder,
// at every time of day. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace layerfarm::worker::toolchain {

/// Bytes of a diagnostic at most; a longer one is cut at the end of a line where there is one.
inline constexpr std::size_t kMostDiagnosticBytes = 4096;

/// Without colours and control characters; folders of absolute paths, addresses, dates and times of
/// day gone; valid UTF-8; no spaces at line ends, no empty lines at the start and end, a line that
/// repeats the one before it once. Of a Python traceback the exception comes first, as that is what
/// went wrong, and the first line is what people are shown.
[[nodiscard]] std::string normalised(std::string_view said);

}  // namespace layerfarm::worker::toolchain
