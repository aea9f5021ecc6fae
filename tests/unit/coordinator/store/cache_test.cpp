#include "coordinator/store/cache.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "shared/base/blob_folder.h"
#include "shared/base/files.h"
#include "tests/support/outcomes.h"

namespace {

using namespace layerfarm;
using namespace layerfarm::coordinator::store;
namespace fs = std::filesystem;

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

struct Cache {
  base::ScratchFolder scratch = *base::ScratchFolder::make(fs::temp_directory_path(), "cache");
  fs::path path = scratch.path();
  base::BlobFolder blobs{path / kBlobsFolder};
  std::unique_ptr<SqliteStore> store = std::move(*SqliteStore::open(path));

  /// A blob of a thousand bytes that was used so many seconds ago.
  base::Digest blob(const std::string& name, int seconds_ago) const {
    const base::Digest out = *blobs.put(name + std::string(1000 - name.size(), '.'));
    timespec times[2] = {{.tv_sec = ::time(nullptr) - seconds_ago, .tv_nsec = 0},
                         {.tv_sec = 0, .tv_nsec = UTIME_OMIT}};
    REQUIRE(::utimensat(AT_FDCWD, blobs.path(out).c_str(), times, 0) == 0);
    return out;
  }
};

/// A process that has ended.
base::ProcessIdentity dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  base::ProcessIdentity out = base::this_process();
  out.pid = child;
  return out;
}

}  // namespace

TEST_CASE("blobs are pruned down to the bound, the longest unused first") {
  Cache cache;
  const auto oldest = cache.blob("a", 400);
  const auto older = cache.blob("b", 300);
  const auto newer = cache.blob("c", 200);
  const auto newest = cache.blob("d", 100);
  auto pruned = prune_cache(cache.path, *cache.store, {.blob_bytes = 2500});
  REQUIRE(pruned.has_value());
  CHECK(pruned->blobs == 2);
  CHECK(pruned->bytes == 2000);
  CHECK(pruned->left_bytes == 2000);
  CHECK_FALSE(cache.blobs.has(oldest));
  CHECK_FALSE(cache.blobs.has(older));
  CHECK(cache.blobs.has(newer));
  CHECK(cache.blobs.has(newest));
  CHECK(prune_cache(cache.path, *cache.store, {.blob_bytes = 2500})->blobs == 0);
}

