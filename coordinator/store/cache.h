// The cache folder as a whole: how large it is, and making it smaller (`layerfarm cache
// stats|prune`, and at the end of runs). Several processes may use the folder meanwhile: what is
// taken from one that needs it is made again (LostBlob).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "coordinator/store/sqlite_store.h"
#include "shared/base/digest.h"
#include "shared/base/result.h"

namespace layerfarm::coordinator::store {

inline constexpr const char* kBlobsFolder = "blobs";
inline constexpr const char* kScratchFolder = "scratch";
inline constexpr const char* kPinsFolder = "pins";
inline constexpr const char* kSocketsFolder = "run";

/// Makes the cache folder and sees, before any work, that all it holds can be used: else each job
/// would fail later in words about itself. The error names the path and what to do.
[[nodiscard]] base::Result<void> check_cache_folder(const std::filesystem::path& cache_folder);

struct CacheStatistics {
  SqliteStore::Sizes store;
  std::uint64_t store_bytes = 0;  ///< on disk, write-ahead log included
  std::uint64_t blobs = 0;
  std::uint64_t blob_bytes = 0;
  std::uint64_t pinned_blobs = 0;
  std::uint64_t pinned_bytes = 0;
  std::uint64_t live_runs = 0;
  std::uint64_t leftovers = 0;  ///< scratch folders of processes that are gone
};
[[nodiscard]] CacheStatistics cache_statistics(const std::filesystem::path& cache_folder,
                                               SqliteStore& store);

struct PruneBounds {
  std::uint64_t blob_bytes =
      0;  ///< blobs are removed, the longest unused first, until no more than this is left
  bool compact = true;  ///< also take out of the log what nobody can ask for
};
struct Pruned {
  std::uint64_t blobs = 0;
  std::uint64_t bytes = 0;
  std::uint64_t left_bytes = 0;  ///< more than the bound when the rest is pinned
  std::uint64_t pinned_bytes = 0;
  std::uint64_t rows = 0;
  std::uint64_t leftovers = 0;
};
/// Blobs of live runs stay: those that a live run pinned (BlobPins), and all that were used since
/// the oldest live run began.
[[nodiscard]] base::Result<Pruned> prune_cache(const std::filesystem::path& cache_folder,
                                               SqliteStore& store, const PruneBounds& bounds);

/// Blobs that this process will need though it has not used them yet (inputs and artifacts of
/// planned jobs, from earlier runs). Held until the object goes, or the process dies.
class BlobPins {
 public:
  [[nodiscard]] static base::Result<std::unique_ptr<BlobPins>> open(
      const std::filesystem::path& cache_folder);
  ~BlobPins();
  BlobPins(const BlobPins&) = delete;
  BlobPins& operator=(const BlobPins&) = delete;
  [[nodiscard]] base::Result<void> add(const std::vector<base::Digest>& blobs);

 private:
  BlobPins(std::filesystem::path file, int fd) : file_(std::move(file)), fd_(fd) {}
  std::filesystem::path file_;
  int fd_;
};

}  // namespace layerfarm::coordinator::store
