#include "coordinator/app/dispatcher.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace layerfarm::coordinator::app {
using namespace std::chrono_literals;
using core::AttemptId;
using core::JobId;
using core::WorkerId;
using domain::Ending;
using domain::Stage;

namespace {

constexpr int kMessagesPerTurn =
    256;  // bounded, so that a flood cannot keep the rest of the turn waiting
constexpr unsigned kQuickDeathsAreFatal = 3;
constexpr auto kRestartPause = 200ms;
constexpr auto kStopPatience = 2000ms;

sigset_t stop_signals() {
  sigset_t out;
  ::sigemptyset(&out);
  ::sigaddset(&out, SIGINT);
  ::sigaddset(&out, SIGTERM);
  ::sigaddset(&out, SIGHUP);
  return out;
}

}  // namespace

void block_stop_signals() {
  const sigset_t wanted = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
}

struct Dispatcher::Worker {
  std::string name;
  std::int64_t pid = 0;
  std::optional<std::size_t> slot;  ///< one of our own
};

struct Dispatcher::Group {
  store::Ticket ticket;
  std::vector<store::Fact> facts;
  std::vector<std::pair<core::JobSettled, std::shared_ptr<const domain::Outcome>>> settled;
  std::map<WorkerId, protocol::OutcomesKept> acknowledgements;
  [[nodiscard]] bool empty() const {
    return facts.empty() && settled.empty() && acknowledgements.empty();
  }
};

