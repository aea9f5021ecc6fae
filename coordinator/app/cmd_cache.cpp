#include "coordinator/app/cmd_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "coordinator/store/sqlite_store.h"
#include "shared/base/blob_folder.h"
#include "shared/base/exit_code.h"
#include "shared/base/places.h"
#include "shared/base/process_identity.h"

namespace layerfarm::coordinator::app {
using base::ExitCode;
using nlohmann::ordered_json;

namespace {

struct Blobs {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

Blobs count(const std::vector<base::BlobFolder::Entry>& entries) {
  Blobs out;
  for (const auto& entry : entries) {
    ++out.count;
    out.bytes += entry.bytes;
  }
  return out;
}

std::string size_text(std::uint64_t bytes) {
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  if (bytes < std::uint64_t{1024} * 1024 * 1024) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024 * 1024));
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1024.0 * 1024 * 1024));
}

/// What a live run has used since it began is not touched.
std::int64_t pinned_since_ns(store::Store& store) {
  std::int64_t out = std::numeric_limits<std::int64_t>::max();
  for (const store::RunRecord& run : store.runs(/*only_open=*/true)) {
    if (base::is_alive(run.start.process)) out = std::min(out, run.start.started_ms * 1'000'000);
  }
  return out;
}

Blobs prune(const base::BlobFolder& blobs, std::uint64_t bound, std::int64_t pinned_since) {
  std::vector<base::BlobFolder::Entry> entries = blobs.list();
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.used_ns != b.used_ns ? a.used_ns < b.used_ns : a.digest < b.digest;
  });
  std::uint64_t left = count(entries).bytes;
  Blobs removed;
  for (const auto& entry : entries) {
    if (left <= bound || entry.used_ns >= pinned_since) break;
    if (!blobs.remove(entry.digest)) continue;
    left -= entry.bytes;
    ++removed.count;
    removed.bytes += entry.bytes;
  }
  return removed;
}

}  // namespace

int cmd_cache(const CacheOptions& options) {
  const std::filesystem::path cache = base::cache_folder();
  std::error_code error;
  if (!std::filesystem::exists(cache / "store.sqlite", error)) {
    std::cout << (options.json ? "{}" : "Nothing is stored in " + cache.string()) << "\n";
    return static_cast<int>(ExitCode::Success);
  }
  auto store = store::SqliteStore::open(cache);
  if (!store) {
    std::cerr << "Error: " << store.error().text() << "\n";
    return static_cast<int>(ExitCode::Failed);
  }
  const base::BlobFolder blobs(cache / "blobs");
  if (options.prune) {
    const Blobs removed = prune(blobs, options.max_bytes, pinned_since_ns(**store));
    auto rows = (*store)->compact();
    if (!rows) {
      std::cerr << "Error: " << rows.error().text() << "\n";
      return static_cast<int>(ExitCode::Failed);
    }
    std::cout << fmt::format("Removed {} blobs ({}) and {} outcomes that nobody can ask for any more\n", removed.count, size_text(removed.bytes), *rows);
  }
  const auto sizes = (*store)->sizes();
  const Blobs kept = count(blobs.list());
  if (options.json) {
    ordered_json out;
    out["folder"] = cache.string();
    out["outcomes"] = sizes.outcomes;
    out["keys"] = sizes.keys;
    out["runs"] = sizes.runs;
    out["open_runs"] = sizes.open_runs;
    out["blobs"] = kept.count;
    out["blob_bytes"] = kept.bytes;
    std::cout << out.dump(2) << "\n";
  } else {
    std::cout << fmt::format("Folder:   {}\nOutcomes: {} ({} of them answer later runs)\nRuns:     {} ({} open)\nBlobs:    {} ({})\n", cache.string(),
                             sizes.outcomes, sizes.keys, sizes.runs, sizes.open_runs, kept.count, size_text(kept.bytes));
  }
  return static_cast<int>(ExitCode::Success);
}

}  // namespace layerfarm::coordinator::app
