#include "tests/support/coordinator/scheduler_text.h"

#include <cstdio>
#include <type_traits>
#include <vector>

namespace layerfarm::test {
namespace {

using namespace coordinator::core;

std::string text(WorkerId worker) { return "W" + std::to_string(worker.value()); }
std::string text(AttemptId attempt) { return "a" + std::to_string(attempt.value()); }

template <typename Id>
std::string list(const std::vector<Id>& ids) {
  std::string out;
  for (const Id id : ids) out += " " + text(id);
  return out;
}

std::string list(const std::vector<JobId>& jobs, const JobNames& names) {
  std::string out;
  for (const JobId job : jobs) out += " " + names(job);
  return out;
}

std::string_view reason_name(UnsettledReason reason) {
  switch (reason) {
    case UnsettledReason::Infrastructure:
      return "infrastructure";
    case UnsettledReason::NoWorker:
      return "no worker";
    case UnsettledReason::LostBlobs:
      return "lost blobs";
  }
  return "";
}

struct HowText {
  const JobNames& names;
  std::string operator()(const Answered& how) const {
    return std::string(domain::ending_name(how.ending)) + " by " + text(how.attempt);
  }
  std::string operator()(const DependencyFailed& how) const {
    return "because " + names(how.cause) + " failed";
  }
  std::string operator()(const Unsettled& how) const {
    std::string out =
        "UNSETTLED (" + std::string(reason_name(how.reason)) + ") by " + names(how.cause);
    if (how.reason == UnsettledReason::NoWorker) {
      return out + ", missing ability " + std::to_string(how.ability.value());
    }
    return out + ", places " + std::to_string(how.places) + ", faults " +
           std::to_string(how.faults);
  }
  std::string operator()(const KillsWorker& how) const {
    return "kills its worker, deaths " + std::to_string(how.deaths);
  }
};

struct ActionText {
  const JobNames& names;
  std::string operator()(const GiveLease& a) const {
    std::string out = "lease " + text(a.worker);
    if (a.alone) out += " alone";
    if (a.exclusive) out += " exclusive";
    out += ":";
    for (const GivenJob& job : a.jobs) {
      out += " " + text(job.attempt) + "=" + names(job.job);
      if (job.memory_factor > 1) out += "*" + std::to_string(job.memory_factor);
    }
    return out;
  }
  std::string operator()(const CancelAttempts& a) const {
    return "cancel " + text(a.worker) + ":" + list(a.attempts);
  }
  std::string operator()(const JobSettled& a) const {
    return "settled " + names(a.job) + (a.again ? " again: " : ": ") +
           std::visit(HowText{names}, a.how);
  }
  std::string operator()(const JobRetried& a) const {
    return "retry " + names(a.job) + ": " + std::string(domain::ending_name(a.ending)) + " in " +
           text(a.attempt);
  }
  std::string operator()(const IgnoreLate& a) const { return "ignore " + text(a.attempt); }
  std::string operator()(const Acknowledge& a) const {
    return "acknowledge " + text(a.worker) + ":" + list(a.attempts);
  }
  std::string operator()(const DropWorker& a) const {
    return "drop " + text(a.worker) + (a.reason == DropReason::Silent ? ": silent" : ": overdue");
  }
  std::string operator()(const AskHello& a) const { return "ask hello " + text(a.worker); }
  std::string operator()(const WorkerQuarantined& a) const {
    return "quarantine " + text(a.worker) + ": " + std::to_string(a.faults) +
           " faults in a row, probe in " + text_of(a.next_probe);
  }
  std::string operator()(const WorkerReadmitted& a) const { return "readmit " + text(a.worker); }
  std::string operator()(const AbilityMissing& a) const {
    return "missing ability " + std::to_string(a.ability.value()) + " for " +
           std::to_string(a.jobs) + " jobs";
  }
  std::string operator()(const AbilityFound& a) const {
    return "found ability " + std::to_string(a.ability.value());
  }
  std::string operator()(const AllSettled&) const { return "all settled"; }
  std::string operator()(const Stopped&) const { return "stopped"; }
};

struct EventText {
  const JobNames& names;
  std::string operator()(const GroupsAdded& e) const {
    return std::to_string(e.groups.size()) + " groups added";
  }
  std::string operator()(const JobsAdded& e) const {
    return std::to_string(e.jobs.size()) + " jobs added";
  }
  std::string operator()(const JobsDropped& e) const {
    return "jobs dropped:" + list(e.jobs, names);
  }
  std::string operator()(const JobsWanted& e) const { return "jobs wanted:" + list(e.jobs, names); }
  std::string operator()(const WorkerJoined& e) const {
    std::string out = text(e.worker) + " joined on host " + std::to_string(e.host.value());
    if (e.replaces) out += ", was " + text(*e.replaces);
    for (const HeldAttempt& held : e.held) {
      out += " " + text(held.attempt);
      if (held.job) out += "=" + names(*held.job);
    }
    return out;
  }
  std::string operator()(const WorkerLeft& e) const {
    const char* how = e.how == Departure::Planned ? " left"
                      : e.how == Departure::Died  ? " died"
                                                  : " lost";
    return text(e.worker) + how;
  }
  std::string operator()(const WorkersExpected& e) const {
    return std::to_string(e.count) + " workers expected";
  }
  std::string operator()(const AttemptsStarted& e) const {
    return text(e.worker) + " started" + list(e.attempts);
  }
  std::string operator()(const AttemptsEnded& e) const {
    std::string out = text(e.worker) + " ended";
    for (const EndedAttempt& ended : e.ended) {
      out += " " + text(ended.attempt) + "=" + std::string(domain::ending_name(ended.ending));
      if (!ended.lost.empty()) out += "(" + list(ended.lost, names) + " )";
    }
    return out;
  }
  std::string operator()(const WorkerHeard& e) const {
    return text(e.worker) + " heard" + (e.idle ? " idle" : "") +
           (e.attempt.value() != 0 ? " " + text(e.attempt) : "");
  }
  std::string operator()(const LeasingPaused& e) const {
    return e.paused ? "leasing paused" : "leasing goes on";
  }
  std::string operator()(const Tick&) const { return "tick"; }
  std::string operator()(const Stop& e) const { return e.now ? "stop now" : "stop"; }
};

}  // namespace

std::string number_name(JobId job) { return "j" + std::to_string(job.value()); }

std::string text_of(const Action& action, const JobNames& names) {
  return std::visit(ActionText{names}, action);
}

std::string text_of(const Event& event, const JobNames& names) {
  return std::visit(EventText{names}, event);
}

std::string text_of(const Explanation& e, const JobNames& names) {
  std::string out(why_name(e.why));
  if (e.job) out += " " + names(*e.job);
  if (e.worker) out += " " + text(*e.worker);
  if (e.attempt) out += " " + text(*e.attempt);
  out += "; ability " + std::to_string(e.ability.value()) + ": able " +
         std::to_string(e.able_workers) + ", fit " + std::to_string(e.fit_workers);
  if (e.queued_before > 0) out += "; queued before it: " + std::to_string(e.queued_before);
  if (e.faults > 0) out += "; faults " + std::to_string(e.faults);
  if (e.until) out += "; until " + text_of(*e.until);
  return out;
}

std::string text_of(base::Duration duration) {
  char buffer[40];
  const double seconds = std::chrono::duration<double>(duration).count();
  std::snprintf(buffer, sizeof buffer, "%.6f", seconds);
  std::string out = buffer;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out + "s";
}

}  // namespace layerfarm::test
