#include "worker/app/lease_runner.h"

#include <doctest/doctest.h>

#include <poll.h>

#include <atomic>
#include <map>
#include <thread>

#include "shared/base/files.h"

using namespace layerfarm;
using namespace layerfarm::worker;
using namespace layerfarm::worker::app;
using domain::Ending;
using domain::Stage;
using protocol::AttemptId;

namespace {

struct NoRunner : process::ProcessRunner {
  process::ProcessResult run(const process::Command&, const process::CancelToken&) override {
    return {};
  }
  base::Result<std::unique_ptr<process::Resident>> start(const process::Command&) override {
    return base::fail(base::ErrorCode::Unavailable, "none here");
  }
};
struct NoHelpers : toolchain::Helpers {
  toolchain::HelperAnswer ort(const std::string&, const process::Bounds&) override { return {}; }
  toolchain::HelperAnswer sidecar(const std::string&, const process::Bounds&) override {
    return {};
  }
};

/// Stages that note what they were asked and do as they are told.
struct FakeStages : Stages {
  std::vector<std::string> calls;
  std::map<std::string, Ending> endings;  ///< by call; else Done
  bool is_tiny = false;
  std::int64_t memory_seen = 0;
  std::filesystem::path scratch_seen;
  std::function<void(toolchain::StepContext&)> while_running;

  domain::Outcome answer(Stage stage, const std::string& call, toolchain::StepContext& context) {
    calls.push_back(call);
    memory_seen = context.limits.memory_bytes;
    scratch_seen = context.scratch;
    domain::Outcome out;
    out.stage = stage;
    out.ending = endings.contains(call) ? endings[call] : Ending::Done;
    if (while_running) while_running(context);
    if (context.cancel.cancelled()) out.ending = Ending::Cancelled;
    if (out.ending != Ending::Done) return out;
    if (stage == Stage::Prepare) out.prepared.emplace().reference = call;
    if (stage == Stage::Compile) out.artifact.emplace().function = call;
    if (stage == Stage::Execute || stage == Stage::Recompare) out.executed.emplace();
    if (stage == Stage::Time) out.timed.emplace();
    if (stage == Stage::Whole) out.whole.emplace();
    if (stage == Stage::Analyze) out.analysis = base::digest_of("a");
    return out;
  }
  domain::Outcome analyze(const domain::AnalyzeRequest& request,
                          toolchain::StepContext& context) override {
    return answer(Stage::Analyze, "analyze " + request.model_path, context);
  }
  domain::Outcome prepare(const domain::Layer& layer, const domain::InputSet&,
                          toolchain::StepContext& context) override {
    return answer(Stage::Prepare, "prepare " + layer.id, context);
  }
  std::vector<domain::Outcome> compile(const domain::ChipSpec&, const domain::ExecutorSpec&,
                                       std::span<const domain::Layer* const> layers,
                                       toolchain::StepContext& context) override {
    std::vector<domain::Outcome> out;
    std::string call = "compile";
    for (const domain::Layer* layer : layers) call += " " + layer->id;
    for (const domain::Layer* layer : layers) {
      out.push_back(answer(Stage::Compile, "compile " + layer->id, context));
      calls.pop_back();
    }
    calls.push_back(call);
    return out;
  }
  domain::Outcome execute(const toolchain::StageJob& request, const domain::Tolerance&,
                          toolchain::StepContext& context) override {
    const std::string from = (request.prepared ? request.prepared->reference : "-") + "/" +
                             (request.artifact ? request.artifact->function : "-");
    return answer(Stage::Execute, "execute " + request.layer.id + " " + from, context);
  }
  domain::Outcome recompare(const toolchain::StageJob& request, const std::vector<base::Digest>&,
                            const domain::Tolerance&, toolchain::StepContext& context) override {
    return answer(Stage::Recompare, "recompare " + request.layer.id, context);
  }
  domain::Outcome time(const toolchain::StageJob& request, int runs,
                       toolchain::StepContext& context) override {
    return answer(Stage::Time, "time " + request.layer.id + " " + std::to_string(runs), context);
  }
  domain::Outcome whole(const domain::ChipSpec& chip, const domain::WholeRequest& request,
                        const domain::InputSet& inputs, const domain::Tolerance&,
                        toolchain::StepContext& context) override {
    return answer(
        Stage::Whole,
        "whole " + chip.name + " " + request.executors.at(0) + " " + std::to_string(inputs.seed),
        context);
  }
  [[nodiscard]] bool tiny(const domain::ChipSpec&) const override { return is_tiny; }
};

struct Bench {
  base::ScratchFolder folder =
      *base::ScratchFolder::make(std::filesystem::temp_directory_path(), "layerfarm-test");
  NoRunner runner;
  NoHelpers helpers;
  base::BlobFolder blobs{folder.path() / "blobs"};
  FakeStages stages;
  LeaseRunner lease_runner{
      {folder.path() / "scratch", folder.path(), {0}, 1000}, runner, helpers, blobs, stages};
  base::Mailbox<core::Event> events;
  base::Mailbox<std::vector<AttemptId>> cancels;
  process::CancelToken token;
  std::map<std::uint64_t, Ending> endings;
  std::map<std::uint64_t, int> answers;
  std::vector<std::vector<std::uint64_t>> begun;