TEST_CASE(
    "what a live run has used since it began stays, what is older or of a dead run does not") {
  Cache cache;
  const auto before = cache.blob("before", 400);
  const auto during = cache.blob("during", 100);
  const auto run = cache.store->begin_run(
      {.process = base::this_process(), .started_ms = now_ms() - 200'000, .command = {}});
  REQUIRE(run.has_value());
  REQUIRE(cache.store->begin_run({.process = dead_process(), .started_ms = 1, .command = {}})
              .has_value());
  const CacheStatistics statistics = cache_statistics(cache.path, *cache.store);
  CHECK(statistics.blobs == 2);
  CHECK(statistics.blob_bytes == 2000);
  CHECK(statistics.pinned_blobs == 1);
  CHECK(statistics.pinned_bytes == 1000);
  CHECK(statistics.live_runs == 1);
  CHECK(statistics.store.open_runs == 2);
  CHECK(statistics.store_bytes > 0);
  auto pruned = prune_cache(cache.path, *cache.store, {.blob_bytes = 0});
  REQUIRE(pruned.has_value());
  CHECK(pruned->left_bytes == 1000);
  CHECK(pruned->pinned_bytes == 1000);
  CHECK_FALSE(cache.blobs.has(before));
  CHECK(cache.blobs.has(during));
  static_cast<void>(cache.store->append({RunEndedFact{*run, 0}}));
  REQUIRE(cache.store->close().has_value());
  CHECK(prune_cache(cache.path, *cache.store, {.blob_bytes = 0})->blobs == 1);
}

TEST_CASE("pinned blobs stay as long as their holder, and not longer than its life") {
  Cache cache;
  const auto pinned = cache.blob("pinned", 400);
  const auto other = cache.blob("other", 300);
  {
    const auto pins = BlobPins::open(cache.path);
    REQUIRE(pins.has_value());
    REQUIRE((*pins)->add({}).has_value());
    REQUIRE((*pins)->add({pinned}).has_value());
    CHECK(prune_cache(cache.path, *cache.store, {.blob_bytes = 0})->blobs == 1);
    CHECK(cache.blobs.has(pinned));
    CHECK_FALSE(cache.blobs.has(other));
  }
  CHECK(fs::is_empty(cache.path / kPinsFolder));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto pins = BlobPins::open(cache.path);
    ::_exit(pins && (*pins)->add({pinned}) ? 0 : 1);  // as a kill would: the file stays
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  REQUIRE(status == 0);
  CHECK_FALSE(fs::is_empty(cache.path / kPinsFolder));
  CHECK(prune_cache(cache.path, *cache.store, {.blob_bytes = 0})->blobs == 1);
  CHECK(fs::is_empty(cache.path / kPinsFolder));
}

TEST_CASE(
    "half-written blobs and scratch folders of killed processes are swept, old rows taken out") {
  Cache cache;
  const auto blob = cache.blob("whole", 10);
  const fs::path half = cache.blobs.path(blob).string() + ".Ab12Cd";
  const fs::path fresh = cache.blobs.path(blob).string() + ".Fresh1";
  std::ofstream(half) << "ha";
  std::ofstream(fresh) << "ha";
  fs::last_write_time(half, fs::file_time_type::clock::now() - std::chrono::hours(30));
  fs::create_directories(cache.path / kScratchFolder / (dead_process().tag() + "-lease-000000"));
  const auto run = *cache.store->begin_run(
      {.process = base::this_process(), .started_ms = now_ms(), .command = {}});
  const auto ticket =
      cache.store->append({OutcomeFact{run, test::key_of("a"), test::executed(0.1)},
                           OutcomeFact{run, test::key_of("a"), test::executed(0.2)}});
  while (cache.store->take_news().durable < ticket) {
  }
  CHECK(cache_statistics(cache.path, *cache.store).leftovers == 1);
  const auto pruned = prune_cache(cache.path, *cache.store, {.blob_bytes = 1'000'000});
  REQUIRE(pruned.has_value());
  CHECK(pruned->leftovers == 2);
  CHECK(pruned->rows == 1);
  CHECK(pruned->blobs == 0);
  CHECK_FALSE(fs::exists(half));
  CHECK(fs::exists(fresh));
  CHECK(cache.blobs.has(blob));
  CHECK(cache.store->find(test::key_of("a"))->outcome == *test::executed(0.2));
}

TEST_CASE("what stands in the way in the cache folder is named before any work, with what to do") {
  const base::ScratchFolder scratch =
      *base::ScratchFolder::make(fs::temp_directory_path(), "cache");
  const fs::path cache = scratch.path() / "deep" / "cache";
  REQUIRE(check_cache_folder(cache).has_value());
  CHECK(fs::is_directory(cache));
  for (const fs::path& taken : {cache / kBlobsFolder, cache / kScratchFolder,
                                cache / kSocketsFolder, cache / kBlobsFolder / "3f"}) {
    CAPTURE(taken.string());
    fs::create_directories(taken.parent_path());
    std::ofstream(taken) << "a file where a folder should be";
    const auto checked = check_cache_folder(cache);
    REQUIRE_FALSE(checked.has_value());
    CHECK(checked.error().text().find(taken.string()) != std::string::npos);
    CHECK(checked.error().text().find("move it away, or set LAYERFARM_CACHE_DIR") !=
          std::string::npos);
    fs::remove(taken);
  }
  fs::create_symlink(cache / "nowhere", cache / kPinsFolder);
  CHECK_FALSE(check_cache_folder(cache).has_value());
  fs::remove(cache / kPinsFolder);
  CHECK(check_cache_folder(cache).has_value());
  // A link to a folder elsewhere is somebody's choice.
  fs::create_directories(scratch.path() / "elsewhere");
  fs::remove_all(cache / kBlobsFolder);
  fs::create_symlink(scratch.path() / "elsewhere", cache / kBlobsFolder);
  CHECK(check_cache_folder(cache).has_value());
  std::ofstream(scratch.path() / "file") << "x";
  CHECK(check_cache_folder(scratch.path() / "file").error().text().find("LAYERFARM_CACHE_DIR") !=
        std::string::npos);
}
