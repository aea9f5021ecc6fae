// What /proc says about the processes below one: who they are and how much memory they hold. Used
// by the launcher and its minders.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

namespace layerfarm::worker::process {

/// Every process that descends from `root` (without it), parents before children. Branches below a
/// pid in `without` are left out, that pid too.
[[nodiscard]] std::vector<pid_t> descendants(pid_t root, const std::set<pid_t>& without = {});

/// Every process that this /proc shows, but the caller. In a PID namespace of one's own that is
/// everything below its init.
[[nodiscard]] std::vector<pid_t> all_processes();

/// Memory that only this process could give back: anonymous, shared and swapped pages; pages of
/// files are left out, since the kernel drops those by itself. Pages shared by a fork are counted
/// in each process. 0 when the process is gone.
[[nodiscard]] std::int64_t held_bytes(pid_t pid);

/// The same, with each page divided by the number of its users: exact for a group, but dear to ask.
/// Falls back to held_bytes.
[[nodiscard]] std::int64_t proportional_bytes(pid_t pid);

// The texts behind the two, for tests.
[[nodiscard]] std::int64_t held_bytes_in_status(std::string_view status);
[[nodiscard]] std::int64_t proportional_bytes_in_rollup(std::string_view rollup);
/// Parent's pid in the text of /proc/<pid>/stat; -1 when it is no such text.
[[nodiscard]] pid_t parent_in_stat(std::string_view stat);

/// Ends `pid` only if it still is below `root`: between reading /proc and the signal a pid may have
/// got another owner.
void kill_descendant(pid_t root, pid_t pid);

}  // namespace layerfarm::worker::process
