// The helper's side of the channel that a worker speaks over: 4 bytes of length, little endian,
// then that many bytes, both ways.
#pragma once

#include <optional>
#include <string>

#include "shared/base/result.h"

namespace layerfarm::worker::ort {

/// The descriptor that the worker leaves open for its resident children.
inline constexpr int kChannelDescriptor = 3;
/// A longer request is refused by ending: nobody of ours sends one.
inline constexpr std::uint32_t kMostRequestBytes = 64U << 20;

/// The next message; nothing when the other side closed between two messages.
[[nodiscard]] base::Result<std::optional<std::string>> read_message(int descriptor);
[[nodiscard]] base::Result<void> write_message(int descriptor, const std::string& message);

}  // namespace layerfarm::worker::ort