  void run(const protocol::Lease& lease) {
    const std::atomic<bool> leaving{false};
    LeaseControl control(events, cancels, token, leaving);
    lease_runner.run(lease, control);
    for (core::Event& event : events.take()) {
      if (auto* ended = std::get_if<core::JobsEnded>(&event)) {
        for (const auto& item : ended->outcomes) {
          endings[item.attempt.value()] = item.outcome.ending;
          ++answers[item.attempt.value()];
        }
      } else if (auto* began = std::get_if<core::JobsBegan>(&event)) {
        auto& group = begun.emplace_back();
        for (const AttemptId attempt : began->attempts) group.push_back(attempt.value());
      }
    }
    for (const auto& job : lease.jobs) REQUIRE(answers[job.attempt.value()] == 1);
    const auto scratch = folder.path() / "scratch";
    CHECK((!std::filesystem::exists(scratch) || std::filesystem::is_empty(scratch)));
  }
};

/// prepare, compile, execute of each layer, one after the other.
protocol::Lease chain(int layers) {
  protocol::Lease lease;
  lease.chip.name = "c";
  lease.chip.executors.resize(1);
  for (int i = 0; i < layers; ++i) {
    domain::Layer layer;
    layer.id = "L" + std::to_string(i);
    lease.layers.push_back({std::make_shared<const domain::Layer>(layer)});
    for (const Stage stage : {Stage::Prepare, Stage::Compile, Stage::Execute}) {
      protocol::LeasedJob job;
      job.attempt = AttemptId(lease.jobs.size() + 1);
      job.stage = stage;
      job.layer = static_cast<std::uint32_t>(i);
      if (stage == Stage::Execute) {
        job.prepare_job = static_cast<std::int32_t>(lease.jobs.size()) - 2;
        job.compile_job = static_cast<std::int32_t>(lease.jobs.size()) - 1;
      }
      lease.jobs.push_back(job);
    }
  }
  return lease;
}

}  // namespace

TEST_CASE("a chain is done in order and later stages get what earlier ones made") {
  Bench bench;
  bench.run(chain(1));
  CHECK(bench.stages.calls ==
        std::vector<std::string>{"prepare L0", "compile L0", "execute L0 prepare L0/compile L0"});
  CHECK(bench.begun == std::vector<std::vector<std::uint64_t>>{{1}, {2}, {3}});
}

TEST_CASE("a whole model's job gets its own request, the chip and the inputs") {
  Bench bench;
  protocol::Lease lease;
  lease.chip.name = "c";
  lease.inputs.seed = 5;
  lease.whole = {{.analysis = {}, .executors = {"e0"}, .check_boundaries = false},
                 {.analysis = {}, .executors = {"e1"}, .check_boundaries = true}};
  protocol::LeasedJob& job = lease.jobs.emplace_back();
  job.attempt = AttemptId(1);
  job.stage = Stage::Whole;
  job.layer = 1;
  bench.run(lease);
  CHECK(bench.stages.calls == std::vector<std::string>{"whole c e1 5"});
  CHECK(bench.endings[1] == Ending::Done);
}

