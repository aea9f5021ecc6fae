#include "coordinator/app/cmd_cache.h"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "coordinator/store/cache.h"
#include "shared/base/exit_code.h"
#include "shared/base/places.h"

namespace layerfarm::coordinator::app {
using base::ExitCode;
using nlohmann::ordered_json;

namespace {

std::string size_text(std::uint64_t bytes) {
  constexpr double kKiB = 1024;
  const auto size = static_cast<double>(bytes);
  if (size < kKiB * kKiB) return fmt::format("{:.1f} KiB", size / kKiB);
  if (size < kKiB * kKiB * kKiB) return fmt::format("{:.1f} MiB", size / (kKiB * kKiB));
  return fmt::format("{:.2f} GiB", size / (kKiB * kKiB * kKiB));
}

void print_json(const std::filesystem::path& cache, const store::CacheStatistics& is) {
  ordered_json out;
  out["folder"] = cache.string();
  out["outcomes"] = is.store.outcomes;
  out["keys"] = is.store.keys;
  out["store_bytes"] = is.store_bytes;
  out["runs"] = is.store.runs;
  out["open_runs"] = is.store.open_runs;
  out["live_runs"] = is.live_runs;
  out["blobs"] = is.blobs;
  out["blob_bytes"] = is.blob_bytes;
  out["pinned_blobs"] = is.pinned_blobs;
  out["pinned_bytes"] = is.pinned_bytes;
  out["leftovers"] = is.leftovers;
  std::cout << out.dump(2) << "\n";
}

void print_text(const std::filesystem::path& cache, const store::CacheStatistics& is) {
  std::cout << fmt::format(
      "Folder:   {}\n"
      "Outcomes: {} ({} of them answer later runs), {}\n"
      "Runs:     {} ({} did not end, {} running now)\n"
      "Blobs:    {}, {} ({} of running runs)\n",
      cache.string(), is.store.outcomes, is.store.keys, size_text(is.store_bytes), is.store.runs,
      is.store.open_runs - is.live_runs, is.live_runs, is.blobs, size_text(is.blob_bytes),
      size_text(is.pinned_bytes));
  if (is.leftovers > 0)
    std::cout << fmt::format("Leftover scratch folders of processes that were killed: {}\n",
                             is.leftovers);
}

}  // namespace

int cmd_cache(const CacheOptions& options) {
  const std::filesystem::path cache = base::cache_folder();
  std::error_code error;
  if (!std::filesystem::exists(cache, error)) {
    std::cout << (options.json ? "{}" : "Nothing is stored in " + cache.string()) << "\n";
    return static_cast<int>(ExitCode::Success);
  }
  const auto refuse = [](const base::Error& why) {
    std::cerr << "Error: " << why.text() << "\n";
    return static_cast<int>(ExitCode::Failed);
  };
  if (auto usable = store::check_cache_folder(cache); !usable) return refuse(usable.error());
  auto opened = store::SqliteStore::open(cache);
  if (!opened) return refuse(opened.error());
  store::SqliteStore& store = **opened;
  if (options.prune) {
    auto pruned = store::prune_cache(cache, store,
                                     {.blob_bytes = static_cast<std::uint64_t>(options.max_bytes)});
    if (!pruned) return refuse(pruned.error());
    std::cout << fmt::format(
        "Removed {} blobs ({}), {} outcomes that nobody can ask for any more, {} leftover scratch "
        "folders\n",
        pruned->blobs, size_text(pruned->bytes), pruned->rows, pruned->leftovers);
  }
  const store::CacheStatistics is = store::cache_statistics(cache, store);
  options.json ? print_json(cache, is) : print_text(cache, is);
  return static_cast<int>(ExitCode::Success);
}

}  // namespace layerfarm::coordinator::app
