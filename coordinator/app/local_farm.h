// LocalFarm: what a command that works on this machine alone needs around a dispatcher: a socket in
// a folder of its own, workers that connect to it, and its run in the store. Loop thread only.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/app/console.h"
#include "coordinator/app/dispatcher.h"
#include "coordinator/app/local_workers.h"
#include "coordinator/app/options.h"
#include "coordinator/app/worker_hub.h"
#include "coordinator/store/sqlite_store.h"
#include "shared/base/files.h"
#include "shared/base/result.h"
#include "shared/domain/chip.h"

namespace layerfarm::coordinator::app {

struct FarmSettings {
  std::filesystem::path cache;
  std::size_t workers = 1;
  std::vector<domain::ChipSpec> chips;
  domain::Limits limits;  ///< the user's
  std::chrono::milliseconds wait_workers{0};
  std::vector<std::string> command;  ///< what the user wrote
};

/// The user's cache, limits and patience; workers and chips are the command's.
[[nodiscard]] FarmSettings farm_settings(const DiscoverOptions& options,
                                         const std::vector<std::string>& command);

class LocalFarm {
 public:
  /// Begins a run in the store, which must outlive this. No worker is started before there is work.
  [[nodiscard]] static base::Result<std::unique_ptr<LocalFarm>> open(FarmSettings settings,
                                                                     store::SqliteStore& store);
  [[nodiscard]] store::RunId run() const { return run_; }
  /// At most one; it must not outlive this, nor the source it.
  [[nodiscard]] std::unique_ptr<Dispatcher> dispatcher(JobSource& source);

 private:
  LocalFarm(FarmSettings settings, store::SqliteStore& store, store::RunId run,
            base::ScratchFolder sockets)
      : settings_(std::move(settings)), store_(store), run_(run), sockets_(std::move(sockets)) {}

  FarmSettings settings_;
  store::SqliteStore& store_;
  store::RunId run_;
  std::uint64_t epoch_ = 1;
  base::ScratchFolder sockets_;
  transport::Context context_;
  std::unique_ptr<WorkerHub> hub_;
  std::unique_ptr<LocalWorkers> workers_;
};

/// Blobs beyond the bound go at the end of a run that made some; a warm run does not pay for
/// looking.
void keep_cache_small(const std::filesystem::path& cache, store::SqliteStore& store,
                      Console& console);

}  // namespace layerfarm::coordinator::app
