// The core's containers: jobs, queues, leases, timers.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "coordinator/core/jobs.h"
#include "coordinator/core/leases.h"
#include "coordinator/core/queues.h"
#include "coordinator/core/timers.h"

namespace layerfarm::coordinator::core {
namespace {

using namespace std::chrono_literals;

std::vector<std::uint32_t> dependents(const JobTable& jobs, std::uint32_t id) {
  std::vector<std::uint32_t> found;
  jobs.each_dependent(JobId{id}, [&](JobId job) {
    found.push_back(job.value());
    return true;
  });
  return found;
}

TEST_CASE("dependents are found in the order in which they were added, through either need") {
  JobTable jobs;
  jobs.add({});
  jobs.add({});
  jobs.add({.needs = {0, 1}});
  jobs.add({.needs = {1, kNone}});
  jobs.add({.needs = {1, 0}});
  CHECK(dependents(jobs, 0) == std::vector<std::uint32_t>{2, 4});
  CHECK(dependents(jobs, 1) == std::vector<std::uint32_t>{2, 3, 4});
  CHECK(dependents(jobs, 2).empty());
  int seen = 0;
  jobs.each_dependent(JobId{1}, [&](JobId) { return ++seen < 2; });
  CHECK(seen == 2);
}

TEST_CASE("jobs are counted by state") {
  JobTable jobs;
  jobs.add({});
  jobs.add({});
  CHECK(jobs.count<Waiting>() == 2);
  jobs.set_state(JobId{0}, Settled{JobId{0}, Fate::Succeeded});
  jobs.set_state(JobId{1}, Settled{JobId{1}, Fate::Failed});
  CHECK(jobs.count<Waiting>() == 0);
  CHECK(jobs.open() == 0);
  CHECK(jobs.succeeded(JobId{0}));
  CHECK(!jobs.succeeded(JobId{1}));
  CHECK(jobs.over(JobId{1}));
  CHECK(jobs.contains(JobId{1}));
  CHECK(!jobs.contains(JobId{2}));
}

/// A queue with `costs.size()` ready jobs of these costs.
struct Queued {
  JobTable jobs;
  ReadyQueue queue{0, QueueKey{}};

  explicit Queued(const std::vector<std::uint32_t>& costs) {
    for (std::uint32_t i = 0; i < costs.size(); ++i) {
      jobs.add({.cost_us = costs[i]});
      jobs.set_state(JobId{i}, Ready{});
      queue.push(JobId{i}, jobs[JobId{i}]);
    }
  }
  void lease(std::uint32_t job) {
    jobs.set_state(JobId{job}, Leased{});
    queue.leave();
  }
};

TEST_CASE("the longest job goes first, ties by number; jobs that left are skipped") {
  Queued queued({10, 30, 30, 20});
  CHECK(queued.queue.top(queued.jobs)->job == 1);
  queued.lease(1);
  queued.lease(2);
  CHECK(queued.queue.top(queued.jobs)->job == 3);
  CHECK(queued.queue.size() == 2);
  CHECK(queued.queue.normal_jobs(queued.jobs).size() == 2);
  queued.lease(3);
  queued.lease(0);
  CHECK(!queued.queue.top(queued.jobs));
}

TEST_CASE("priority comes before cost") {
  const Entry low{.priority = 0, .cost_us = 100, .job = 0};
  const Entry high{.priority = 1, .cost_us = 1, .job = 1};
  CHECK(high < low);
}

TEST_CASE("the queue agrees with a sorted set on random jobs") {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::uint32_t> costs(40);
    for (auto& cost : costs) cost = random() % 5;
    Queued queued(costs);
    std::set<Entry> expected;
    for (std::uint32_t i = 0; i < costs.size(); ++i) {
      expected.insert(entry_of(JobId{i}, queued.jobs[JobId{i}]));
    }
    while (!expected.empty()) {
      auto victim = expected.begin();
      if (random() % 3 == 0) std::advance(victim, random() % expected.size());
      queued.lease(victim->job);
      expected.erase(victim);
      const auto top = queued.queue.top(queued.jobs);
      REQUIRE(top.has_value() == !expected.empty());
      if (top) REQUIRE(top->job == expected.begin()->job);
    }
  }
}

TEST_CASE("special jobs stand apart, by the workers that they avoid") {
  Queued queued({1, 2});
  queued.lease(0);
  Job& job = queued.jobs[JobId{0}];
  job.special = true;
  queued.jobs.set_state(JobId{0}, Ready{});
  queued.queue.push_special(JobId{0}, job, {WorkerId{4}});
  CHECK(queued.queue.size() == 2);
  CHECK(queued.queue.top(queued.jobs)->job == 1);
  CHECK(queued.queue.specials().size() == 1);
  queued.queue.leave_special(JobId{0}, job, {WorkerId{4}});
  CHECK(queued.queue.size() == 1);
  CHECK(queued.queue.specials().empty());
}

TEST_CASE("the mean of a queue follows its samples") {
  ReadyQueue queue(0, QueueKey{});
  CHECK(queue.mean() == 0ns);
  queue.learn(100ns);
  CHECK(queue.mean() == 100ns);
  queue.learn(200ns);
  CHECK(queue.mean() == 125ns);
}

TEST_CASE("an attempt is found in its lease whether its numbers are dense or not") {
  Lease lease;
  for (const std::uint64_t attempt : {10U, 11U, 15U, 40U}) {
    lease.items.push_back({.attempt = AttemptId{attempt}});
  }
  for (const std::uint64_t attempt : {10U, 11U, 15U, 40U}) {
    REQUIRE(lease.find(AttemptId{attempt}) != nullptr);
    CHECK(lease.find(AttemptId{attempt})->attempt == AttemptId{attempt});
  }
  for (const std::uint64_t attempt : {0U, 9U, 12U, 39U, 41U}) {
    CHECK(lease.find(AttemptId{attempt}) == nullptr);
  }
  CHECK(Lease{}.find(AttemptId{0}) == nullptr);
}

TEST_CASE("slots of leases are used again") {
  LeaseTable leases;
  const std::uint32_t first = leases.create();
  const std::uint32_t second = leases.create();
  leases[first].open = 1;
  CHECK(leases.in_use(first));
  CHECK(leases.live() == 2);
  leases.remove(first);
  CHECK(!leases.in_use(first));
  CHECK(leases.live() == 1);
  CHECK(leases.create() == first);
  CHECK(leases.slots() == 2);
  CHECK(second != first);
}

TEST_CASE("timers come in order of time, and only when due") {
  Timers timers;
  CHECK(!timers.next());
  timers.arm(5s, TimerKind::Job, 1);
  timers.arm(3s, TimerKind::Worker, 9);
  timers.arm(3s, TimerKind::Worker, 9);
  CHECK(timers.next() == 3s);
  CHECK(!timers.pop_due(2s));
  CHECK(timers.pop_due(10s)->id == 9);
  CHECK(timers.pop_due(10s)->id == 1);
  CHECK(!timers.pop_due(10s));
}

}  // namespace
}  // namespace layerfarm::coordinator::core
