#include "worker/toolchain/execute_stage.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "shared/base/files.h"
#include "worker/cache/materialise.h"
#include "worker/toolchain/tool_step.h"

namespace layerfarm::worker::toolchain {
namespace {

using base::Digest;
using domain::Ending;
using domain::Outcome;
using domain::Stage;

class Stopwatch {
 public:
  [[nodiscard]] std::int64_t us() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() -
                                                                 start_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// The blobs a run reads. LostBlob names those that were pruned, so that only they are made again.
std::vector<Digest> lost_inputs(const StageJob& job, const StepContext& context) {
  std::vector<Digest> wanted;
  if (job.prepared != nullptr) wanted = job.prepared->inputs;
  if (job.artifact != nullptr && !job.artifact->blob.is_zero()) {
    wanted.push_back(job.artifact->blob);
    for (const domain::DataFile& file : job.artifact->data) wanted.push_back(file.blob);
  }
  return cache::missing_blobs(context.blobs, wanted);
}

Outcome lost(Stage stage, std::vector<Digest> blobs) {
  Outcome out;
  out.stage = stage;
  out.ending = Ending::LostBlob;
  out.lost = std::move(blobs);
  out.diagnostic = diagnostic(std::string(domain::stage_name(stage)), "lost blob", "");
  return out;
}

Outcome broken(Stage stage, const std::string& where, const base::Error& error) {
  Outcome out;
  out.stage = stage;
  out.ending = Ending::Infrastructure;
  out.diagnostic = infrastructure(where, error);
  return out;
}

/// A context whose scratch folder is a step's own.
StepContext in_folder(const StepContext& context, const std::filesystem::path& folder) {
  StepContext out = context;
  out.scratch = folder;
  return out;
}

/// A plain program's steps share their lease's folder, one after the other and each in an empty
/// one: making and removing a folder is a tenth of a step that takes a millisecond. Steps of
/// toolchains with inputs and artifacts never meet a path twice, so that nothing a resident helper
/// remembers of one can be taken for another's.
bool runs_in_shared_folder(const Needs& needs, const StepContext& context) {
  std::error_code error;
  return !needs.prepare && !needs.compile && !needs.tiny &&
         std::filesystem::symlink_status(context.scratch, error).type() ==
             std::filesystem::file_type::directory &&
         std::filesystem::is_empty(context.scratch, error) && !error;
}

/// Recompare takes the element types from the layer; shapes, which may depend on the values that
/// were fed, it does not need.
bool same_elements(const std::vector<domain::TensorType>& a,
                   const std::vector<domain::TensorType>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.dtype == y.dtype; });
}

/// Adds the comparison of one output. False when the reference is gone or unreadable; then `out`
/// says so.
bool compare_output(const domain::Layer& layer, const domain::Prepared& prepared, std::size_t index,
                    const domain::TensorType& type, base::BytesView actual,
                    const domain::Tolerance& tolerance, const StepContext& context, Outcome& out) {
  const Digest& blob = prepared.expected[index];
  const auto expected = context.blobs.get(blob);
  if (!expected) {
    const bool gone = expected.error().code == base::ErrorCode::NotFound ||
                      expected.error().code == base::ErrorCode::Corrupt;
    out = gone ? lost(out.stage, {blob}) : broken(out.stage, "compare", expected.error());
    return false;
  }
  out.executed->outputs.push_back(compare_result(layer, index, prepared.expected_types[index],
                                                 *expected, type, actual, tolerance));
  return true;
}

}  // namespace

domain::Comparison compare_result(const domain::Layer& layer, std::size_t index,
                                  const domain::TensorType& expected_type, base::BytesView expected,
                                  const domain::TensorType& actual_type, base::BytesView actual,
                                  const domain::Tolerance& tolerance) {
  const auto& open = layer.open_outputs;
  const bool is_open = std::find(open.begin(), open.end(), index) != open.end();
  return (is_open ? domain::compare_size : domain::compare)(expected_type, expected, actual_type,
                                                            actual, tolerance);
}

std::vector<Outcome> compile_stage(Toolchain& toolchain, const domain::ChipSpec& chip,
                                   const domain::ExecutorSpec& executor,
                                   std::span<const CompileJob> jobs, StepContext& context) {
  const Stopwatch watch;
  std::vector<Outcome> out;
  const auto folder = base::ScratchFolder::make(context.scratch, "compile");
  if (!folder) {
    out.assign(jobs.size(), broken(Stage::Compile, "compile", folder.error()));
    return out;
  }
  StepContext step = in_folder(context, folder->path());
  out = toolchain.compile(chip, executor, jobs, step);
  const std::int64_t share = jobs.empty() ? 0 : watch.us() / static_cast<std::int64_t>(jobs.size());
  for (Outcome& one : out) {
    one.stage = Stage::Compile;
    if (one.took_us == 0) one.took_us = share;
  }
  return out;
}

