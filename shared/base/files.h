// Files: whole reads, writes that are never seen half done, scratch folders that go away.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "shared/base/bytes.h"
#include "shared/base/result.h"

namespace layerfarm::base {

/// The whole file. NotFound when it does not exist; `limit` bytes at most (InvalidInput beyond).
[[nodiscard]] Result<Bytes> read_file(const std::filesystem::path& path,
                                      std::uint64_t limit = std::uint64_t{1} << 31);

enum class Sync { Yes, No };
/// Bytes that the temporary file's name is longer than that of the file.
inline constexpr std::size_t kTemporarySuffixLength = 7;
/// Temporary file beside it, optional fsync of file and folder, rename: readers see the old or the
/// new content, nothing between.
[[nodiscard]] Result<void> write_file_atomically(const std::filesystem::path& path,
                                                 BytesView content, Sync sync);

/// Removes a folder with all that is in it, also where a tool took away its own right to write
/// there. False when something is left; true when there was nothing.
bool remove_folder(const std::filesystem::path& folder);
/// Removes all that is in a folder and gives its owner every right to it again; nothing behind a
/// link. False when something is left.
bool clear_folder(const std::filesystem::path& folder);

/// Opens a regular file for reading; -1 and an Error for anything else. A FIFO or device would keep
/// the caller waiting, perhaps for ever.
[[nodiscard]] Result<int> open_regular_file(const std::filesystem::path& path);

/// A folder of one's own that is removed, content and all, when this goes out of scope.
class ScratchFolder {
 public:
  /// Makes `<parent>/<tag of this process>-<prefix>-XXXXXX`; the parent is made too. What is left
  /// after a kill: leftovers.h.
  static Result<ScratchFolder> make(const std::filesystem::path& parent, const std::string& prefix);
  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&& other) noexcept;
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace layerfarm::base
