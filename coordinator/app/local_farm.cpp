#include "coordinator/app/local_farm.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <utility>

#include "coordinator/app/chip_choice.h"
#include "coordinator/store/cache.h"
#include "shared/base/leftovers.h"
#include "shared/base/places.h"
#include "shared/base/process_identity.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::fail;
using base::Result;

namespace {

/// Bound for blobs where `layerfarm cache prune` is never called.
constexpr std::uint64_t kCacheBound = std::uint64_t{20} << 30;

/// The socket that local workers connect to: in a folder only this user can enter.
Result<base::ScratchFolder> socket_folder(const fs::path& cache) {
  // A socket's path has at most 107 characters; a deep cache folder is no reason to fail.
  constexpr std::size_t kMostPath = 80;
  const fs::path parent = cache / store::kSocketsFolder;
  base::sweep_leftovers(parent);  // of coordinators that were killed
  std::error_code error;
  const fs::path other = fs::temp_directory_path(error);
  return base::ScratchFolder::make(parent.string().size() <= kMostPath || error ? parent : other,
                                   "s");
}

/// Attempts of a later coordinator must have greater numbers than those of any earlier one, so the
/// epoch is the wall clock.
std::uint64_t make_epoch() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

Result<std::string> write_chips(const fs::path& folder,
                                const std::vector<domain::ChipSpec>& chips) {
  std::string text = "[";
  for (const domain::ChipSpec& chip : chips)
    text += (text.size() > 1 ? "," : "") + domain::chip_json(chip);
  const fs::path path = folder / "chips.json";
  if (auto written = base::write_file_atomically(path, text + "]", base::Sync::No); !written)
    return fail(written.error());
  return path.string();
}

}  // namespace

FarmSettings farm_settings(const DiscoverOptions& options,
                           const std::vector<std::string>& command) {
  FarmSettings out;
  out.cache = base::cache_folder();
  out.limits.compile_timeout_ms = options.compile_timeout_ms;
  out.limits.run_timeout_ms = options.run_timeout_ms;
  out.limits.memory_bytes = options.memory_bytes;
  out.wait_workers = std::chrono::milliseconds(options.wait_workers_ms);
  out.command = command;
  return out;
}

Result<std::unique_ptr<LocalFarm>> LocalFarm::open(FarmSettings settings,
                                                   store::SqliteStore& store) {
  store::RunStart start;
  start.process = base::this_process();
  start.started_ms = static_cast<std::int64_t>(std::time(nullptr)) * 1000;
  start.command = settings.command;
  auto run = store.begin_run(start);
  if (!run) return fail(run.error());
  auto sockets = socket_folder(settings.cache);
  if (!sockets) return fail(sockets.error());
  auto chips_file = write_chips(sockets->path(), settings.chips);
  if (!chips_file) return fail(chips_file.error());
  const std::string endpoint = "ipc://" + (sockets->path() / "w").string();
  const std::size_t workers = settings.workers;
  std::unique_ptr<LocalFarm> out(
      new LocalFarm(std::move(settings), store, *run, std::move(*sockets)));
  auto socket = transport::Socket::bind(out->context_, endpoint, transport::LinkSettings{});
  if (!socket) return fail(socket.error());
  out->epoch_ = make_epoch();
  out->hub_ = std::make_unique<WorkerHub>(std::move(*socket), out->epoch_);
  out->workers_ = std::make_unique<LocalWorkers>(LocalWorkers::Settings{
      worker_program(), share_cores(workers), {"--connect", endpoint, "--chips", *chips_file}});
  return out;
}

std::unique_ptr<Dispatcher> LocalFarm::dispatcher(JobSource& source) {
  Dispatcher::Settings settings;
  settings.policy.first_attempt = (epoch_ << 24) + 1;
  settings.policy.wait_workers = settings_.wait_workers;
  settings.epoch = epoch_;
  settings.run = run_;
  settings.limits = settings_.limits;
  settings.chips = settings_.chips;
  return std::make_unique<Dispatcher>(std::move(settings), *hub_, store_, workers_.get(), source);
}

void keep_cache_small(const fs::path& cache, store::SqliteStore& store, Console& console) {
  auto pruned = store::prune_cache(cache, store, {.blob_bytes = kCacheBound, .compact = false});
  if (!pruned) {
    console.say_verbose("[Cache] " + pruned.error().text());
  } else if (pruned->blobs > 0) {
    console.say_verbose(
        fmt::format("[Cache] {} blobs used longest ago were removed", pruned->blobs));
  }
}

}  // namespace layerfarm::coordinator::app
