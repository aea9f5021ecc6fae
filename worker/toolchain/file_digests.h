// FileDigests: digests of tools' files, remembered by path, size and time of change, so that a 300
// MB library is read once per installation.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "shared/base/digest.h"
#include "shared/base/result.h"

namespace layerfarm::worker::toolchain {

/// Reads its memory when made and writes it back when it learnt something and goes. A memory that
/// cannot be read or written costs time, nothing else; two processes that write at once leave one
/// of the two. One thread.
class FileDigests {
 public:
  /// `memory`: the file that keeps what is known.
  explicit FileDigests(std::filesystem::path memory = default_memory());
  ~FileDigests();
  FileDigests(const FileDigests&) = delete;
  FileDigests& operator=(const FileDigests&) = delete;

  /// Digest of the file's content.
  [[nodiscard]] base::Result<base::Digest> of(const std::filesystem::path& file);
  /// One digest over the contents of several files, in the order given; a file that is missing
  /// counts as such.
  [[nodiscard]] base::Digest of_all(const std::vector<std::filesystem::path>& files);

  /// Beside the tools that scripts/setup installed, so that a new cache folder reads none of them
  /// again; else in the cache folder.
  [[nodiscard]] static std::filesystem::path default_memory();

 private:
  std::filesystem::path memory_;
  std::map<std::string, base::Digest> known_;  ///< "<size> <mtime ns> <path>" -> digest
  bool learnt_ = false;
};

}  // namespace layerfarm::worker::toolchain
