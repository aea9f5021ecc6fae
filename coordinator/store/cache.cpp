#include "coordinator/store/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "coordinator/store/database.h"
#include "shared/base/blob_folder.h"
#include "shared/base/files.h"
#include "shared/base/leftovers.h"
#include "shared/base/process_identity.h"

namespace layerfarm::coordinator::store {
namespace fs = std::filesystem;
namespace {

/// Nothing when `path` is a folder that this user can write into, or can be made as one below
/// `cache_folder`.
base::Result<void> check_folder(const fs::path& path) {
  const auto refuse = [&path](const std::string& why) {
    return base::fail(base::ErrorCode::InvalidInput, "the cache needs a folder at " +
                                                         path.string() + ", " + why +
                                                         ", or set LAYERFARM_CACHE_DIR to another "
                                                         "folder");
  };
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return {};  // made when it is needed
    return refuse("which cannot be looked at (" + std::generic_category().message(errno) +
                  "); see to its permissions");
  }
  if (::stat(path.c_str(), &info) != 0) return refuse("where a link points to nothing; remove it");
  if (!S_ISDIR(info.st_mode)) return refuse("where something else is; move it away");
  if (::access(path.c_str(), R_OK | W_OK | X_OK) != 0) {
    return refuse("which cannot be written (" + std::generic_category().message(errno) +
                  "); see to its permissions");
  }
  return {};
}

struct Pins {
  std::uint64_t live_runs = 0;
  std::int64_t used_since_ns = std::numeric_limits<std::int64_t>::max();
  std::unordered_set<base::Digest> blobs;
  [[nodiscard]] bool holds(const base::BlobFolder::Entry& entry) const {
    return entry.used_ns >= used_since_ns || blobs.contains(entry.digest);
  }
};

Pins pins_of(const fs::path& cache_folder, SqliteStore& store) {
  Pins out;
  for (const RunRecord& run : store.runs(/*only_open=*/true)) {
    if (!base::is_alive(run.start.process)) continue;
    ++out.live_runs;
    out.used_since_ns = std::min(out.used_since_ns, run.start.started_ms * 1'000'000);
  }
  std::error_code error;
  for (fs::directory_iterator file(cache_folder / kPinsFolder, error), end; !error && file != end;
       file.increment(error)) {
    const auto owner = base::process_from_tag(file->path().filename().string());
    if (owner && !base::is_alive(*owner)) {
      std::error_code ignored;
      fs::remove(file->path(), ignored);
      continue;
    }
    const auto bytes = base::read_file(file->path());
    if (!bytes) continue;
    for (std::size_t at = 0; at + sizeof(base::Digest) <= bytes->size();
         at += sizeof(base::Digest)) {
      if (const auto digest =
              base::Digest::from_bytes(std::string_view(*bytes).substr(at, sizeof(base::Digest)))) {
        out.blobs.insert(*digest);
      }
    }
  }
  return out;
}

/// Halves of blobs that a killed process was writing: in the folders of blobs, with names that are
/// none.
std::uint64_t sweep_half_written(const fs::path& blobs) {
  std::uint64_t removed = 0;
  const auto now = fs::file_time_type::clock::now();
  std::error_code error;
  for (fs::directory_iterator shard(blobs, error), end; !error && shard != end;
       shard.increment(error)) {
    const std::string prefix = shard->path().filename().string();
    std::error_code inner;
    for (fs::directory_iterator file(shard->path(), inner); !inner && file != end;
         file.increment(inner)) {
      if (prefix.size() != 2 || base::Digest::from_hex(prefix + file->path().filename().string()))
        continue;
      std::error_code gone;
      const auto changed = fs::last_write_time(file->path(), gone);
      if (!gone && now - changed >= base::kStrangerAge && fs::remove(file->path(), gone)) ++removed;
    }
  }
  return removed;
}

std::uint64_t size_of(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? 0 : size;
}

std::int64_t used_ns(const fs::path& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return std::numeric_limits<std::int64_t>::max();
  return std::int64_t{info.st_atim.tv_sec} * 1'000'000'000 + info.st_atim.tv_nsec;
}

}  // namespace

