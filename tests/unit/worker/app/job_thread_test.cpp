#include "worker/app/job_thread.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <chrono>
#include <map>

using namespace layerfarm;
using namespace layerfarm::worker;
using namespace layerfarm::worker::app;
using domain::Ending;
using protocol::AttemptId;

namespace {

std::shared_ptr<const protocol::Lease> lease_of(std::vector<std::uint64_t> attempts) {
  auto lease = std::make_shared<protocol::Lease>();
  for (const std::uint64_t attempt : attempts)
    lease->jobs.emplace_back().attempt = AttemptId(attempt);
  return lease;
}

/// What the worker core hears, as it comes.
struct Heard {
  base::Mailbox<core::Event> events;
  std::map<std::uint64_t, Ending> endings;
  std::vector<std::uint64_t> begun;
  int leases_ended = 0;

  void take() {
    for (core::Event& event : events.take()) {
      if (auto* ended = std::get_if<core::JobsEnded>(&event)) {
        for (const auto& item : ended->outcomes)
          endings[item.attempt.value()] = item.outcome.ending;
      } else if (auto* began = std::get_if<core::JobsBegan>(&event)) {
        for (const AttemptId attempt : began->attempts) begun.push_back(attempt.value());
      } else if (std::holds_alternative<core::LeaseEnded>(event)) {
        ++leases_ended;
      }
    }
  }
  template <typename Condition>
  bool wait_for(Condition condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= until) return false;
      pollfd item{events.fd(), POLLIN, 0};
      ::poll(&item, 1, 100);
      take();
    }
    return true;
  }
};

/// A step that goes on until it is ended from outside.
void until_ended(LeaseControl& control) {
  pollfd item{control.token().fd(), POLLIN, 0};
  ::poll(&item, 1, 20'000);
}

/// Job after job; those with an even attempt take until they are ended, the others are done at
/// once.
void work(const protocol::Lease& lease, LeaseControl& control) {
  for (const protocol::LeasedJob& job : lease.jobs) {
    if (control.begin({job}).empty()) continue;
    domain::Outcome outcome;
    outcome.ending = Ending::Done;
    if (job.attempt.value() % 2 == 0) {
      until_ended(control);
      outcome.ending = Ending::Cancelled;
    }
    control.end(job, outcome);
  }
}

}  // namespace

TEST_CASE("leases are worked through in order, and the end of each is told") {
  Heard heard;
  process::CancelToken token;
  JobThread jobs(heard.events, token, work);
  jobs.begin(lease_of({1, 3}));
  jobs.begin(lease_of({5}));
  CHECK(heard.wait_for([&] { return heard.leases_ended == 2; }));
  CHECK(heard.begun == std::vector<std::uint64_t>{1, 3, 5});
  CHECK(heard.endings ==
        std::map<std::uint64_t, Ending>{{1, Ending::Done}, {3, Ending::Done}, {5, Ending::Done}});
}

TEST_CASE("a cancelled job is ended where it runs, and answered unbegun where it waits") {
  Heard heard;
  process::CancelToken token;
  JobThread jobs(heard.events, token, work);
  jobs.begin(lease_of({2, 3, 5}));
  REQUIRE(heard.wait_for([&] { return !heard.begun.empty(); }));
  jobs.cancel({AttemptId(2), AttemptId(3)}, /*end_running=*/true);
  CHECK(heard.wait_for([&] { return heard.leases_ended == 1; }));
  CHECK(heard.begun == std::vector<std::uint64_t>{2, 5});
  CHECK(heard.endings == std::map<std::uint64_t, Ending>{
                             {2, Ending::Cancelled}, {3, Ending::Cancelled}, {5, Ending::Done}});
}

TEST_CASE("a thread that must go ends what runs and begins nothing more of its lease") {
  Heard heard;
  process::CancelToken token;
  const auto before = std::chrono::steady_clock::now();
  {
    JobThread jobs(heard.events, token, work);
    jobs.begin(lease_of({2, 4, 6, 7}));
    REQUIRE(heard.wait_for([&] { return !heard.begun.empty(); }));
  }
  CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(15));
  heard.take();
  CHECK(heard.begun == std::vector<std::uint64_t>{2});
  CHECK(heard.endings == std::map<std::uint64_t, Ending>{{2, Ending::Cancelled},
                                                         {4, Ending::Cancelled},
                                                         {6, Ending::Cancelled},
                                                         {7, Ending::Cancelled}});
}
