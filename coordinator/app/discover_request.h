// What a discover run gets, and what it comes to. Plain values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/app/input_files.h"
#include "coordinator/app/model_list.h"
#include "coordinator/app/options.h"
#include "coordinator/app/worker_probe.h"
#include "coordinator/plan/plan_request.h"

namespace layerfarm::coordinator::app {

/// A request that has passed all checks.
struct DiscoverRequest {
  DiscoverOptions options;
  std::vector<ModelFile> models;
  std::vector<std::shared_ptr<const plan::PlanChip>> chips;
  MachineDescription machine;
  InputFiles inputs;
  std::filesystem::path output_folder;  ///< absolute
  std::filesystem::path cache;
  std::vector<std::string> command;
};

/// How a run went, for the exit code.
struct RunResult {
  std::uint64_t failing_errors = 0;
  std::uint64_t stored_errors = 0;  ///< of these, taken from the store
  std::uint64_t failing_differences = 0;
  std::uint64_t unsettled = 0;
  std::uint64_t fresh = 0;    ///< cases that were run now
  bool model_failed = false;  ///< a model could not be read
  bool interrupted = false;
  bool files_failed = false;  ///< a report could not be written
};

}  // namespace layerfarm::coordinator::app
