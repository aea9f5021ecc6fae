#include "worker/app/lease_runner.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "shared/base/files.h"

namespace layerfarm::worker::app {
using domain::Ending;
using domain::Outcome;
using domain::Stage;
using protocol::LeasedJob;

namespace {

// These keep one bad case from taking the machine with it.
constexpr std::int64_t kOutputBytes = std::int64_t{64} << 20;
constexpr std::int64_t kFileBytes = std::int64_t{16} << 30;
constexpr double kMemoryShare = 0.75;
/// Tiny cases are begun together only for so long: what runs must be known when a worker dies.
constexpr auto kTinySlice = std::chrono::milliseconds(20);
/// After "waits for". The coordinator sees to it that its own workers are not what is waited for.
constexpr const char* kWaitsToTime =
    "other farms on this machine to finish their work before it takes times";
constexpr const char* kWaitsForTiming = "another farm on this machine that takes times";

std::int64_t first_set(std::int64_t a, std::int64_t b, std::int64_t otherwise) {
  return a != 0 ? a : b != 0 ? b : otherwise;
}

Outcome ended(Stage stage, Ending ending, std::string where, std::string text) {
  Outcome out;
  out.stage = stage;
  out.ending = ending;
  out.diagnostic.where = std::move(where);
  out.diagnostic.cause = std::string(domain::ending_name(ending));
  out.diagnostic.text = std::move(text);
  return out;
}

}  // namespace

domain::Limits complete_limits(const domain::Limits& given, const domain::Limits& chip,
                               std::int64_t machine_memory_bytes) {
  domain::Limits out;
  out.compile_timeout_ms = first_set(given.compile_timeout_ms, chip.compile_timeout_ms,
                                     domain::kDefaultCompileTimeoutMs);
  out.run_timeout_ms =
      first_set(given.run_timeout_ms, chip.run_timeout_ms, domain::kDefaultRunTimeoutMs);
  out.memory_bytes = first_set(
      given.memory_bytes, chip.memory_bytes,
      static_cast<std::int64_t>(kMemoryShare * static_cast<double>(machine_memory_bytes)));
  out.output_bytes = first_set(given.output_bytes, chip.output_bytes, kOutputBytes);
  out.file_bytes = first_set(given.file_bytes, chip.file_bytes, kFileBytes);
  return out;
}

/// A lease being worked on.
struct LeaseRunner::Work {
  const protocol::Lease& lease;
  LeaseControl& control;
  std::filesystem::path scratch;
  domain::Limits limits;
  std::vector<std::optional<Outcome>> results;  ///< by job; empty = not done yet

