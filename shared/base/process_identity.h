// ProcessIdentity: which process on which machine made something, so that what the dead left behind
// can be told from what the living use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace layerfarm::base {

/// A process number alone is given again; with its start time and the machine's boot it is not.
struct ProcessIdentity {
  std::string host;  ///< host name, and the machine's boot after a "/"
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< since boot, as the kernel says
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;

  /// "1234.567890": for names of files and folders in a cache that only this machine uses.
  [[nodiscard]] std::string tag() const;
};

[[nodiscard]] ProcessIdentity this_process();
/// Whether that very process runs now. Of another machine's processes nothing is known: they count
/// as alive until the machine was started anew (same host name, other boot).
[[nodiscard]] bool is_alive(const ProcessIdentity& process);

/// Reads what `tag` wrote at the beginning of a name; nothing when the name begins otherwise. The
/// host is this one.
[[nodiscard]] std::optional<ProcessIdentity> process_from_tag(std::string_view name);

}  // namespace layerfarm::base