base::Result<void> check_cache_folder(const fs::path& cache_folder) {
  std::error_code error;
  fs::create_directories(cache_folder, error);
  if (error) {
    return base::fail(base::ErrorCode::InvalidInput,
                      "cannot make the cache folder " + cache_folder.string() + " (" +
                          error.message() + "); set LAYERFARM_CACHE_DIR to another folder");
  }
  const fs::path blobs = cache_folder / kBlobsFolder;
  std::vector<fs::path> needed = {cache_folder, blobs, cache_folder / kScratchFolder,
                                  cache_folder / kPinsFolder, cache_folder / kSocketsFolder};
  constexpr int kShards = 256;  // of the blobs, by the first two digits of their names
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (int i = 0; i < kShards; ++i)
    needed.push_back(blobs / std::string{kDigits[static_cast<std::size_t>(i) / 16],
                                         kDigits[static_cast<std::size_t>(i) % 16]});
  for (const fs::path& folder : needed) {
    if (auto usable = check_folder(folder); !usable) return usable;
  }
  return {};
}

CacheStatistics cache_statistics(const fs::path& cache_folder, SqliteStore& store) {
  CacheStatistics out;
  out.store = store.sizes();
  const std::string file = (cache_folder / kStoreFileName).string();
  out.store_bytes = size_of(file) + size_of(file + "-wal") + size_of(file + "-shm");
  const Pins pins = pins_of(cache_folder, store);
  out.live_runs = pins.live_runs;
  for (const auto& entry : base::BlobFolder(cache_folder / kBlobsFolder).list()) {
    ++out.blobs;
    out.blob_bytes += entry.bytes;
    if (!pins.holds(entry)) continue;
    ++out.pinned_blobs;
    out.pinned_bytes += entry.bytes;
  }
  out.leftovers = base::leftovers(cache_folder / kScratchFolder).size();
  return out;
}

base::Result<Pruned> prune_cache(const fs::path& cache_folder, SqliteStore& store,
                                 const PruneBounds& bounds) {
  Pruned out;
  const base::BlobFolder blobs(cache_folder / kBlobsFolder);
  const Pins pins = pins_of(cache_folder, store);
  std::vector<base::BlobFolder::Entry> entries = blobs.list();
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.used_ns, a.digest) < std::pair(b.used_ns, b.digest);
  });
  for (const auto& entry : entries) out.left_bytes += entry.bytes;
  for (const auto& entry : entries) {
    if (pins.holds(entry)) {
      out.pinned_bytes += entry.bytes;
      continue;
    }
    if (out.left_bytes <= bounds.blob_bytes) continue;
    // Somebody may have begun to use it since the list was made.
    if (used_ns(blobs.path(entry.digest)) != entry.used_ns || !blobs.remove(entry.digest)) continue;
    ++out.blobs;
    out.bytes += entry.bytes;
    out.left_bytes -= entry.bytes;
  }
  out.leftovers = base::sweep_leftovers(cache_folder / kScratchFolder) +
                  base::sweep_leftovers(cache_folder / kBlobsFolder / "tmp") +
                  sweep_half_written(blobs.root());
  if (bounds.compact) {
    auto rows = store.compact();
    if (!rows) return base::fail(std::move(rows.error()));
    out.rows = *rows;
  }
  return out;
}

base::Result<std::unique_ptr<BlobPins>> BlobPins::open(const fs::path& cache_folder) {
  const fs::path folder = cache_folder / kPinsFolder;
  std::error_code error;
  fs::create_directories(folder, error);
  std::string file = (folder / (base::this_process_tag() + "-XXXXXX")).string();
  const int fd = error ? -1 : ::mkostemp(file.data(), O_CLOEXEC | O_APPEND);
  if (fd < 0)
    return base::fail(base::os_error("cannot write " + file, error ? error.value() : errno));
  return std::unique_ptr<BlobPins>(new BlobPins(file, fd));
}

BlobPins::~BlobPins() {
  ::close(fd_);
  std::error_code ignored;
  fs::remove(file_, ignored);
}

base::Result<void> BlobPins::add(const std::vector<base::Digest>& blobs) {
  std::string bytes;
  bytes.reserve(blobs.size() * sizeof(base::Digest));
  for (const base::Digest& blob : blobs) bytes += blob.view();
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::write(fd_, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return base::fail(base::os_error("cannot write " + file_.string(), errno));
    done += static_cast<std::size_t>(written);
  }
  return {};
}

}  // namespace layerfarm::coordinator::store
