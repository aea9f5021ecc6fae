#include "worker/app/job_thread.h"

#include <poll.h>

#include <utility>

namespace layerfarm::worker::app {
using protocol::AttemptId;
using protocol::AttemptOutcome;
using protocol::LeasedJob;

void LeaseControl::drain() {
  for (const std::vector<AttemptId>& attempts : cancels_.take())
    cancelled_.insert(attempts.begin(), attempts.end());
}

bool LeaseControl::cancelled(const LeasedJob& job) {
  drain();
  return leaving_ || cancelled_.contains(job.attempt);
}

void LeaseControl::waits(std::string what) { out_.put(core::Waits{std::move(what)}); }

std::vector<LeasedJob> LeaseControl::begin(const std::vector<LeasedJob>& jobs) {
  // Order matters: a cancellation that arrives after the reset ends the step, one before it is in
  // the mailbox by now. Leaving is the same: its flag is set before the token.
  token_.reset();
  drain();
  std::vector<LeasedJob> wanted;
  core::JobsBegan began;
  core::JobsEnded skipped;
  for (const LeasedJob& job : jobs) {
    if (cancelled(job)) {
      domain::Outcome outcome;
      outcome.stage = job.stage;
      outcome.ending = domain::Ending::Cancelled;
      skipped.outcomes.push_back({job.attempt, std::move(outcome)});
    } else {
      began.attempts.push_back(job.attempt);
      wanted.push_back(job);
    }
  }
  if (!skipped.outcomes.empty()) out_.put_quietly(std::move(skipped));
  if (!began.attempts.empty()) out_.put_quietly(std::move(began));
  if (const base::Time now = clock_.now(); !woken_ || now - *woken_ >= kGatherNews) {
    woken_ = now;
    out_.wake();
  }
  return wanted;
}

void LeaseControl::end(std::vector<AttemptOutcome> outcomes) {
  // The next beginning or the end of the lease comes right behind (among tiny cases after a slice):
  // one message for both.
  out_.put_quietly(core::JobsEnded{std::move(outcomes)});
}

void LeaseControl::end(const LeasedJob& job, domain::Outcome outcome) {
  end(std::vector<AttemptOutcome>{{job.attempt, std::move(outcome)}});
}

JobThread::JobThread(base::Mailbox<core::Event>& out, process::CancelToken& token,
                     LeaseFunction work)
    : out_(out), work_(std::move(work)), token_(token), thread_([this] { loop(); }) {}

JobThread::~JobThread() {
  leaving_ = true;
  in_.put(nullptr);
  token_.cancel();
  thread_.join();
}

void JobThread::begin(std::shared_ptr<const protocol::Lease> lease) { in_.put(std::move(lease)); }

void JobThread::cancel(std::vector<AttemptId> attempts, bool end_running) {
  cancels_.put(std::move(attempts));
  if (end_running) token_.cancel();
}

void JobThread::loop() {
  while (true) {
    pollfd item{in_.fd(), POLLIN, 0};
    ::poll(&item, 1, -1);
    for (const auto& lease : in_.take()) {
      if (lease == nullptr) return;
      LeaseControl control(out_, cancels_, token_, leaving_);
      work_(*lease, control);
      out_.put(core::LeaseEnded{});
    }
  }
}

}  // namespace layerfarm::worker::app
