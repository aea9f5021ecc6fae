// Looks for processes from outside, as a person with ps would.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

namespace layerfarm::test {

/// Pids (as this process sees them) of those whose command line contains `word`; zombies not
/// counted.
[[nodiscard]] std::vector<pid_t> processes_with(const std::string& word);
/// Waits until there is none, or the time is up. True when there is none.
[[nodiscard]] bool gone_within(const std::string& word, std::chrono::milliseconds time);
/// Waits until there are at least `count`, or the time is up.
[[nodiscard]] bool there_within(const std::string& word, std::size_t count,
                                std::chrono::milliseconds time);
/// How many descriptors this process has open.
[[nodiscard]] std::size_t open_descriptors();
/// How many children of this process, or of any process below it, are zombies.
[[nodiscard]] std::size_t zombies_below(pid_t root);
/// A word that no other process on this machine has in its command line.
[[nodiscard]] std::string unique_word();

}  // namespace layerfarm::test
