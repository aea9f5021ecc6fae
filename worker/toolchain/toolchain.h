// Toolchain: how a layer is compiled and run with one tool. One adapter = one file that implements
// this interface and one line in registry.cpp (docs/adding-a-toolchain.md). Called on the worker's
// job thread only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/blob_folder.h"
#include "shared/domain/chip.h"
#include "shared/domain/keys.h"
#include "shared/domain/layer.h"
#include "shared/domain/outcome.h"
#include "worker/process/process_runner.h"

namespace layerfarm::worker::toolchain {

/// Answer of a resident helper: a JSON text, or why there is none. An answer with "ok": false is a
/// refusal: its "where" and "text" are in the diagnostic, the whole JSON stays for callers that
/// want more of it.
struct HelperAnswer {
  domain::Ending ending = domain::Ending::Infrastructure;
  std::string json;               ///< ending == Done or Refused
  domain::Diagnostic diagnostic;  ///< ending != Done
};

/// The worker's resident children: layerfarm-ort and the Python sidecar. Started on first use,
/// renewed after so many jobs, when grown, or when dead.
class Helpers {
 public:
  virtual ~Helpers() = default;
  /// `request` is a JSON object with "op"; docs/helpers.md lists the operations. A helper that dies
  /// in hand is reported, not retried.
  virtual HelperAnswer ort(const std::string& request, const process::Bounds& bounds) = 0;
  virtual HelperAnswer sidecar(const std::string& request, const process::Bounds& bounds) = 0;
};

/// What a stage may use. Lives as long as the lease that it serves.
struct StepContext {
  process::ProcessRunner& runner;
  Helpers& helpers;
  const base::BlobFolder& blobs;
  const process::CancelToken& cancel;
  std::filesystem::path scratch;  ///< a folder of this lease's own, removed afterwards
  std::vector<int> cores;         ///< the worker's cores
  domain::Limits limits;          ///< chip file under the user's flags; no field is zero
};

/// What a machine has of a toolchain, for one chip.
struct Probe {
  bool found = false;
  domain::ToolIdentity identity;  ///< found
  std::string missing;            ///< not found: what is missing, for people
  std::string how_to_get;         ///< not found: what to do
};

/// What must be done before a layer can run.
struct Needs {
  bool prepare = true;      ///< inputs and reference
  bool compile = true;      ///< an artifact
  std::uint32_t batch = 1;  ///< most layers that one compile may take together
  /// One compile takes a whole model and the executor of each of its operators; else a whole model
  /// is run segment by segment.
  bool takes_map = false;
  bool tiny = false;  ///< running a case starts nothing and writes nothing: it gets no scratch
                      ///< folder, and many may be begun together
};

struct CompileJob {
  const domain::Layer* layer = nullptr;
  /// With Needs::takes_map, for a whole model: executor of each operator, in the model's order;
  /// empty names leave the choice to the compiler. The executor of the call then chooses nothing.
  const std::vector<std::string>* executors = nullptr;
};

/// Outputs of a run as files of raw arrays in the step's scratch folder, or why there are none.
struct RunResult {
  domain::Ending ending = domain::Ending::Infrastructure;
  std::vector<domain::TensorType> types;       ///< Done: one per output
  std::vector<std::filesystem::path> outputs;  ///< Done: one per output
  std::int64_t run_us = 0;
  std::string note;
  domain::Diagnostic diagnostic;   ///< else
  std::vector<base::Digest> lost;  ///< LostBlob
};

struct RunJob {
  const domain::Layer* layer = nullptr;
  const domain::Artifact* artifact = nullptr;  ///< null when the toolchain needs no compile
  const domain::Prepared* prepared = nullptr;  ///< null when it needs no prepare
};

/// Runs of the timing stage.
struct TimeResult {
  domain::Ending ending = domain::Ending::Infrastructure;
  std::vector<std::int64_t> runs_us;
  std::string what;
  domain::Diagnostic diagnostic;
};

class Toolchain {
 public:
  virtual ~Toolchain() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual Needs needs(const domain::ChipSpec& chip) const = 0;
  /// What this machine has; quick (no tool is started; what is read from disk is memoised).
  [[nodiscard]] virtual Probe probe(const domain::ChipSpec& chip) const = 0;
  /// Compiles layers for one executor, together where the tool can; answers in the order of `jobs`,
  /// each with Stage::Compile.
  virtual std::vector<domain::Outcome> compile(const domain::ChipSpec& chip,
                                               const domain::ExecutorSpec& executor,
                                               std::span<const CompileJob> jobs,
                                               StepContext& context) = 0;
  /// Runs one layer once.
  virtual RunResult run(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor,
                        const RunJob& job, StepContext& context) = 0;
  /// One warm-up, then `runs` timed runs.
  virtual TimeResult time(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor,
                          const RunJob& job, int runs, StepContext& context) = 0;
};

/// Every toolchain that this program knows, by name; null when there is none of that name.
[[nodiscard]] std::unique_ptr<Toolchain> make_toolchain(std::string_view name);
[[nodiscard]] std::vector<std::string> toolchain_names();

}  // namespace layerfarm::worker::toolchain
