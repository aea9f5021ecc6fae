#include "worker/core/worker_core.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <random>
#include <set>

using namespace layerfarm;
using namespace layerfarm::worker::core;
using namespace std::chrono_literals;
using protocol::AttemptId;

namespace {

constexpr std::uint64_t kEpoch = 7;

/// A worker core with its own clock; sorts the actions of the last step by kind.
struct Bench {
  WorkerCore core{[] {
                    protocol::Hello hello;
                    hello.name = "w0";
                    return hello;
                  }(),
                  Policy{}};
  base::Time now{0};
  std::vector<protocol::FromWorker> sent;
  std::vector<std::shared_ptr<const protocol::Lease>> begun;
  std::vector<CancelJobs> cancels;
  std::vector<Quit> quits;

  void step(Event event) {
    sent.clear();
    begun.clear();
    cancels.clear();
    quits.clear();
    for (Action& action : core.step(std::move(event), now)) {
      if (auto* a = std::get_if<Send>(&action)) sent.push_back(std::move(a->message));
      if (auto* a = std::get_if<BeginLease>(&action)) begun.push_back(a->lease);
      if (auto* a = std::get_if<CancelJobs>(&action)) cancels.push_back(*a);
      if (auto* a = std::get_if<Quit>(&action)) quits.push_back(*a);
    }
    REQUIRE(core.check_invariants() == "");
  }
  void hear(protocol::FromCoordinator message, std::uint64_t epoch = kEpoch) {
    step(MessageArrived{std::move(message), epoch});
  }
  void register_here() {
    step(Tick{});
    hear(protocol::Welcome{1, 1, kEpoch, 2000});
  }
  template <typename T>
  const T* said() const {
    for (const auto& message : sent) {
      if (const T* found = std::get_if<T>(&message)) return found;
    }
    return nullptr;
  }
};

protocol::Lease lease_of(std::vector<std::uint64_t> attempts) {
  protocol::Lease lease;
  for (const std::uint64_t attempt : attempts) {
    protocol::LeasedJob job;
    job.attempt = AttemptId(attempt);
    lease.jobs.push_back(job);
  }
  return lease;
}

JobsEnded ended(std::vector<std::uint64_t> attempts) {
  JobsEnded out;
  for (const std::uint64_t attempt : attempts) {
    domain::Outcome outcome;
    outcome.ending = domain::Ending::Refused;
    out.outcomes.push_back({AttemptId(attempt), outcome});
  }
  return out;
}

}  // namespace

TEST_CASE("a worker says Hello until it is welcomed") {
  Bench bench;
  bench.step(Tick{});
  REQUIRE(bench.said<protocol::Hello>() != nullptr);
  bench.now = 1s;
  bench.step(Tick{});
  CHECK(bench.sent.empty());
  bench.now = 2s;
  bench.step(Tick{});
  CHECK(bench.said<protocol::Hello>() != nullptr);
  bench.hear(protocol::Welcome{1, 1, kEpoch, 500});
  CHECK(bench.core.registered());
  CHECK(bench.core.epoch() == kEpoch);
  CHECK(bench.core.next_deadline() == 2500ms);
}

TEST_CASE("a refused worker leaves with the coordinator's reason") {
  Bench bench;
  bench.step(Tick{});
  bench.hear(protocol::Reject{"too old"});
  REQUIRE(bench.quits.size() == 1);
  CHECK(bench.quits[0].exit_code == 1);
  CHECK(bench.quits[0].reason.find("too old") != std::string::npos);
}

TEST_CASE("leases are worked through one at a time in order of arrival") {
  Bench bench;
  bench.register_here();
  bench.hear(lease_of({1, 2}));
  REQUIRE(bench.begun.size() == 1);
  bench.hear(lease_of({3}));
  CHECK(bench.begun.empty());
  bench.step(ended({1}));
  CHECK(bench.begun.empty());
  bench.step(ended({2}));
  bench.step(LeaseEnded{});
  REQUIRE(bench.begun.size() == 1);
  CHECK(bench.begun[0]->jobs[0].attempt == AttemptId(3));
}

TEST_CASE("answers are kept until they are acknowledged and said again after a new Welcome") {
  Bench bench;
  bench.register_here();
  bench.hear(lease_of({1, 2}));
  bench.step(JobsBegan{{AttemptId(1)}});
  REQUIRE(bench.said<protocol::Started>() != nullptr);
  bench.step(ended({1, 2}));
  REQUIRE(bench.said<protocol::Outcomes>() != nullptr);
  CHECK(bench.said<protocol::Outcomes>()->outcomes.size() == 2);
  bench.hear(protocol::OutcomesKept{{AttemptId(1)}});
  CHECK(bench.core.held() == 1);

  bench.hear(protocol::HelloAgain{}, 0);
  REQUIRE(bench.said<protocol::Hello>() != nullptr);
  CHECK(bench.said<protocol::Hello>()->running == std::vector<AttemptId>{AttemptId(2)});
  bench.hear(protocol::Welcome{1, 2, kEpoch + 1, 2000}, kEpoch + 1);
  REQUIRE(bench.said<protocol::Outcomes>() != nullptr);
  REQUIRE(bench.said<protocol::Outcomes>()->outcomes.size() == 1);
  CHECK(bench.said<protocol::Outcomes>()->outcomes[0].attempt == AttemptId(2));
}

