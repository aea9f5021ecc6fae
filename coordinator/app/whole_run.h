// WholeRun: one accepted `run` from model and assignment to its result: the model is read, split by
// the assignment, and run as one job. What the store knows is not done again. Loop thread only.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/app/console.h"
#include "coordinator/app/input_files.h"
#include "coordinator/app/job_sequence.h"
#include "coordinator/app/local_farm.h"
#include "coordinator/app/options.h"
#include "coordinator/plan/plan_request.h"
#include "coordinator/report/assignment.h"
#include "coordinator/report/whole_report.h"
#include "coordinator/store/store.h"
#include "shared/base/result.h"

namespace layerfarm::coordinator::app {

/// A request that has passed all checks.
struct WholeRunRequest {
  RunOptions options;
  std::filesystem::path model;
  std::shared_ptr<const plan::PlanChip> chip;
  bool takes_map = false;          ///< the chip's toolchain compiles the whole model by a map
  domain::ToolIdentity reader;     ///< what reads models
  domain::ToolIdentity reference;  ///< what makes references
  InputFiles inputs;
  domain::Tolerance tolerance;
  report::AssignmentFile assignment;
  std::filesystem::path assignment_path;  ///< where it was read
  std::filesystem::path cache;
};

struct WholeRunResult {
  report::WholeResult result;
  std::map<std::string, std::string> locations;  ///< layer id -> `mlir_location` now
  bool fresh = false;                            ///< it was run now
  std::optional<base::Digest> ir_dump;           ///< of its compilations, where dumps are wanted
};

class WholeModelRun {
 public:
  WholeModelRun(WholeRunRequest request, Console& console, store::Store& store, LocalFarm& farm)
      : request_(std::move(request)), console_(console), store_(store), sequence_(console) {
    dispatcher_ = farm.dispatcher(sequence_);
  }

  /// InvalidInput for a model that cannot be read; Unavailable where there is no verdict; Cancelled
  /// after an interrupt.
  [[nodiscard]] base::Result<WholeRunResult> go();

 private:
  using Analysis = std::shared_ptr<const domain::ModelAnalysis>;
  struct Read {
    Analysis model;
    base::Digest blob;
  };
  [[nodiscard]] base::Result<WholeRunResult> steps();
  [[nodiscard]] base::Result<Read> read(const base::Digest& model_file,
                                        const domain::AnalyzeRequest& request);
  void say_open_outputs(const domain::ModelAnalysis& split);
  [[nodiscard]] base::Result<void> check_given(const domain::ModelAnalysis& split);
  [[nodiscard]] base::Result<std::vector<std::string>> executors_of(
      const domain::ModelAnalysis& model, const std::map<std::string, std::string>& locations);
  [[nodiscard]] bool goes_with_neighbours(const std::string& layer_id) const;
  [[nodiscard]] base::Result<report::WholeResult> run(const Read& split,
                                                      std::vector<std::string> executors,
                                                      WholeRunResult& out);

  WholeRunRequest request_;
  Console& console_;
  store::Store& store_;
  JobSequence sequence_;
  std::unique_ptr<Dispatcher> dispatcher_;
};

}  // namespace layerfarm::coordinator::app