Outcome execute_stage(Toolchain& toolchain, const StageJob& job, const domain::Tolerance& tolerance,
                      StepContext& context) {
  const Stopwatch watch;
  Outcome out;
  out.stage = Stage::Execute;
  if (auto missing = lost_inputs(job, context); !missing.empty())
    return lost(Stage::Execute, std::move(missing));
  std::optional<base::ScratchFolder> own;  // holds the outputs until they are compared
  StepContext step = context;
  const Needs needs = toolchain.needs(job.chip);
  const bool in_shared_folder = runs_in_shared_folder(needs, context);
  if (!needs.tiny && !in_shared_folder) {
    auto folder = base::ScratchFolder::make(context.scratch, "run");
    if (!folder) return broken(Stage::Execute, "run", folder.error());
    own = std::move(*folder);
    step.scratch = own->path();
  }
  RunResult run = toolchain.run(
      job.chip, job.executor,
      {.layer = &job.layer, .artifact = job.artifact, .prepared = job.prepared}, step);
  // Where this leaves something, the next step gets a folder of its own.
  if (in_shared_folder) base::clear_folder(context.scratch);
  out.ending = run.ending;
  out.diagnostic = std::move(run.diagnostic);
  out.lost = std::move(run.lost);
  out.took_us = watch.us();
  if (run.ending != Ending::Done) return out;

  out.executed.emplace();
  out.executed->run_us = run.run_us;
  out.executed->note = std::move(run.note);
  if (job.prepared == nullptr) return out;
  out.executed->expected_outputs = job.prepared->expected.size();
  std::uint64_t bytes = 0;
  bool keep = same_elements(run.types, job.layer.outputs);
  for (std::size_t i = 0; i < run.outputs.size(); ++i) {
    const auto actual = base::read_file(run.outputs[i]);
    if (!actual) return broken(Stage::Execute, "compare", actual.error());
    if (i < job.prepared->expected.size() &&
        !compare_output(job.layer, *job.prepared, i, run.types[i], *actual, tolerance, context,
                        out))
      return out;
    bytes += actual->size();
    if (!keep || bytes > kKeptBytes) {
      keep = false;
      out.executed->actual.clear();
      continue;
    }
    const auto kept = context.blobs.put(*actual);
    if (!kept) return broken(Stage::Execute, "compare", kept.error());
    out.executed->actual.push_back(*kept);
  }
  // More outputs than the reference has: an entry for each, so that the verdict sees both counts.
  for (std::size_t i = job.prepared->expected.size(); i < run.outputs.size(); ++i)
    out.executed->outputs.emplace_back();
  out.took_us = watch.us();
  return out;
}

Outcome recompare_stage(const domain::Layer& layer, const domain::Prepared& prepared,
                        const std::vector<Digest>& kept, const domain::Tolerance& tolerance,
                        StepContext& context) {
  const Stopwatch watch;
  Outcome out;
  out.stage = Stage::Recompare;
  if (auto missing = cache::missing_blobs(context.blobs, kept); !missing.empty())
    return lost(Stage::Recompare, std::move(missing));
  out.ending = Ending::Done;
  out.executed.emplace();
  out.executed->expected_outputs = prepared.expected.size();
  out.executed->actual = kept;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const auto actual = context.blobs.get(kept[i]);
    if (!actual) {
      const bool gone = actual.error().code == base::ErrorCode::NotFound ||
                        actual.error().code == base::ErrorCode::Corrupt;
      return gone ? lost(Stage::Recompare, {kept[i]})
                  : broken(Stage::Recompare, "compare", actual.error());
    }
    if (i >= prepared.expected.size()) {
      out.executed->outputs.emplace_back();
    } else {
      const domain::TensorType& type =
          i < layer.outputs.size() ? layer.outputs[i] : prepared.expected_types[i];
      if (!compare_output(layer, prepared, i, type, *actual, tolerance, context, out)) return out;
    }
  }
  out.took_us = watch.us();
  return out;
}

Outcome time_stage(Toolchain& toolchain, const StageJob& job, int runs, StepContext& context) {
  const Stopwatch watch;
  Outcome out;
  out.stage = Stage::Time;
  if (auto missing = lost_inputs(job, context); !missing.empty())
    return lost(Stage::Time, std::move(missing));
  const auto folder = base::ScratchFolder::make(context.scratch, "time");
  if (!folder) return broken(Stage::Time, "run", folder.error());
  StepContext step = in_folder(context, folder->path());
  TimeResult timed = toolchain.time(
      job.chip, job.executor,
      {.layer = &job.layer, .artifact = job.artifact, .prepared = job.prepared}, runs, step);
  out.ending = timed.ending;
  out.diagnostic = std::move(timed.diagnostic);
  out.took_us = watch.us();
  if (timed.ending == Ending::Done)
    out.timed = domain::Timed{.runs_us = std::move(timed.runs_us), .what = std::move(timed.what)};
  return out;
}

}  // namespace layerfarm::worker::toolchain