  /// The result that a job builds on: of this lease, or given with it. Null when it has none.
  [[nodiscard]] const domain::Prepared* prepared(const LeasedJob& job) const {
    if (job.prepare_job >= 0) {
      const auto& result = results[static_cast<std::size_t>(job.prepare_job)];
      return result && result->prepared ? &*result->prepared : nullptr;
    }
    return job.prepared >= 0 ? &lease.prepared[static_cast<std::size_t>(job.prepared)] : nullptr;
  }
  [[nodiscard]] const domain::Artifact* artifact(const LeasedJob& job) const {
    if (job.compile_job >= 0) {
      const auto& result = results[static_cast<std::size_t>(job.compile_job)];
      return result && result->artifact ? &*result->artifact : nullptr;
    }
    return job.artifact >= 0 ? &lease.artifacts[static_cast<std::size_t>(job.artifact)] : nullptr;
  }
  /// Whether an earlier job of the lease that this one builds on gave no result.
  [[nodiscard]] bool blocked(const LeasedJob& job) const {
    const auto failed = [this](std::int32_t index) {
      if (index < 0) return false;
      const auto& result = results[static_cast<std::size_t>(index)];
      return !result || result->ending != Ending::Done;
    };
    return failed(job.prepare_job) || failed(job.compile_job);
  }
};

LeaseRunner::LeaseRunner(Settings settings, process::ProcessRunner& runner,
                         toolchain::Helpers& helpers, const base::BlobFolder& blobs, Stages& stages)
    : settings_(std::move(settings)),
      runner_(runner),
      helpers_(helpers),
      blobs_(blobs),
      stages_(stages),
      lock_(settings_.locks) {}

toolchain::StepContext LeaseRunner::context(Work& work, int memory_factor) {
  domain::Limits limits = work.limits;
  limits.memory_bytes =
      std::min(limits.memory_bytes * memory_factor, settings_.machine_memory_bytes);
  return {runner_, helpers_, blobs_, work.control.token(), work.scratch, settings_.cores, limits};
}

void LeaseRunner::run(const protocol::Lease& lease, LeaseControl& control) {
  Work work{lease,
            control,
            {},
            complete_limits(lease.limits, lease.chip.limits, settings_.machine_memory_bytes),
            {}};
  work.results.resize(lease.jobs.size());
  std::optional<base::ScratchFolder> scratch;
  if (!all_tiny(lease)) {
    auto made = base::ScratchFolder::make(settings_.scratch, "lease");
    if (!made) {
      std::vector<protocol::AttemptOutcome> all;
      for (const LeasedJob& job : lease.jobs) {
        all.push_back({job.attempt,
                       ended(job.stage, Ending::Infrastructure, "scratch", made.error().text())});
      }
      control.end(std::move(all));
      return;
    }
    scratch = std::move(*made);
    work.scratch = scratch->path();
  }
  const bool timing = std::any_of(lease.jobs.begin(), lease.jobs.end(),
                                  [](const LeasedJob& job) { return job.stage == Stage::Time; });
  const bool locked = lock_.acquire(
      timing ? MachineLock::Kind::Exclusive : MachineLock::Kind::Shared, control.token(),
      {.tell = [&] { control.waits(timing ? kWaitsToTime : kWaitsForTiming); }});
  // Not locked means cancelled; each job then finds itself cancelled below and is answered so.
  for (std::size_t i = 0; i < lease.jobs.size(); ++i) {
    if (!work.results[i]) run_job(work, i);
  }
  if (locked) lock_.release();
}

/// Whether nothing in the lease writes or starts anything.
bool LeaseRunner::all_tiny(const protocol::Lease& lease) const {
  return stages_.tiny(lease.chip) &&
         std::all_of(lease.jobs.begin(), lease.jobs.end(),
                     [](const LeasedJob& job) { return job.stage == Stage::Execute; });
}

void LeaseRunner::run_job(Work& work, std::size_t index) {
  const LeasedJob& job = work.lease.jobs[index];
  if (work.blocked(job)) {
    work.results[index] = ended(job.stage, Ending::Cancelled, "", "");
    work.control.end(job, *work.results[index]);
    return;
  }
  if (job.stage == Stage::Compile) {
    run_compile(work, index);
    return;
  }
  if (job.stage == Stage::Execute && stages_.tiny(work.lease.chip)) {
    run_tiny(work, index);
    return;
  }
  const auto outcomes =
      uninterrupted(work, {job}, [&](const std::vector<LeasedJob>&, toolchain::StepContext& step) {
        return std::vector<Outcome>{run_stage(work, job, step)};
      });
  work.results[index] =
      outcomes.empty() ? ended(job.stage, Ending::Cancelled, "", "") : outcomes.front();
  if (!outcomes.empty()) work.control.end(job, outcomes.front());
}

template <typename Run>
std::vector<Outcome> LeaseRunner::uninterrupted(Work& work, const std::vector<LeasedJob>& jobs,
                                                Run run) {
  std::vector<LeasedJob> wanted = work.control.begin(jobs);
  while (!wanted.empty()) {
    const int factor =
        std::max_element(wanted.begin(), wanted.end(), [](const LeasedJob& a, const LeasedJob& b) {
          return a.memory_factor < b.memory_factor;
        })->memory_factor;
    toolchain::StepContext step = context(work, factor);
    std::vector<Outcome> outcomes = run(wanted, step);
    const bool interrupted = std::any_of(outcomes.begin(), outcomes.end(), [](const Outcome& o) {
      return o.ending == Ending::Cancelled;
    });
    const bool meant = std::any_of(wanted.begin(), wanted.end(), [&](const LeasedJob& job) {
      return work.control.cancelled(job);
    });
    if (!interrupted || meant) return outcomes;
    // The cancellation was for a step that ended just before this one began.
    wanted = work.control.begin(wanted);
  }
  return std::vector<Outcome>{};
}

void LeaseRunner::run_compile(Work& work, std::size_t index) {
  const std::vector<LeasedJob>& jobs = work.lease.jobs;
  std::vector<std::size_t> places;
  for (std::size_t i = index; i < jobs.size(); ++i) {
    if (jobs[i].stage != Stage::Compile || work.results[i] ||
        jobs[i].executor != jobs[index].executor)
      continue;
    places.push_back(i);
    if (!work.lease.compile_together) break;
  }
  std::vector<LeasedJob> batch;
  for (const std::size_t place : places) batch.push_back(jobs[place]);
  std::vector<LeasedJob> compiled;
  const auto outcomes = uninterrupted(
      work, batch, [&](const std::vector<LeasedJob>& wanted, toolchain::StepContext& step) {
        compiled = wanted;
        std::vector<const domain::Layer*> layers;
        for (const LeasedJob& job : wanted)
          layers.push_back(work.lease.layers[job.layer].layer.get());
        return stages_.compile(work.lease.chip, work.lease.chip.executors[jobs[index].executor],
                               layers, step);
      });
  // Those that were cancelled before the beginning are answered already; nothing may build on them.
  for (const std::size_t place : places)
    work.results[place] = ended(Stage::Compile, Ending::Cancelled, "", "");
  std::vector<protocol::AttemptOutcome> answers;
  for (std::size_t i = 0; i < compiled.size() && i < outcomes.size(); ++i) {
    for (const std::size_t place : places) {
      if (jobs[place].attempt == compiled[i].attempt) work.results[place] = outcomes[i];
    }
    answers.push_back({compiled[i].attempt, outcomes[i]});
  }
  if (!answers.empty()) work.control.end(std::move(answers));
}

void LeaseRunner::run_tiny(Work& work, std::size_t index) {
  const std::vector<LeasedJob>& jobs = work.lease.jobs;
  std::vector<LeasedJob> slice;
  std::size_t end = index;
  for (; end < jobs.size() && jobs[end].stage == Stage::Execute && !work.blocked(jobs[end]); ++end)
    slice.push_back(jobs[end]);
  const std::vector<LeasedJob> wanted = work.control.begin(slice);
  // Answered below, or cancelled before they began; nothing builds on them.
  for (std::size_t i = index; i < end; ++i) work.results[i].emplace().ending = Ending::Cancelled;
  std::vector<protocol::AttemptOutcome> answers;
  answers.reserve(wanted.size());
  toolchain::StepContext step = context(work, 1);
  auto last = std::chrono::steady_clock::now();
  for (const LeasedJob& job : wanted) {
    answers.push_back({job.attempt, run_stage(work, job, step)});
    const auto now = std::chrono::steady_clock::now();
    if (now - last < kTinySlice) continue;
    work.control.end(std::exchange(answers, {}));
    last = now;
  }
  if (!answers.empty()) work.control.end(std::move(answers));
}

Outcome LeaseRunner::run_stage(Work& work, const LeasedJob& job, toolchain::StepContext& context) {
  const protocol::Lease& lease = work.lease;
  if (job.stage == Stage::Analyze) return stages_.analyze(lease.analyze[job.layer], context);
  if (job.stage == Stage::Whole)
    return stages_.whole(lease.chip, lease.whole[job.layer], lease.inputs, job.tolerance, context);
  const domain::Layer& layer = *lease.layers[job.layer].layer;
  if (job.stage == Stage::Prepare) return stages_.prepare(layer, lease.inputs, context);
  const toolchain::StageJob request{lease.chip, lease.chip.executors[job.executor], layer,
                                    work.artifact(job), work.prepared(job)};
  switch (job.stage) {
    case Stage::Execute:
      return stages_.execute(request, job.tolerance, context);
    case Stage::Recompare:
      return stages_.recompare(request, job.kept, job.tolerance, context);
    case Stage::Time:
      return stages_.time(request, job.runs, context);
    case Stage::Analyze:
    case Stage::Prepare:
    case Stage::Compile:
    case Stage::Whole:
      break;  // handled by the callers
  }
  return ended(job.stage, Ending::Infrastructure, "lease", "this worker cannot do this stage");
}

}  // namespace layerfarm::worker::app
