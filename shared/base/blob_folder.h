// BlobFolder: bytes named by their digest, one file each, shared safely by any number of processes
// on one machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/digest.h"
#include "shared/base/result.h"

namespace layerfarm::base {

/// Layout: `<root>/<first two hex digits>/<other 62>`. A file is there whole or not at all (written
/// beside, then renamed). Files are read-only (0444).
class BlobFolder {
 public:
  explicit BlobFolder(std::filesystem::path root) : root_(std::move(root)) {}

  /// Stores the bytes and returns their name. Storing what is already there costs one stat (and
  /// renews its time of use).
  [[nodiscard]] Result<Digest> put(BytesView bytes) const;
  /// Moves or copies a finished file in (hashing it once). The source may disappear.
  [[nodiscard]] Result<Digest> put_file(const std::filesystem::path& file) const;
  [[nodiscard]] bool has(const Digest& digest) const;
  /// It is here and its content matches its name; a damaged one is removed. What was checked once
  /// is checked again only when the file has changed, so asking often is cheap.
  [[nodiscard]] bool intact(const Digest& digest) const;
  /// Where the blob is or would be.
  [[nodiscard]] std::filesystem::path path(const Digest& digest) const;
  /// NotFound when it was pruned, Corrupt when its content does not match its name (then it is
  /// removed).
  [[nodiscard]] Result<Bytes> get(const Digest& digest) const;
  /// Makes the blob appear as `target` (hard link, else copy): how a tool gets a file under a name
  /// of its own.
  /// Small ones are copied, so that a tool that writes to its input harms itself alone. Content is
  /// checked first: Corrupt when it does not match (the blob is removed then).
  [[nodiscard]] Result<void> link_to(const Digest& digest,
                                     const std::filesystem::path& target) const;
  /// Marks as just used, for pruning by age of use.
  void touch(const Digest& digest) const;

  struct Entry {
    Digest digest;
    std::uint64_t bytes = 0;
    std::int64_t used_ns = 0;  ///< time of last use, nanoseconds since the epoch
  };
  [[nodiscard]] std::vector<Entry> list() const;
  [[nodiscard]] bool remove(const Digest& digest) const;
  [[nodiscard]] const std::filesystem::path& root() const { return root_; }

 private:
  struct Checked;
  std::filesystem::path root_;
  std::shared_ptr<Checked> checked_ = make_checked();  ///< shared by copies; has a lock of its own
  [[nodiscard]] static std::shared_ptr<Checked> make_checked();
};

}  // namespace layerfarm::base