TEST_CASE("the compile jobs of a lease are done together, unless it says otherwise") {
  Bench bench;
  bench.run(chain(2));
  CHECK(bench.stages.calls ==
        std::vector<std::string>{"prepare L0", "compile L0 L1", "execute L0 prepare L0/compile L0",
                                 "prepare L1", "execute L1 prepare L1/compile L1"});
  Bench apart;
  auto lease = chain(2);
  lease.compile_together = false;
  apart.run(lease);
  CHECK(apart.stages.calls[1] == "compile L0");
}

TEST_CASE("what builds on a failed job is answered as cancelled and not begun") {
  Bench bench;
  bench.stages.endings["compile L0"] = Ending::Refused;
  bench.run(chain(2));
  CHECK(bench.endings[2] == Ending::Refused);
  CHECK(bench.endings[3] == Ending::Cancelled);
  CHECK(bench.endings[6] == Ending::Done);
  for (const auto& group : bench.begun) CHECK(std::count(group.begin(), group.end(), 3) == 0);
}

TEST_CASE("results that were made elsewhere come with the lease") {
  Bench bench;
  auto lease = chain(1);
  lease.jobs.erase(lease.jobs.begin(), lease.jobs.begin() + 2);
  lease.jobs[0].prepare_job = lease.jobs[0].compile_job = -1;
  lease.jobs[0].prepared = lease.jobs[0].artifact = 0;
  lease.prepared.resize(1);
  lease.prepared[0].reference = "given";
  lease.artifacts.resize(1);
  lease.artifacts[0].function = "f";
  bench.run(lease);
  CHECK(bench.stages.calls == std::vector<std::string>{"execute L0 given/f"});
}

TEST_CASE("jobs that were cancelled before they begin are not begun") {
  Bench bench;
  bench.cancels.put({AttemptId(1), AttemptId(5)});
  bench.run(chain(2));
  CHECK(bench.endings[1] == Ending::Cancelled);
  CHECK(bench.endings[2] == Ending::Done);  // needs no prepare
  CHECK(bench.endings[3] == Ending::Cancelled);
  CHECK(bench.endings[5] == Ending::Cancelled);
  CHECK(bench.endings[6] == Ending::Cancelled);
  CHECK(bench.stages.calls == std::vector<std::string>{"compile L0", "prepare L1"});
}

TEST_CASE("a cancellation that was meant for an earlier step does not spoil this one") {
  Bench bench;
  int runs = 0;
  bench.stages.while_running = [&](toolchain::StepContext&) {
    if (runs++ == 0) bench.token.cancel();
  };
  bench.run(chain(1));
  CHECK(bench.endings[1] == Ending::Done);
  CHECK(bench.stages.calls[0] == "prepare L0");
  CHECK(bench.stages.calls[1] == "prepare L0");
}

TEST_CASE("a cancellation of what runs ends it") {
  Bench bench;
  bench.stages.while_running = [&](toolchain::StepContext&) {
    bench.cancels.put({AttemptId(1), AttemptId(2), AttemptId(3)});
    bench.token.cancel();
  };
  bench.run(chain(1));
  for (const std::uint64_t attempt : {1, 2, 3}) CHECK(bench.endings[attempt] == Ending::Cancelled);
  CHECK(bench.stages.calls.size() == 1);
}

TEST_CASE("tiny cases are begun together") {
  Bench bench;
  bench.stages.is_tiny = true;
  protocol::Lease lease;
  lease.chip.name = "null";
  lease.chip.executors.resize(1);
  lease.layers.push_back({std::make_shared<const domain::Layer>()});
  for (std::uint64_t i = 1; i <= 5; ++i) {
    protocol::LeasedJob job;
    job.attempt = AttemptId(i);
    lease.jobs.push_back(job);
  }
  bench.cancels.put({AttemptId(2)});
  bench.run(lease);
  CHECK(bench.begun == std::vector<std::vector<std::uint64_t>>{{1, 3, 4, 5}});
  CHECK(bench.endings[2] == Ending::Cancelled);
  CHECK(bench.endings[5] == Ending::Done);
  CHECK(bench.stages.scratch_seen.empty());  // they write nothing
}

