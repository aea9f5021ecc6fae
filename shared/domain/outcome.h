// Outcome: what one attempt of a job gave. Facts only: no tolerance is in it, verdicts are derived
// (verdict.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/digest.h"
#include "shared/domain/comparison.h"
#include "shared/domain/layer.h"

namespace layerfarm::domain {

enum class Stage : std::uint8_t {
  Analyze = 1,
  Prepare = 2,
  Compile = 3,
  Execute = 4,
  Recompare = 5,
  Time = 6,
  Whole = 7  ///< a whole model by its assignment: prepared, compiled, run and compared in one job
};
/// Size of a table by stage number.
inline constexpr std::size_t kStageNumbers = 8;
[[nodiscard]] std::string_view stage_name(Stage stage);  ///< "analyze", "prepare" ...

/// How an attempt ended (design.md, section 6). The first two answer a key for later runs too; the
/// rest are tried again by the next run.
enum class Ending : std::uint8_t {
  Done = 1,  ///< the stage did its work; for execute this includes a comparison that will be judged
  Refused = 2,         ///< the tool said no (exit code, error text): final
  Crashed = 3,         ///< tool or helper died by a signal
  TimedOut = 4,        ///< its time was up
  OverMemory = 5,      ///< more memory than allowed
  OverOutput = 6,      ///< printed or wrote more than allowed: final for this run
  Infrastructure = 7,  ///< not the case's fault: disk full, tool missing here, blob damaged
  LostBlob = 8,        ///< something it needs was pruned; `lost` names it: its producer runs again
  Cancelled = 9,       ///< asked to stop; no verdict
};
[[nodiscard]] std::string_view ending_name(Ending ending);
/// Whether a later run takes this from the store.
[[nodiscard]] constexpr bool answers_later_runs(Ending ending) {
  return ending == Ending::Done || ending == Ending::Refused;
}

/// Why something did not work, as far as the report shows it.
struct Diagnostic {
  std::string where;  ///< step that failed: "import", "reference", "compile", "run", "compare"; ""
                      ///< when none did
  std::string cause;  ///< short class: "refused", "crashed: SIGSEGV", "timed out after 240 s" ...
  std::string
      text;  ///< normalised (no paths, addresses, dates, colours), at most 4 KiB, for people
  base::Digest raw;  ///< blob of the whole output and command lines; zero when there is none
  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

/// Inputs and reference outputs of a layer: what prepare makes.
struct Prepared {
  std::vector<base::Digest> inputs;    ///< raw arrays, in module argument order
  std::vector<base::Digest> expected;  ///< raw arrays, in module result order
  std::vector<TensorType> expected_types;
  std::string reference;  ///< engine and version that made them: "onnxruntime 1.32.0",
                          ///< "onnxruntime 1.32.0 (float32, rounded)", "iree 3.13.0 (llvm-cpu)"
  friend bool operator==(const Prepared&, const Prepared&) = default;
};

/// What compile makes.
struct Artifact {
  base::Digest blob;
  std::vector<DataFile> data;   ///< files beside it (context binaries)
  std::string function;         ///< entry in the artifact; several layers may share one artifact
  std::int64_t compile_us = 0;  ///< own share of the time (a batch's time / n)
  std::uint32_t batch = 1;      ///< how many layers were compiled together
  std::string note;             ///< e.g. "raised to opset 17"; shown with the result
  friend bool operator==(const Artifact&, const Artifact&) = default;
};

/// What execute makes: outputs compared.
struct Executed {
  std::vector<Comparison> outputs;
  std::size_t expected_outputs = 0;
  std::vector<base::Digest> actual;  ///< kept outputs for recompare; may be pruned
  std::int64_t run_us = 0;           ///< wall time of the step, for the summary; not a timing
  std::string note;
  friend bool operator==(const Executed&, const Executed&) = default;
};

/// What time makes (microseconds, per run, warm-up excluded).
struct Timed {
  std::vector<std::int64_t> runs_us;
  std::string what;  ///< what was measured: "iree-run-module process", "session run" ...
  friend bool operator==(const Timed&, const Timed&) = default;
};

/// One segment of a whole model's run.
struct SegmentRun {
  std::string executor;
  std::uint32_t operators = 0;       ///< how many of the model's it holds
  std::vector<std::string> results;  ///< names in the model of what leaves it
  std::vector<Comparison> boundary;  ///< of these, in their order; empty when not asked for
  std::int64_t run_us = 0;
  std::string note;
  friend bool operator==(const SegmentRun&, const SegmentRun&) = default;
};

/// What running a whole model makes.
struct WholeRun {
  std::vector<Comparison> outputs;  ///< of the model's results, in their order
  std::size_t expected_outputs = 0;
  std::vector<SegmentRun> segments;  ///< in the order they ran
  std::uint64_t bytes_crossed = 0;   ///< bytes of tensors that went from one executor to another
  std::string reference;             ///< engine and version, as Prepared has it
  friend bool operator==(const WholeRun&, const WholeRun&) = default;
};

struct Outcome {
  Stage stage = Stage::Execute;
  Ending ending = Ending::Infrastructure;
  Diagnostic diagnostic;                 ///< when ending != Done
  std::optional<Prepared> prepared;      ///< stage Prepare, Done
  std::optional<Artifact> artifact;      ///< stage Compile, Done
  std::optional<Executed> executed;      ///< stages Execute and Recompare, Done
  std::optional<Timed> timed;            ///< stage Time, Done
  std::optional<WholeRun> whole;         ///< stage Whole, Done
  std::optional<base::Digest> analysis;  ///< stage Analyze, Done: blob of the encoded ModelAnalysis
  /// Stage Compile, however it ended, where the chip's options ask for it: blob of a bundle of the
  /// compiler's intermediate forms (base/file_bundle.h).
  std::optional<base::Digest> ir_dump;
  std::vector<base::Digest> lost;  ///< LostBlob
  std::int64_t took_us = 0;
  std::string tool;  ///< tool and version that answered
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

}  // namespace layerfarm::domain
