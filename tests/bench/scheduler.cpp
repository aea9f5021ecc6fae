// What the scheduler core costs by itself: events in, actions out, no socket, no store. A case is
// an execute job of the null toolchain, or the three jobs of a compiled case. Prints a JSON line
// per figure; limits are those of design.md, section 10.
//
// Usage: bench_scheduler [CASES]
#include <sys/resource.h>

#include <malloc.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>

#include "coordinator/core/core.h"

namespace {

using namespace layerfarm;
using namespace layerfarm::coordinator::core;
using Clock = std::chrono::steady_clock;

struct Figures {
  double seconds = 0;
  std::size_t bytes = 0;  ///< held once all cases are added
  std::size_t leases = 0;
};

JobSpec job(std::uint32_t id, domain::Stage stage, std::uint16_t group, std::vector<JobId> needs) {
  JobSpec spec;
  spec.id = JobId{id};
  spec.stage = stage;
  spec.group = GroupId{group};
  spec.needs = std::move(needs);
  return spec;
}

JobsAdded workload(std::uint32_t cases, bool compiled) {
  JobsAdded event;
  for (std::uint32_t i = 0; i < cases; ++i) {
    const auto id = static_cast<std::uint32_t>(event.jobs.size());
    if (!compiled) {
      event.jobs.push_back(job(id, domain::Stage::Execute, 1, {}));
      continue;
    }
    event.jobs.push_back(job(id, domain::Stage::Prepare, 0, {}));
    event.jobs.push_back(job(id + 1, domain::Stage::Compile, 1, {}));
    event.jobs.push_back(job(id + 2, domain::Stage::Execute, 1, {JobId{id}, JobId{id + 1}}));
  }
  return event;
}

/// Workers answer each lease at once, in order, as one message; a job takes them a microsecond.
Figures run(std::uint32_t cases, bool compiled, std::uint32_t workers) {
  Core core;
  base::Time now{0};
  JobsAdded event = workload(cases, compiled);
  Figures figures;
  const std::size_t before = ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
  const auto start = Clock::now();
  (void)core.step(event, now);
  const auto added = Clock::now();
  figures.bytes = ::mallinfo2().uordblks + ::mallinfo2().hblkhd - before;

  std::deque<GiveLease> in_hand;
  const auto take = [&](std::vector<Action>&& actions) {
    for (Action& action : actions) {
      if (auto* lease = std::get_if<GiveLease>(&action)) in_hand.push_back(std::move(*lease));
    }
  };
  const auto go_on = Clock::now();
  for (std::uint32_t w = 1; w <= workers; ++w) {
    take(core.step(
        WorkerJoined{.worker = WorkerId{w}, .host = HostId{w}, .abilities = {ClassId{0}}}, now));
  }
  while (!in_hand.empty()) {
    const GiveLease lease = std::move(in_hand.front());
    in_hand.pop_front();
    ++figures.leases;
    now += std::chrono::microseconds(lease.jobs.size());
    AttemptsStarted started{lease.worker, {}};
    AttemptsEnded ended{lease.worker, {}};
    for (const GivenJob& given : lease.jobs) {
      started.attempts.push_back(given.attempt);
      ended.ended.push_back({given.attempt, domain::Ending::Done, {}});
    }
    take(core.step(started, now));
    take(core.step(ended, now));
  }
  const auto end = Clock::now();
  figures.seconds = std::chrono::duration<double>((added - start) + (end - go_on)).count();
  const Counts counts = core.counts();
  if (counts.settled != counts.jobs) {
    std::fprintf(stderr, "bench_scheduler: not all is settled\n");
    std::exit(1);
  }
  return figures;
}

void print(const char* name, double value, const char* unit, double limit) {
  std::printf(
      "{\"name\": \"%s\", \"value\": %.3f, \"unit\": \"%s\", \"limit\": %.0f, \"ratio\": %.3f}\n",
      name, value, unit, limit, value / limit);
}

}  // namespace

int main(int argc, char** argv) {
  const auto cases = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 1'000'000);
  const Figures null_cases = run(cases, /*compiled=*/false, 2);
  print("scheduler: null case", null_cases.seconds / cases * 1e6, "us", 2);
  print("scheduler: held per null case", static_cast<double>(null_cases.bytes) / cases, "bytes",
        400);
  print("scheduler: null cases per lease", static_cast<double>(cases) / null_cases.leases, "cases",
        256);
  const Figures many = run(cases, /*compiled=*/false, 1000);
  print("scheduler: null case, 1000 workers", many.seconds / cases * 1e6, "us", 20);
  const Figures compiled = run(cases, /*compiled=*/true, 2);
  print("scheduler: compiled case (3 jobs)", compiled.seconds / cases * 1e6, "us", 20);
  print("scheduler: held per compiled case", static_cast<double>(compiled.bytes) / cases, "bytes",
        400);
  return 0;
}