Dispatcher::Dispatcher(Settings settings, WorkerHub& hub, store::Store& store, LocalWorkers* local,
                       JobSource& source)
    : settings_(std::move(settings)),
      hub_(hub),
      store_(store),
      local_(local),
      source_(source),
      core_(settings_.policy),
      open_(std::make_unique<Group>()) {
  if (local_ != nullptr) {
    quick_deaths_.resize(local_->slots());
    restart_at_.resize(local_->slots(), base::Time::min());
  }
  const sigset_t wanted = stop_signals();
  signals_ = ::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

Dispatcher::~Dispatcher() {
  if (signals_ >= 0) ::close(signals_);
}

void Dispatcher::tell(core::Event event) {
  for (const core::Action& action : core_.step(event, clock_.now())) {
    std::visit([this](const auto& a) { carry_out(a); }, action);
  }
}

void Dispatcher::start_workers() {
  if (local_ == nullptr || stopping_) return;
  const core::Counts counts = core_.counts();
  if (counts.settled == counts.jobs) return;
  std::uint32_t expected = 0;
  for (std::size_t slot = 0; slot < local_->slots(); ++slot) {
    const bool joined = std::any_of(workers_.begin(), workers_.end(),
                                    [&](const auto& w) { return w.second.slot == slot; });
    if (local_->pid(slot) == 0 && clock_.now() >= restart_at_[slot]) {
      if (auto started = local_->start(slot); !started) {
        fatal_ = started.error().text();
        return;
      }
    }
    if (!joined) ++expected;
  }
  tell(core::WorkersExpected{expected});
}

void Dispatcher::turn(std::chrono::milliseconds longest) {
  commit();
  auto timeout = longest;
  if (const auto deadline = core_.next_deadline()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(*deadline - clock_.now()) + 1ms;
    timeout = std::clamp<std::chrono::milliseconds>(left, 0ms, timeout);
  }
  std::vector<int> descriptors = {signals_, store_.fd()};
  if (local_ != nullptr) {
    for (const int fd : local_->descriptors()) descriptors.push_back(fd);
  }
  const transport::Ready ready = transport::wait(hub_.socket(), descriptors, timeout);
  if (ready.descriptors[0]) {
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
      source_.on_interrupt();
  }
  if (ready.socket) {
    for (HubEvent& event : hub_.receive(kMessagesPerTurn))
      std::visit([this](auto& e) { on(e); }, event);
  }
  if (local_ != nullptr) reap_local();
  if (const auto deadline = core_.next_deadline(); deadline && clock_.now() >= *deadline)
    tell(core::Tick{});
  commit();
  release();
}

bool Dispatcher::idle() const {
  const core::Counts counts = core_.counts();
  return counts.settled == counts.jobs && open_->empty() && waiting_.empty();
}

// ---- what workers say ----

void Dispatcher::on(Joined& joined) {
  Worker worker{joined.hello.name, joined.hello.pid, {}};
  if (local_ != nullptr) {
    for (std::size_t slot = 0; slot < local_->slots(); ++slot) {
      if (local_->pid(slot) == joined.hello.pid) {
        worker.slot = slot;
        quick_deaths_[slot] = 0;
      }
    }
  }
  core::WorkerJoined event;
  event.worker = joined.worker;
  const auto [host, added] = hosts_.try_emplace(
      joined.hello.host, core::HostId(static_cast<std::uint32_t>(hosts_.size() + 1)));
  event.host = host->second;
  event.replaces = joined.replaces;
  if (std::find(joined.hello.features.begin(), joined.hello.features.end(), "reader") !=
      joined.hello.features.end()) {
    event.abilities.push_back(kReader);
  }
  for (std::size_t chip = 0; chip < settings_.chips.size(); ++chip) {
    const base::Digest description = base::digest_of(domain::chip_json(settings_.chips[chip]));
    const bool can =
        std::any_of(joined.hello.abilities.begin(), joined.hello.abilities.end(),
                    [&](const protocol::Ability& a) { return a.found && a.chip == description; });
    if (can) event.abilities.push_back(class_of_chip(chip));
  }
  for (const AttemptId attempt : joined.hello.running)
    event.held.push_back({attempt, std::nullopt});
  if (joined.replaces) workers_.erase(*joined.replaces);
  workers_.emplace(joined.worker, std::move(worker));
  source_.on_note(
      "worker " + joined.hello.name + " joined (pid " + std::to_string(joined.hello.pid) + ")",
      /*verbose=*/true);
  tell(std::move(event));
  start_workers();
}

void Dispatcher::on(Said& said) {
  const WorkerId worker = said.worker;
  if (!workers_.contains(worker)) return;
  if (auto* outcomes = std::get_if<protocol::Outcomes>(&said.message)) {
    on_outcomes(worker, *outcomes);
  } else if (const auto* started = std::get_if<protocol::Started>(&said.message)) {
    tell(core::AttemptsStarted{worker, started->attempts});
  } else if (const auto* beat = std::get_if<protocol::Heartbeat>(&said.message)) {
    const std::string& name = workers_[worker].name;
    source_.on_activity(name, beat->phase);
    // Each job of a long list may wait for the same; once is enough.
    if (!beat->waits_for.empty() && waits_said_.emplace(name, beat->waits_for).second)
      source_.on_note("worker " + name + " waits for " + beat->waits_for, /*verbose=*/false);
    tell(core::WorkerHeard{worker, beat->attempt == AttemptId{}, beat->attempt});
  } else if (const auto* bye = std::get_if<protocol::Goodbye>(&said.message)) {
    source_.on_note("worker " + workers_[worker].name + " left: " + bye->reason, /*verbose=*/true);
    hub_.forget(worker);
    lose(worker, core::Departure::Planned);
  }
}

void Dispatcher::note_trouble(WorkerId worker, const protocol::AttemptOutcome& item) {
  const auto job = attempts_.find(item.attempt);
  const std::string& text = item.outcome.diagnostic.text;
  if (job == attempts_.end() || text.empty()) return;
  troubles_[job->second] = text;
  // Said once: a full disk fails every job in the same words, apart from the names in them.
  constexpr std::size_t kMostSaid = 5;
  if (troubles_said_.size() < kMostSaid && troubles_said_.insert(text).second) {
    source_.on_note("worker " + workers_[worker].name + " cannot work: " + text, /*verbose=*/false);
  }
}

std::string Dispatcher::trouble_of(JobId job) const {
  const auto it = troubles_.find(job);
  return it == troubles_.end() ? std::string() : it->second;
}

void Dispatcher::on_outcomes(WorkerId worker, protocol::Outcomes& outcomes) {
  core::AttemptsEnded event;
  event.worker = worker;
  for (protocol::AttemptOutcome& item : outcomes.outcomes) {
    core::EndedAttempt ended{item.attempt, item.outcome.ending, {}};
    if (item.outcome.ending == Ending::LostBlob) {
      if (const auto job = attempts_.find(item.attempt); job != attempts_.end()) {
        ended.lost = source_.producers_of(job->second, item.outcome.lost);
      }
    }
    if (item.outcome.ending == Ending::Infrastructure) note_trouble(worker, item);
    received_[item.attempt] = std::make_shared<const domain::Outcome>(std::move(item.outcome));
    event.ended.push_back(std::move(ended));
  }
  tell(std::move(event));
  // What the core did not take belongs to nobody.
  for (const auto& ended : outcomes.outcomes) {
    received_.erase(ended.attempt);
    attempts_.erase(ended.attempt);
  }
}

// ---- what the core orders ----

namespace {

/// Puts a job's result beside the lease's jobs, once however many of them use it. The place, or -1
/// when there is no result.
template <typename T>
std::int32_t place_of(JobId job, std::unordered_map<JobId, std::int32_t>& places,
                      std::vector<T>& list, const std::optional<T>& value) {
  if (!value) return -1;
  const auto [place, added] = places.try_emplace(job, static_cast<std::int32_t>(list.size()));
  if (added) list.push_back(*value);
  return place->second;
}

}  // namespace

protocol::Lease Dispatcher::build_lease(const core::GiveLease& action) {
  protocol::Lease lease;
  lease.limits = settings_.limits;
  lease.compile_together = !action.alone;
  std::unordered_map<const domain::Layer*, std::uint32_t> layers;
  std::unordered_map<JobId, std::int32_t> in_lease;
  std::unordered_map<JobId, std::int32_t> prepared;
  std::unordered_map<JobId, std::int32_t> artifacts;
  for (const core::GivenJob& given : action.jobs) {
    const auto [content, analyze, whole] = source_.content(given.job);
    protocol::LeasedJob job;
    job.attempt = given.attempt;
    job.stage = content.stage;
    job.executor = content.executor;
    job.tolerance = content.tolerance;
    job.runs = content.runs;
    job.memory_factor = given.memory_factor;
    if (analyze != nullptr) {
      job.layer = static_cast<std::uint32_t>(lease.analyze.size());
      lease.analyze.push_back(*analyze);
    } else if (whole != nullptr) {
      job.layer = static_cast<std::uint32_t>(lease.whole.size());
      lease.whole.push_back(*whole);
      lease.inputs = content.inputs;
    } else {
      lease.inputs = content.inputs;
      const domain::Layer& layer = content.model->layers[content.layer];
      const auto [place, added] =
          layers.try_emplace(&layer, static_cast<std::uint32_t>(lease.layers.size()));
      if (added) lease.layers.push_back({{content.model, &layer}});
      job.layer = place->second;
    }
    if (content.chip && lease.chip.name.empty()) lease.chip = content.chip->spec;
    if (content.prepare && content.stage != Stage::Compile) {
      if (const auto place = in_lease.find(*content.prepare); place != in_lease.end()) {
        job.prepare_job = place->second;
      } else if (const auto outcome = result(*content.prepare)) {
        job.prepared = place_of(*content.prepare, prepared, lease.prepared, outcome->prepared);
      }
    }
    if (content.compile) {
      if (const auto place = in_lease.find(*content.compile); place != in_lease.end()) {
        job.compile_job = place->second;
      } else if (const auto outcome = result(*content.compile)) {
        job.artifact = place_of(*content.compile, artifacts, lease.artifacts, outcome->artifact);
      }
    }
    if (content.stage == Stage::Recompare && content.execute) {
      if (const auto outcome = result(*content.execute); outcome && outcome->executed)
        job.kept = outcome->executed->actual;
    }
    in_lease.emplace(given.job, static_cast<std::int32_t>(lease.jobs.size()));
    attempts_.emplace(given.attempt, given.job);
    lease.jobs.push_back(std::move(job));
  }
  return lease;
}

void Dispatcher::carry_out(const core::GiveLease& action) {
  if (hub_.send(action.worker, build_lease(action))) return;
  lose(action.worker, core::Departure::Lost);
}

void Dispatcher::carry_out(const core::CancelAttempts& action) {
  if (hub_.send(action.worker, protocol::Cancel{action.attempts})) return;
  lose(action.worker, core::Departure::Lost);
}

void Dispatcher::carry_out(const core::JobSettled& action) {
  std::shared_ptr<const domain::Outcome> outcome;
  if (const auto* answered = std::get_if<core::Answered>(&action.how)) {
    if (const auto it = received_.find(answered->attempt); it != received_.end())
      outcome = it->second;
  }
  if (outcome) {
    open_->facts.push_back(store::OutcomeFact{settings_.run, source_.key(action.job), outcome});
    // Only these are handed on with leases; the others would fill memory for nothing.
    const bool built_on = outcome->prepared || outcome->artifact;
    if (outcome->ending == Ending::Done && built_on) results_[action.job] = outcome;
  }
  open_->settled.emplace_back(action, std::move(outcome));
}

void Dispatcher::carry_out(const core::JobRetried& action) {
  std::string text = "job " + std::to_string(action.job.value()) + " (" +
                     std::string(domain::stage_name(source_.content(action.job).job.stage)) +
                     ") is tried again: " + std::string(domain::ending_name(action.ending));
  if (const auto it = received_.find(action.attempt);
      it != received_.end() && !it->second->diagnostic.cause.empty()) {
    text += ", " + it->second->diagnostic.cause;
  }
  source_.on_note(text, /*verbose=*/true);
}

void Dispatcher::carry_out(const core::IgnoreLate& action) { received_.erase(action.attempt); }

void Dispatcher::carry_out(const core::Acknowledge& action) {
  auto& kept = open_->acknowledgements[action.worker].attempts;
  kept.insert(kept.end(), action.attempts.begin(), action.attempts.end());
}

void Dispatcher::carry_out(const core::DropWorker& action) {
  const auto it = workers_.find(action.worker);
  if (it == workers_.end()) return;
  const char* why = action.reason == core::DropReason::Silent ? "nothing was heard from it"
                                                              : "a job is far over its time there";
  source_.on_note("worker " + it->second.name + " is given up: " + why, /*verbose=*/false);
  if (it->second.slot && local_->pid(*it->second.slot) == it->second.pid)
    ::kill(local_->pid(*it->second.slot), SIGKILL);
  hub_.forget(action.worker);
  workers_.erase(it);
}

void Dispatcher::carry_out(const core::AskHello& action) {
  if (!hub_.send(action.worker, protocol::HelloAgain{})) lose(action.worker, core::Departure::Lost);
}

void Dispatcher::carry_out(const core::WorkerQuarantined& action) {
  source_.on_note(
      "worker " + hub_.name(action.worker) + " is set aside after " +
          std::to_string(action.faults) + " faults in a row; it is tried again in " +
          std::to_string(
              std::chrono::duration_cast<std::chrono::seconds>(action.next_probe).count()) +
          " s",
      /*verbose=*/false);
}

void Dispatcher::carry_out(const core::WorkerReadmitted& action) {
  source_.on_note("worker " + hub_.name(action.worker) + " works again", /*verbose=*/false);
}

void Dispatcher::carry_out(const core::AbilityMissing& action) {
  const std::size_t index = action.ability.value();
  const std::string what = index == 0 ? "that reads models and makes references"
                                      : "for chip " + settings_.chips[index - 1].name;
  source_.on_note(std::to_string(action.jobs) + " jobs wait: no worker " + what + " is connected",
                  /*verbose=*/false);
}

void Dispatcher::carry_out(const core::AbilityFound&) {}
void Dispatcher::carry_out(const core::AllSettled&) {}
void Dispatcher::carry_out(const core::Stopped&) {}

// ---- durability ----

void Dispatcher::commit() {
  if (open_->empty()) return;
  // A group without facts of its own still waits for those before it: what is shown stays in order.
  open_->ticket = store_.append(std::exchange(open_->facts, {}));
  waiting_.push_back(std::move(*open_));
  *open_ = Group{};
}

void Dispatcher::release() {
  const store::News news = store_.take_news();
  for (const std::string& message : news.messages) source_.on_note(message, /*verbose=*/false);
  if (news.trouble.has_value() != store_in_trouble_) {
    store_in_trouble_ = news.trouble.has_value();
    source_.on_note(store_in_trouble_ ? "results cannot be stored: " + news.trouble->text() +
                                            "; no new work is given out until there is room"
                                      : std::string("results can be stored again"),
                    /*verbose=*/false);
    tell(core::LeasingPaused{store_in_trouble_});
  }
  while (!waiting_.empty() && waiting_.front().ticket <= news.durable) {
    const Group group = std::move(waiting_.front());
    waiting_.pop_front();
    for (const auto& [worker, kept] : group.acknowledgements) {
      if (workers_.contains(worker) && !hub_.send(worker, kept))
        lose(worker, core::Departure::Lost);
    }
    for (const auto& [settled, outcome] : group.settled) source_.on_settled(settled, outcome);
  }
}

std::shared_ptr<const domain::Outcome> Dispatcher::result(JobId job) {
  if (const auto it = results_.find(job); it != results_.end()) return it->second;
  auto stored = store_.find(source_.key(job));
  if (!stored) return nullptr;
  auto outcome = std::make_shared<const domain::Outcome>(std::move(stored->outcome));
  results_.emplace(job, outcome);
  return outcome;
}

// ---- workers that come and go ----

void Dispatcher::lose(WorkerId worker, core::Departure how) {
  if (workers_.erase(worker) == 0) return;
  tell(core::WorkerLeft{worker, how});
}

void Dispatcher::reap_local() {
  bool restart = false;
  for (const WorkerExit& exit : local_->reap()) {
    std::optional<WorkerId> registered;
    for (const auto& [id, worker] : workers_) {
      if (worker.slot == exit.slot && worker.pid == exit.pid) registered = id;
    }
    restart_at_[exit.slot] = clock_.now() + kRestartPause;
    if (stopping_) continue;
    restart = true;
    source_.on_note("worker w" + std::to_string(exit.slot) + " ended (" + exit.how + ")",
                    /*verbose=*/false);
    if (registered) {
      hub_.forget(*registered);
      lose(*registered, core::Departure::Died);
    } else if (++quick_deaths_[exit.slot] >= kQuickDeathsAreFatal) {
      fatal_ = "workers end before they begin (" + exit.how + "); their own messages are above";
    }
  }
  if (restart || local_->running() < local_->slots()) start_workers();
}

void Dispatcher::shut_down() {
  stopping_ = true;
  for (const auto& [worker, info] : workers_) {
    [[maybe_unused]] const bool sent = hub_.send(worker, protocol::Stop{true});
  }
  if (local_ != nullptr) local_->end_all(kStopPatience);
}

}  // namespace layerfarm::coordinator::app
