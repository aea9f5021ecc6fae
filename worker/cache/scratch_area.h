// ScratchArea: the folder below which one worker process makes its scratch folders, and the removal
// of what killed workers left. Made once in the worker's main; its path is handed to whoever makes
// folders (base::ScratchFolder). No thread of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "shared/base/result.h"

namespace layerfarm::worker::cache {

class ScratchArea {
 public:
  /// Makes `<parent>/worker-<pid>-<start>` for this process, where start is the time at which it
  /// began: pids come again, both together do not. First removes the areas of processes that are
  /// gone. Two safeguards against removing a live one's: its process is looked for, and each area
  /// holds a locked file, which also holds for workers of other containers whose pids cannot be
  /// seen here.
  static base::Result<ScratchArea> make(const std::filesystem::path& parent);
  ScratchArea(ScratchArea&& other) noexcept;
  ScratchArea& operator=(ScratchArea&&) = delete;
  /// Removes the area with all that is in it.
  ~ScratchArea();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  ScratchArea(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::filesystem::path path_;
  int lock_;
};

/// Removes the areas below `parent` whose owner is gone; says how many.
int sweep_scratch_areas(const std::filesystem::path& parent);

/// Removes a folder with all that is in it, also where a tool took away its own right to write
/// there. False when something is left.
bool remove_whole_folder(const std::filesystem::path& folder);

struct AreaOwner {
  pid_t pid = 0;
  std::uint64_t start = 0;
};
/// The owner in an area's folder name; nothing when it is no such name.
[[nodiscard]] std::optional<AreaOwner> owner_in_name(std::string_view name);
/// When a process began, in clock ticks since the machine's start; nothing when there is none of
/// that pid.
[[nodiscard]] std::optional<std::uint64_t> process_start(pid_t pid);

}  // namespace layerfarm::worker::cache