TEST_CASE("what another epoch says changes nothing") {
  Bench bench;
  bench.register_here();
  bench.hear(lease_of({1}), kEpoch + 1);
  CHECK(bench.begun.empty());
  CHECK(bench.core.held() == 0);
}

TEST_CASE("a lease that arrives twice is taken once") {
  Bench bench;
  bench.register_here();
  bench.hear(lease_of({1}));
  bench.hear(lease_of({1}));
  CHECK(bench.core.held() == 1);
  bench.step(ended({1}));
  bench.hear(lease_of({1}));
  CHECK(bench.begun.empty());
}

TEST_CASE("a cancelled job of a waiting lease is answered at once and left out later") {
  Bench bench;
  bench.register_here();
  bench.hear(lease_of({1}));
  bench.hear(lease_of({2, 3}));
  bench.hear(protocol::Cancel{{AttemptId(2)}});
  REQUIRE(bench.said<protocol::Outcomes>() != nullptr);
  CHECK(bench.said<protocol::Outcomes>()->outcomes[0].outcome.ending == domain::Ending::Cancelled);
  bench.step(ended({1}));
  bench.step(LeaseEnded{});
  REQUIRE(bench.begun.size() == 1);
  REQUIRE(bench.cancels.size() == 1);
  CHECK(bench.cancels[0].attempts == std::vector<AttemptId>{AttemptId(2)});
  bench.step(ended({2}));  // the job thread answers what it skipped; that was said already
  CHECK(bench.sent.empty());
}

TEST_CASE("a running step is ended only when nobody wants any of it") {
  Bench bench;
  bench.register_here();
  bench.hear(lease_of({1, 2, 3}));
  bench.step(JobsBegan{{AttemptId(1), AttemptId(2)}});
  bench.hear(protocol::Cancel{{AttemptId(1)}});
  REQUIRE(bench.cancels.size() == 1);
  CHECK(!bench.cancels[0].end_running);
  bench.hear(protocol::Cancel{{AttemptId(3)}});
  REQUIRE(bench.cancels.size() == 1);
  CHECK(!bench.cancels[0].end_running);
  bench.hear(protocol::Cancel{{AttemptId(2)}});
  REQUIRE(bench.cancels.size() == 1);
  CHECK(bench.cancels[0].end_running);
}

TEST_CASE("what was answered while it waited is not answered again when the worker leaves") {
  Bench bench;
  bench.register_here();
  bench.hear(lease_of({1}));
  bench.hear(lease_of({2, 3}));
  bench.hear(protocol::Cancel{{AttemptId(2)}});
  bench.step(ended({1}));
  bench.step(LeaseEnded{});
  bench.hear(protocol::OutcomesKept{{AttemptId(1), AttemptId(2)}});
  bench.hear(protocol::Stop{false});
  bench.step(ended({2}));  // the job thread answers what it skipped
  CHECK(bench.said<protocol::Outcomes>() == nullptr);
  CHECK(bench.core.held() == 1);
}

TEST_CASE("a lease that arrives while the worker leaves goes back at once") {
  Bench bench;
  bench.register_here();
  bench.hear(lease_of({1}));
  bench.hear(protocol::Stop{false});
  bench.hear(lease_of({2, 3}));
  CHECK(bench.begun.empty());
  REQUIRE(bench.said<protocol::Outcomes>() != nullptr);
  REQUIRE(bench.said<protocol::Outcomes>()->outcomes.size() == 2);
  CHECK(bench.said<protocol::Outcomes>()->outcomes[0].outcome.ending == domain::Ending::Cancelled);
}

TEST_CASE("a heartbeat names what runs and for how long") {
  Bench bench;
  bench.register_here();
  bench.hear(lease_of({1}));
  bench.step(JobsBegan{{AttemptId(1)}});
  bench.now = 2s;
  bench.step(Tick{});
  const auto* beat = bench.said<protocol::Heartbeat>();
  REQUIRE(beat != nullptr);
  CHECK(beat->attempt == AttemptId(1));
  CHECK(beat->phase == "execute");
  CHECK(beat->phase_ms == 2000);
}

TEST_CASE("a heartbeat tells a wait at once, and that the lease is still in hand") {
  Bench bench;
  bench.register_here();
  bench.hear(lease_of({1, 2}));
  bench.step(Waits{"its turn"});
  const auto* beat = bench.said<protocol::Heartbeat>();
  REQUIRE(beat != nullptr);
  CHECK(beat->attempt == AttemptId(1));
  CHECK(beat->phase == "waits");
  CHECK(beat->waits_for == "its turn");
  bench.now = 2s;
  bench.step(JobsBegan{{AttemptId(1)}});
  bench.step(Tick{});
  beat = bench.said<protocol::Heartbeat>();
  REQUIRE(beat != nullptr);
  CHECK(beat->phase == "execute");
  CHECK(beat->waits_for.empty());
}

