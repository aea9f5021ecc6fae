#include "coordinator/core/failures.h"

#include <doctest/doctest.h>

namespace layerfarm::coordinator::core {
namespace {

using namespace std::chrono_literals;

const CorePolicy kPolicy;
constexpr WorkerId kA{1};
constexpr WorkerId kB{2};
constexpr WorkerId kC{3};

Remedy happens(Trouble& trouble, Mishap what, WorkerId place) {
  return decide(trouble, what, place, AttemptId{7}, kPolicy);
}

TEST_CASE("a signal, a time limit and a memory limit have two tries each, counted apart") {
  for (const Mishap what : {Mishap::Crashed, Mishap::TimedOut, Mishap::OverMemory}) {
    Trouble trouble;
    CHECK(happens(trouble, what, kA) == Remedy::Again);
    CHECK(happens(trouble, what, kB) == Remedy::Verdict);
  }
  Trouble mixed;
  CHECK(happens(mixed, Mishap::Crashed, kA) == Remedy::Again);
  CHECK(happens(mixed, Mishap::TimedOut, kA) == Remedy::Again);
  CHECK(happens(mixed, Mishap::OverMemory, kA) == Remedy::Again);
  CHECK(happens(mixed, Mishap::TimedOut, kA) == Remedy::Verdict);
}

TEST_CASE("after a crash the place is avoided, after a memory kill the claim doubles") {
  Trouble crashed;
  (void)happens(crashed, Mishap::Crashed, kB);
  CHECK(crashed.avoid == std::vector{kB});
  CHECK(is_special(crashed));
  Trouble memory;
  (void)happens(memory, Mishap::OverMemory, kB);
  CHECK_FALSE(memory.alone);
  CHECK(is_special(memory));
  CHECK(memory.memory_factor == 2);
  Trouble timed_out;
  (void)happens(timed_out, Mishap::TimedOut, kB);
  CHECK(!is_special(timed_out));
  CHECK(timed_out.last == AttemptId{7});
}

TEST_CASE("faults of three distinct places leave a job unsettled, and so do six at fewer") {
  Trouble three;
  CHECK(happens(three, Mishap::Fault, kC) == Remedy::Again);
  CHECK(happens(three, Mishap::WorkerLost, kA) == Remedy::Again);
  CHECK(happens(three, Mishap::Fault, kB) == Remedy::Unsettled);
  CHECK(three.places == std::vector{kA, kB, kC});
  Trouble one;
  for (int i = 0; i < 5; ++i) CHECK(happens(one, Mishap::Fault, kA) == Remedy::Again);
  CHECK(happens(one, Mishap::Fault, kA) == Remedy::Unsettled);
}

TEST_CASE("the second death under a job makes it run alone, the third is its verdict") {
  Trouble trouble;
  CHECK(happens(trouble, Mishap::WorkerDied, kA) == Remedy::Again);
  CHECK(!trouble.alone);
  CHECK(happens(trouble, Mishap::WorkerDied, kB) == Remedy::Again);
  CHECK(trouble.alone);
  CHECK(happens(trouble, Mishap::WorkerDied, kC) == Remedy::KillsWorker);
}

TEST_CASE("what was never begun blames nobody, but does not go on for ever") {
  Trouble trouble;
  for (std::uint32_t i = 1; i < kPolicy.max_unstarted; ++i) {
    CHECK(happens(trouble, Mishap::Unstarted, kA) == Remedy::Again);
  }
  CHECK(trouble.places.empty());
  CHECK(!is_special(trouble));
  CHECK(happens(trouble, Mishap::Unstarted, kA) == Remedy::Unsettled);
}

TEST_CASE("rests double with each fault") {
  Trouble trouble;
  trouble.faults = 1;
  CHECK(rest(trouble, kPolicy) == 1s);
  trouble.faults = 3;
  CHECK(rest(trouble, kPolicy) == 4s);
  trouble.faults = 255;
  CHECK(rest(trouble, kPolicy) == 65536s);
}

}  // namespace
}  // namespace layerfarm::coordinator::core
