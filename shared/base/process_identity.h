// ProcessIdentity: which process on which machine made something, so that what the dead left behind
// can be told from what the living use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace layerfarm::base {

/// A process number alone is given again; with its start time, the machine's boot and the set of
/// processes that it is counted in (a container has its own) it is not.
struct ProcessIdentity {
  std::string host;  ///< host name "/" boot "/" process namespace
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< since boot, as the kernel says
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;

  /// "1234.567890.0a1b2c3d" (the last part stands for the host): for names of files and folders.
  [[nodiscard]] std::string tag() const;
};

[[nodiscard]] ProcessIdentity this_process();
/// this_process().tag(), made once per process.
[[nodiscard]] const std::string& this_process_tag();

/// Whether that very process runs now. Of processes that cannot be seen from here (another machine,
/// another namespace) nothing is known: they count as alive until the machine was started anew.
[[nodiscard]] bool is_alive(const ProcessIdentity& process);

/// Reads what `tag` wrote at the beginning of a name. Nothing when the name begins otherwise, or
/// the process is one that cannot be seen from here.
[[nodiscard]] std::optional<ProcessIdentity> process_from_tag(std::string_view name);

}  // namespace layerfarm::base