TEST_CASE(
    "a worker that is asked to stop finishes what is in hand, gives the rest back and says "
    "Goodbye") {
  Bench bench;
  bench.register_here();
  bench.hear(lease_of({1}));
  bench.hear(lease_of({2}));
  bench.hear(protocol::Stop{false});
  CHECK(bench.quits.empty());
  CHECK(bench.cancels.empty());
  REQUIRE(bench.said<protocol::Outcomes>() != nullptr);
  CHECK(bench.said<protocol::Outcomes>()->outcomes[0].attempt == AttemptId(2));
  bench.step(ended({1}));
  bench.step(LeaseEnded{});
  CHECK(bench.quits.empty());
  bench.hear(protocol::OutcomesKept{{AttemptId(1), AttemptId(2)}});
  CHECK(bench.said<protocol::Goodbye>() != nullptr);
  REQUIRE(bench.quits.size() == 1);
  CHECK(bench.quits[0].exit_code == 0);
}

TEST_CASE(
    "a worker that must stop now ends what runs, and does not wait for ever for an "
    "acknowledgement") {
  Bench bench;
  bench.register_here();
  bench.hear(lease_of({1, 2}));
  bench.step(JobsBegan{{AttemptId(1)}});
  bench.step(LeaveRequested{true});
  REQUIRE(bench.cancels.size() == 1);
  CHECK(bench.cancels[0].end_running);
  bench.step(ended({1, 2}));
  bench.step(LeaseEnded{});
  CHECK(bench.quits.empty());
  bench.now = bench.core.next_deadline();
  bench.step(Tick{});
  bench.now += 5s;
  bench.step(Tick{});
  CHECK(bench.quits.size() == 1);
}

TEST_CASE("whatever happens, every leased attempt is answered and the worker ends when asked") {
  const char* given = std::getenv("LAYERFARM_SIM_SEED");
  const unsigned first = given != nullptr ? static_cast<unsigned>(std::atoi(given)) : 1;
  const unsigned seeds = given != nullptr ? 1 : 300;
  for (unsigned seed = first; seed < first + seeds; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    Bench bench;
    bench.register_here();
    std::uint64_t next_attempt = 1;
    std::set<AttemptId> leased;
    std::set<AttemptId> answered;
    std::set<AttemptId> kept;  // acknowledged; never to be said again
    std::shared_ptr<const protocol::Lease> in_hand;
    std::size_t at = 0;  // next job of the lease in hand
    const auto note = [&] {
      if (!bench.begun.empty()) {
        REQUIRE(in_hand == nullptr);  // never two leases at once
        in_hand = bench.begun.front();
        at = 0;
      }
      for (const auto& message : bench.sent) {
        if (const auto* outcomes = std::get_if<protocol::Outcomes>(&message)) {
          for (const auto& item : outcomes->outcomes) {
            answered.insert(item.attempt);
            CHECK_FALSE(kept.contains(item.attempt));
          }
        }
      }
    };
    for (int turn = 0; turn < 200; ++turn) {
      bench.now += std::chrono::milliseconds(random() % 500);
      bench.begun.clear();  // some turns do nothing
      bench.sent.clear();
      switch (random() % 7) {
        case 0: {
          std::vector<std::uint64_t> attempts;
          for (unsigned n = 1 + random() % 4; n > 0; --n) attempts.push_back(next_attempt++);
          for (const auto a : attempts) leased.insert(AttemptId(a));
          bench.hear(lease_of(attempts));
          break;
        }
        case 1:
          if (next_attempt > 1)
            bench.hear(protocol::Cancel{{AttemptId(1 + random() % next_attempt)}});
          break;
        case 2:
          bench.hear(protocol::HelloAgain{}, 0);
          break;
        case 3:
          bench.hear(protocol::Welcome{1, 1, kEpoch, 2000});
          break;
        case 4:
          if (!answered.empty()) {
            const AttemptId one = *std::next(
                answered.begin(), static_cast<std::ptrdiff_t>(random() % answered.size()));
            kept.insert(one);
            bench.hear(protocol::OutcomesKept{{one}});
          }
          break;
        case 5:
          bench.step(Tick{});
          break;
        default:
          if (!in_hand) break;
          if (at < in_hand->jobs.size()) {
            bench.step(ended({in_hand->jobs[at++].attempt.value()}));
          } else {
            in_hand = nullptr;
            bench.step(LeaseEnded{});
          }
      }
      note();
    }
    bench.hear(protocol::Welcome{1, 1, kEpoch, 2000});
    note();
    bench.hear(protocol::Stop{false});
    note();
    for (int turn = 0; turn < 100 && bench.quits.empty(); ++turn) {
      bench.now += 1s;
      if (in_hand && at < in_hand->jobs.size()) {
        bench.step(ended({in_hand->jobs[at++].attempt.value()}));
      } else if (in_hand) {
        in_hand = nullptr;
        bench.step(LeaseEnded{});
      } else {
        bench.step(Tick{});
      }
      note();
    }
    CHECK(bench.quits.size() == 1);
    CHECK(answered == leased);
  }
}
