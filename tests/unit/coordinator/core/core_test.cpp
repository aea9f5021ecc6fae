// The core as its caller sees it. What it does in which case is shown by tests/golden/scheduler;
// tests/sim lives through what nobody thought of.
#include "coordinator/core/core.h"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/support/coordinator/scheduler_text.h"

namespace layerfarm::coordinator::core {
namespace {

using namespace std::chrono_literals;

JobSpec job(std::uint32_t id, std::vector<JobId> needs = {}) {
  JobSpec spec;
  spec.id = JobId{id};
  spec.needs = std::move(needs);
  return spec;
}

WorkerJoined worker(std::uint32_t id) {
  return {.worker = WorkerId{id}, .host = HostId{0}, .abilities = {ClassId{0}}};
}

std::string texts(const std::vector<Action>& actions) {
  std::string out;
  for (const Action& action : actions) out += test::text_of(action) + "; ";
  return out;
}

TEST_CASE("a million jobs fit: well under 400 bytes for the three jobs of a case") {
  CHECK(3 * Core::bytes_per_job() <= 250);
}

TEST_CASE("without workers and jobs nothing happens and nothing is timed") {
  Core core;
  CHECK(core.step(Tick{}, 1s).empty());
  CHECK(!core.next_deadline());
  CHECK(core.check_invariants() == "");
}

TEST_CASE("counts follow jobs and workers") {
  Core core;
  (void)core.step(worker(1), 0s);
  (void)core.step(JobsAdded{{job(0), job(1, {JobId{0}}), job(2)}}, 0s);
  const Counts counts = core.counts();
  CHECK(counts.jobs == 3);
  CHECK(counts.leased == 2);
  CHECK(counts.ready == 1);
  CHECK(counts.waiting == 0);
  CHECK(counts.workers == 1);
  CHECK(counts.busy == 1);
  CHECK(counts.quarantined == 0);
  (void)core.step(JobsDropped{{JobId{0}, JobId{2}}}, 0s);
  CHECK(core.counts().settled == 3);
}

TEST_CASE("a job that needs another twice needs it once") {
  Core core;
  (void)core.step(worker(1), 0s);
  CHECK(texts(core.step(JobsAdded{{job(0), job(1, {JobId{0}, JobId{0}})}}, 0s)) ==
        "lease W1: a1=j0 a2=j1; ");
  CHECK(core.check_invariants() == "");
}

TEST_CASE("a core can be moved") {
  Core one;
  (void)one.step(JobsAdded{{job(0)}}, 0s);
  Core two = std::move(one);
  CHECK(two.counts().jobs == 1);
  one = std::move(two);
  CHECK(one.counts().jobs == 1);
}

TEST_CASE("every reason has its name, and a job that never was is said to be dropped") {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Why::Paused); ++i)
    names.insert(why_name(static_cast<Why>(i)));
  CHECK(names.size() == static_cast<std::size_t>(Why::Paused) + 1);
  CHECK(!names.contains(""));
  const Core core;
  CHECK(core.explain(JobId{5}).why == Why::Dropped);
}

TEST_CASE("explain counts what is queued before a job") {
  Core core;
  (void)core.step(worker(1), 0s);
  std::vector<JobSpec> specs;
  for (std::uint32_t i = 0; i < 6; ++i) specs.push_back(job(i));
  (void)core.step(JobsAdded{specs}, 0s);
  const Explanation last = core.explain(JobId{5});
  CHECK(last.why == Why::Queued);
  CHECK(last.queued_before == 3);  // two are leased
  CHECK(last.able_workers == 1);
  CHECK(last.fit_workers == 1);
}

/// Any event at all, with numbers that may mean nothing.
Event nonsense(std::mt19937& random, std::uint32_t& jobs, std::uint32_t& workers) {
  const auto any = [&](std::uint32_t below) {
    return static_cast<std::uint32_t>(random() % below);
  };
  const auto a_worker = [&] { return WorkerId{any(workers + 3)}; };
  const auto a_job = [&] { return JobId{any(jobs + 3)}; };
  const auto an_attempt = [&] { return AttemptId{any(60)}; };
  switch (any(14)) {
    case 0:
    case 1: {
      JobSpec spec = job(jobs);
      for (std::uint32_t i = any(3); i > 0 && jobs > 0; --i) spec.needs.emplace_back(any(jobs));
      spec.ability = ClassId{static_cast<std::uint16_t>(any(3))};
      spec.group = GroupId{static_cast<std::uint16_t>(any(3))};
      spec.stage = static_cast<domain::Stage>(1 + any(6));
      spec.known = static_cast<Known>(any(8) < 6 ? 0 : any(3));
      spec.speculative = any(5) == 0;
      spec.exclusive = any(8) == 0;
      ++jobs;
      return JobsAdded{{spec}};
    }
    case 2:
    case 3: {
      WorkerJoined joined{.worker = WorkerId{++workers}, .host = HostId{any(3)}, .abilities = {}};
      for (std::uint16_t c = 0; c < 3; ++c) {
        if (any(3) > 0) joined.abilities.emplace_back(c);
      }
      joined.leases = any(4);
      for (std::uint32_t i = any(4); i > 0; --i) {
        joined.held.push_back({an_attempt(), any(2) == 0 ? std::optional(a_job()) : std::nullopt});
      }
      if (any(3) == 0) joined.replaces = WorkerId{any(workers)};
      return joined;
    }
    case 4:
      return WorkerLeft{a_worker(), static_cast<Departure>(any(3))};
    case 5:
      return JobsDropped{{a_job()}};
    case 6:
      return JobsWanted{{a_job()}};
    case 7:
      return AttemptsStarted{a_worker(), {an_attempt(), an_attempt()}};
    case 8:
      return WorkerHeard{a_worker(), any(2) == 0, an_attempt()};
    case 9:
      return WorkersExpected{any(2)};
    case 10:
      return LeasingPaused{any(3) == 0};
    case 11:
      return Tick{};
    default:
      AttemptsEnded ended{a_worker(), {}};
      for (std::uint32_t i = 1 + any(4); i > 0; --i) {
        ended.ended.push_back(
            {an_attempt(), static_cast<domain::Ending>(1 + any(9)), {a_job(), a_job()}});
      }
      return ended;
  }
}

TEST_CASE("whatever is said to it in whatever order, its books stay in order") {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    CorePolicy policy;
    policy.local = seed % 2 == 0;
    policy.wait_workers = std::chrono::seconds(random() % 60);
    policy.exclusive_patience = 20s;
    Core core(policy);
    std::uint32_t jobs = 0;
    std::uint32_t workers = 0;
    base::Time now{0};
    std::string transcript;
    for (int i = 0; i < 150; ++i) {
      now += std::chrono::milliseconds(random() % 3000);
      const Event event = nonsense(random, jobs, workers);
      transcript += "> " + test::text_of(event) + "\n  " + texts(core.step(event, now)) + "\n";
      const std::string broken = core.check_invariants();
      if (!broken.empty()) {
        FAIL("seed " << seed << ": " << broken << "\n" << transcript);
      }
    }
    (void)core.step(Stop{true}, now);
    CHECK(core.check_invariants() == "");
  }
}

}  // namespace
}  // namespace layerfarm::coordinator::core