TEST_CASE("a second try after a memory kill claims more, but never more than the machine has") {
  Bench bench;
  auto lease = chain(1);
  lease.limits.memory_bytes = 300;
  lease.jobs[0].memory_factor = 2;
  lease.jobs.resize(1);
  bench.run(lease);
  CHECK(bench.stages.memory_seen == 600);
  Bench large;
  lease.jobs[0].memory_factor = 9;
  large.run(lease);
  CHECK(large.stages.memory_seen == 1000);
}

TEST_CASE("analyze, recompare and time reach their stages") {
  Bench bench;
  protocol::Lease lease;
  lease.analyze.resize(1);
  lease.analyze[0].model_path = "/m.onnx";
  lease.jobs.resize(1);
  lease.jobs[0].attempt = AttemptId(1);
  lease.jobs[0].stage = Stage::Analyze;
  bench.run(lease);
  lease = chain(1);
  lease.jobs.resize(2);
  lease.jobs[0].stage = Stage::Recompare;
  lease.jobs[0].attempt = AttemptId(2);
  lease.jobs[1].stage = Stage::Time;
  lease.jobs[1].attempt = AttemptId(3);
  lease.jobs[1].runs = 4;
  bench.run(lease);
  CHECK(bench.stages.calls ==
        std::vector<std::string>{"analyze /m.onnx", "recompare L0", "time L0 4"});
}

TEST_CASE("limits: the user's flag, else the chip file, else the program's default") {
  domain::Limits user;
  user.run_timeout_ms = 5;
  domain::Limits chip;
  chip.run_timeout_ms = 6;
  chip.output_bytes = 7;
  const domain::Limits limits = complete_limits(user, chip, 1000);
  CHECK(limits.run_timeout_ms == 5);
  CHECK(limits.output_bytes == 7);
  CHECK(limits.compile_timeout_ms == 300'000);
  CHECK(limits.memory_bytes == 750);
  CHECK(limits.file_bytes > 0);
}

TEST_CASE("an exclusive holder of the machine waits for the others and keeps new ones out") {
  const auto folder =
      *base::ScratchFolder::make(std::filesystem::temp_directory_path(), "layerfarm-test");
  process::CancelToken never;
  MachineLock a(folder.path());
  MachineLock b(folder.path());
  MachineLock timing(folder.path());
  REQUIRE(a.acquire(MachineLock::Kind::Shared, never, {}));
  REQUIRE(b.acquire(MachineLock::Kind::Shared, never, {}));
  process::CancelToken cancel;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    cancel.cancel();
  });
  CHECK(!timing.acquire(MachineLock::Kind::Exclusive, cancel, {}));
  later.join();
  a.release();
  b.release();
  REQUIRE(timing.acquire(MachineLock::Kind::Exclusive, never, {}));
  process::CancelToken now;
  now.cancel();
  CHECK(!a.acquire(MachineLock::Kind::Shared, now, {}));
  timing.release();
  CHECK(a.acquire(MachineLock::Kind::Shared, never, {}));
}

TEST_CASE("a wait that lasts is told once, a short one not at all") {
  const auto folder =
      *base::ScratchFolder::make(std::filesystem::temp_directory_path(), "layerfarm-test");
  process::CancelToken never;
  MachineLock holder(folder.path());
  MachineLock timing(folder.path());
  std::atomic<int> told{0};
  const MachineLock::LongWait wait{.tell = [&] { ++told; }, .after = std::chrono::milliseconds(20)};
  REQUIRE(timing.acquire(MachineLock::Kind::Exclusive, never, wait));
  timing.release();
  CHECK(told == 0);
  REQUIRE(holder.acquire(MachineLock::Kind::Shared, never, {}));
  std::thread later([&] {
    while (told == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(60));  // time to tell it again, wrongly
    holder.release();
  });
  CHECK(timing.acquire(MachineLock::Kind::Exclusive, never, wait));
  later.join();
  CHECK(told == 1);
}
