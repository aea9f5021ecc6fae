// LeaseRunner: works through a lease, stage by stage, and answers each of its jobs. Job thread
// only.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "shared/base/blob_folder.h"
#include "worker/app/job_thread.h"
#include "worker/app/machine_lock.h"
#include "worker/app/stages.h"

namespace layerfarm::worker::app {

class LeaseRunner {
 public:
  struct Settings {
    std::filesystem::path scratch;  ///< parent of the scratch folders
    std::filesystem::path locks;    ///< folder of the machine's locks
    std::vector<int> cores;
    std::int64_t machine_memory_bytes = 0;  ///< no claim goes above it
  };
  LeaseRunner(Settings settings, process::ProcessRunner& runner, toolchain::Helpers& helpers,
              const base::BlobFolder& blobs, Stages& stages);

  void run(const protocol::Lease& lease, LeaseControl& control);

 private:
  struct Work;
  void run_job(Work& work, std::size_t index);
  void run_compile(Work& work, std::size_t index);
  void run_tiny(Work& work, std::size_t index);
  [[nodiscard]] bool all_tiny(const protocol::Lease& lease) const;
  /// Runs the stage again when it was ended for a cancellation that was not its own.
  template <typename Run>
  std::vector<domain::Outcome> uninterrupted(Work& work,
                                             const std::vector<protocol::LeasedJob>& jobs, Run run);
  [[nodiscard]] domain::Outcome run_stage(Work& work, const protocol::LeasedJob& job,
                                          toolchain::StepContext& context);
  [[nodiscard]] toolchain::StepContext context(Work& work, int memory_factor);

  Settings settings_;
  process::ProcessRunner& runner_;
  toolchain::Helpers& helpers_;
  const base::BlobFolder& blobs_;
  Stages& stages_;
  MachineLock lock_;
};

/// Limits with the program's defaults where neither the chip file nor the user said anything.
[[nodiscard]] domain::Limits complete_limits(const domain::Limits& given,
                                             const domain::Limits& chip,
                                             std::int64_t machine_memory_bytes);

}  // namespace layerfarm::worker::app
