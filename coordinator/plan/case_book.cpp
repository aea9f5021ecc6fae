#include "coordinator/plan/case_book.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "coordinator/plan/job_table.h"
#include "shared/base/check.h"
#include "shared/domain/keys.h"

namespace layerfarm::coordinator::plan {
namespace {

using base::Digest;
using domain::Ending;
using domain::Outcome;
using domain::Stage;
using OutcomePtr = std::shared_ptr<const Outcome>;

enum class CaseState : std::uint8_t {
  NotSelected,
  Idle,          ///< selected, nothing asked yet
  Waiting,       ///< for a job that decides its verdict
  WaitingEarly,  ///< the same, on an idle worker only: a higher executor is not decided
  Held,          ///< has its verdict, shown only when the higher executors have theirs
  Timing,        ///< has its verdict, waits for its times
  TimingSuccess,
  WaitingForSource,  ///< will be what the case that it copies becomes
  // Settled:
  Tested,  ///< no success
  Works,
  Skipped,
  Unsettled,
};

constexpr bool is_settled(CaseState state) { return state >= CaseState::Tested; }

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool same_text_any_case(const std::string& a, const std::string& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](unsigned char x, unsigned char y) {
           return std::tolower(x) == std::tolower(y);
         });
}

/// Endings that say nothing of the case; whoever hands them over has nothing for this key.
bool says_nothing(Ending ending) {
  return ending == Ending::Infrastructure || ending == Ending::LostBlob ||
         ending == Ending::Cancelled;
}

OutcomePtr made_failure(Stage stage, std::string where, std::string cause, std::string text) {
  auto out = std::make_shared<Outcome>();
  out->stage = stage;
  out->ending = Ending::Refused;
  out->diagnostic = {.where = std::move(where), .cause = std::move(cause), .text = std::move(text)};
  return out;
}

/// One add(): what its files share.
struct Request {
  PlanRequest given;
  std::uint16_t run = 0;
  std::vector<std::uint32_t> work;       // number of (layer, inputs, reference), by layer
  std::vector<std::uint32_t> signature;  // number of the signature, by layer
  std::vector<bool> selected;
};

/// One report.
struct File {
  std::uint32_t request = 0;
  std::uint32_t chip = 0;  // place in the request
  std::uint32_t first_case = 0;
  std::uint32_t executors = 0;
  std::vector<std::uint32_t> compile_target;  // by executor
  std::vector<Group> group;                   // by executor
  // Under --dedup-layers, by layer: the layer that it copies, and the next one that copies the
  // same.
  std::vector<std::uint32_t> source;
  std::vector<std::uint32_t> next_copy;
  FileCounts counts;
};

/// Means of how long jobs took.
class Experience {
 public:
  void saw(Stage stage, Group group, std::int64_t took_us) {
    if (took_us <= 0) return;
    auto& [sum, count] = seen_[{stage, group}];
    sum += took_us;
    ++count;
  }
  [[nodiscard]] std::uint32_t estimate(Stage stage, Group group) const {
    const auto at = seen_.find({stage, group});
    std::int64_t us = typical[static_cast<std::size_t>(stage)].value_or(0);
    if (at != seen_.end()) us = at->second.first / at->second.second;
    return static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(us, 0, std::numeric_limits<std::uint32_t>::max()));
  }
  std::array<std::optional<std::int64_t>, 7> typical{};

 private:
  std::map<std::pair<Stage, Group>, std::pair<std::int64_t, std::int64_t>> seen_;  // sum, count
};

}  // namespace

struct CaseBook::Impl {
  explicit Impl(Known& given)
      : known(given),
        jobs([this](std::uint32_t job) { return work_of(job); }),
        work_numbers(
            [this](std::uint32_t number) -> const Digest& { return prepare_keys[number]; }),
        signature_numbers([this](std::uint32_t number) -> const Digest& {
          const auto& [request, layer] = signature_examples[number];
          return requests[request].given.model->layers[layer].signature;
        }) {}

  // ---- what is asked about ----

  /// A case with everything around it.
  struct Place {
    std::uint32_t id = 0;
    std::uint32_t file_number = 0;
    const File* file = nullptr;
    const Request* request = nullptr;
    std::uint32_t layer = 0;
    std::uint32_t executor = 0;
    [[nodiscard]] const domain::Layer& layer_spec() const {
      return request->given.model->layers[layer];
    }
    [[nodiscard]] const PlanChip& chip() const { return *request->given.chips[file->chip]; }
    [[nodiscard]] const domain::ExecutorSpec& executor_spec() const {
      return chip().spec.executors[executor];
    }
    [[nodiscard]] const PlanOptions& options() const { return request->given.options; }
    [[nodiscard]] const OldReport* old() const {
      return file->chip < request->given.old.size() ? &request->given.old[file->chip] : nullptr;
    }
  };

  /// What is known of a piece of work.
  struct Knowledge {
    enum class Kind : std::uint8_t {
      Nothing,
      Open,
      Done,
      Failed,
      Blocked,
      Stuck
    } kind = Kind::Nothing;
    std::uint32_t job = kNone;  // when the book has one that counts
    OutcomePtr outcome;         // Done, Failed
    bool stored = false;        // from before this run
  };

  Known& known;
  std::deque<Request> requests;
  std::vector<File> files;
  JobTable jobs;
  std::deque<Digest> prepare_keys;  // by work number
  DigestNumbers work_numbers;
  std::deque<std::pair<std::uint32_t, std::uint32_t>>
      signature_examples;  // (request, layer) by signature number
  DigestNumbers signature_numbers;
  std::map<Digest, std::uint32_t> compile_targets;
  std::map<Digest, Group> groups;
  std::map<RunId, std::uint16_t> runs;

  // By case.
  std::vector<CaseState> state;
  std::vector<std::uint32_t> waits;  // the job, or kNone
  std::vector<std::uint32_t> link;   // next case that waits for the same job

  std::unordered_map<std::uint32_t, CaseSettled> held;  // verdicts of cases in Held and Timing
  std::map<std::uint32_t, OutcomePtr> failures;  // of jobs whose outcome answers no later run
  std::map<std::uint32_t, std::string> stuck_reasons;
  std::map<std::uint32_t, Digest> analyze_keys;
  std::map<std::tuple<std::uint32_t, double, double, double>, std::uint32_t>
      recompares;  // (execute job, tolerance)
  Experience experience;

  // Only during one call.
  Turn turn;
  std::uint32_t first_new_job = 0;
  std::uint32_t just_settled = kNone;
  OutcomePtr just_outcome;

  // ---- finding things ----

  [[nodiscard]] Place place(std::uint32_t id) const {
    const auto after = std::upper_bound(
        files.begin(), files.end(), id,
        [](std::uint32_t wanted, const File& file) { return wanted < file.first_case; });
    // Files of a model without layers share their first case with the next one; the last of them
    // has it.
    return place_in(static_cast<std::uint32_t>(after - files.begin() - 1), id);
  }

  [[nodiscard]] Place place_in(std::uint32_t file_number, std::uint32_t id) const {
    const File& file = files[file_number];
    Place out;
    out.id = id;
    out.file_number = file_number;
    out.file = &file;
    out.request = &requests[file.request];
    out.layer = (id - file.first_case) / file.executors;
    out.executor = (id - file.first_case) % file.executors;
    return out;
  }

  [[nodiscard]] std::uint32_t case_of(const File& file, std::uint32_t layer,
                                      std::uint32_t executor) const {
    return file.first_case + layer * file.executors + executor;
  }

  [[nodiscard]] WorkKey work_key(const Place& at, Stage stage) const {
    const std::uint32_t work = at.request->work[at.layer];
    switch (stage) {
      case Stage::Prepare:
        return {stage, work, 0, 0};
      case Stage::Compile:
        return {stage, at.request->signature[at.layer], at.file->compile_target[at.executor], 0};
      case Stage::Execute:
        return {stage, work, at.file->group[at.executor], 0};
      case Stage::Time:
        return {stage, work, at.file->group[at.executor],
                static_cast<std::uint32_t>(at.options().timing_runs)};
      case Stage::Analyze:
      case Stage::Recompare:
        break;
    }
    return {stage, kNone, 0, 0};  // these are not found by their work
  }

  [[nodiscard]] WorkKey work_of(std::uint32_t job) const {
    return work_key(place(jobs[job].example), jobs[job].stage);
  }

  [[nodiscard]] domain::Tolerance tolerance(const Place& at) const {
    const ToleranceEdit* edit = nullptr;
    if (const OldReport* old = at.old(); old != nullptr && !old->edits.empty()) {
      if (const auto found = old->edits.find(at.layer_spec().id); found != old->edits.end())
        edit = &found->second;
    }
    return tolerance_in_force(at.executor_spec(), at.options().tolerance, edit);
  }

  [[nodiscard]] std::optional<domain::Status> old_status(const Place& at) const {
    const OldReport* old = at.old();
    if (old == nullptr) return std::nullopt;
    const auto layer = old->statuses.find(at.layer_spec().id);
    if (layer == old->statuses.end()) return std::nullopt;
    const auto executor = layer->second.find(at.executor_spec().name);
    return executor == layer->second.end() ? std::nullopt : std::optional(executor->second);
  }

  [[nodiscard]] Digest key(const Place& at, Stage stage) const {
    const Digest& prepare = prepare_keys[at.request->work[at.layer]];
    if (stage == Stage::Prepare) return prepare;
    const PlanChip& chip = at.chip();
    const Digest compile =
        domain::compile_key(at.layer_spec(), chip.spec, at.executor_spec(), chip.tool);
    if (stage == Stage::Compile) return compile;
    const Digest execute = domain::execute_key(prepare, compile, chip.spec, chip.tool);
    if (stage == Stage::Recompare) return domain::recompare_key(execute, tolerance(at));
    if (stage == Stage::Time)
      return domain::time_key(execute, chip.place, at.options().timing_runs);
    return execute;
  }

  [[nodiscard]] Digest key(std::uint32_t job) const {
    if (jobs[job].stage == Stage::Analyze) return analyze_keys.at(job);
    return key(place(jobs[job].example), jobs[job].stage);
  }

  // ---- what is known ----

  [[nodiscard]] OutcomePtr outcome_of(std::uint32_t job) const {
    if (job == just_settled && just_outcome) return just_outcome;
    if (const auto at = failures.find(job); at != failures.end()) return at->second;
    return known.find(key(job));
  }

  /// Whether what became of this job counts for a case of `request`.
  [[nodiscard]] bool counts_for(std::uint32_t job, const Request& request) const {
    const JobRecord& record = jobs[job];
    if (record.state == JobState::Dropped) return false;
    if (record.state == JobState::Open || record.run == request.run) return true;
    // What another run came to is as good as what the store says: final answers count, the rest is
    // tried again.
    if (request.given.options.recompute) return false;
    return record.state == JobState::Done ||
           (record.state == JobState::Failed && !failures.contains(job));
  }

  [[nodiscard]] Knowledge job_knowledge(std::uint32_t job) const {
    Knowledge out;
    out.job = job;
    out.stored = jobs[job].known;
    switch (jobs[job].state) {
      case JobState::Open:
        out.kind = Knowledge::Kind::Open;
        return out;
      case JobState::Blocked:
        out.kind = Knowledge::Kind::Blocked;
        return out;
      case JobState::Stuck:
        out.kind = Knowledge::Kind::Stuck;
        return out;
      case JobState::Done:
      case JobState::Failed:
        out.outcome = outcome_of(job);
        if (!out.outcome) return {};  // the store lost it since: to be done again
        out.kind =
            out.outcome->ending == Ending::Done ? Knowledge::Kind::Done : Knowledge::Kind::Failed;
        return out;
      case JobState::Dropped:
        break;
    }
    return {};
  }

  [[nodiscard]] Knowledge stored_knowledge(const Digest& wanted, Stage stage, Group group) {
    Knowledge out;
    OutcomePtr outcome = known.find(wanted);
    if (!outcome || says_nothing(outcome->ending)) return out;
    experience.saw(stage, group, outcome->took_us);
    out.kind = outcome->ending == Ending::Done ? Knowledge::Kind::Done : Knowledge::Kind::Failed;
    out.outcome = std::move(outcome);
    out.stored = true;
    return out;
  }

  [[nodiscard]] Group group_of(const Place& at, Stage stage) const {
    return stage == Stage::Prepare || stage == Stage::Analyze ? Group{0}
                                                              : at.file->group[at.executor];
  }

  [[nodiscard]] Knowledge ask(const Place& at, Stage stage) {
    const std::uint32_t job = jobs.find(work_key(at, stage));
    if (job != kNone && counts_for(job, *at.request)) {
      Knowledge out = job_knowledge(job);
      if (out.kind != Knowledge::Kind::Nothing) return out;
    }
    if (at.options().recompute) return {};
    return stored_knowledge(key(at, stage), stage, group_of(at, stage));
  }

  // ---- making and giving up jobs ----

  struct NewJob {
    bool known = false;
    bool speculative = false;
    std::uint32_t needs[2] = {kNone, kNone};
  };

  std::uint32_t make_job(const Place& at, Stage stage, const NewJob& how) {
    JobRecord record;
    record.example = at.id;
    record.needs[0] = how.needs[0];
    record.needs[1] = how.needs[1];
    record.run = at.request->run;
    record.stage = stage;
    record.state = how.known ? JobState::Done : JobState::Open;
    record.speculative = how.speculative && !how.known;
    record.known = how.known;
    record.holds_needs = !how.known || any_open(how.needs);
    const std::uint32_t job =
        stage == Stage::Recompare ? jobs.add(record) : jobs.add(record, work_key(at, stage));
    PlannedJob planned;
    planned.id = JobId(job);
    planned.stage = stage;
    planned.group = group_of(at, stage);
    planned.known = how.known;
    planned.speculative = record.speculative;
    planned.exclusive = stage == Stage::Time;
    planned.cost_us = experience.estimate(stage, planned.group);
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t need = how.needs[i];
      if (need == kNone) continue;
      planned.needs[planned.needs[0] ? 1 : 0] = JobId(need);
      if (record.holds_needs) ++jobs[need].uses;
      if (record.state == JobState::Open && !record.speculative) make_firm(need);
    }
    turn.jobs.push_back(planned);
    return job;
  }

  [[nodiscard]] bool any_open(const std::uint32_t (&needs)[2]) const {
    return (needs[0] != kNone && jobs[needs[0]].state == JobState::Open) ||
           (needs[1] != kNone && jobs[needs[1]].state == JobState::Open);
  }

  /// The job behind `what`, made if the book has none.
  std::uint32_t job_for(const Place& at, Stage stage, const Knowledge& what, bool speculative) {
    if (what.job != kNone && what.kind != Knowledge::Kind::Blocked) return what.job;
    return make_job(at, stage,
                    {.known = what.kind == Knowledge::Kind::Done, .speculative = speculative});
  }

  struct Needed {
    std::uint32_t prepare = kNone;
    std::uint32_t compile = kNone;
  };
  Needed needed_for(const Place& at, const Knowledge& prepare, const Knowledge& compile,
                    bool speculative) {
    Needed out;
    if (at.chip().needs_prepare) out.prepare = job_for(at, Stage::Prepare, prepare, speculative);
    if (at.chip().needs_compile) out.compile = job_for(at, Stage::Compile, compile, speculative);
    return out;
  }

  void make_firm(std::uint32_t job) {
    JobRecord& record = jobs[job];
    if (!record.speculative) return;
    record.speculative = false;
    if (job >= first_new_job) {
      turn.jobs[job - first_new_job].speculative = false;
    } else if (record.state == JobState::Open) {
      turn.wanted.push_back(JobId(job));
    }
    for (const std::uint32_t need : record.needs) {
      if (need != kNone) make_firm(need);
    }
  }

  void give_back_needs(std::uint32_t job) {
    if (!jobs[job].holds_needs) return;
    jobs[job].holds_needs = false;
    for (const std::uint32_t need : jobs[job].needs) {
      if (need != kNone) give_up(need);
    }
  }

  /// One that wanted the job does not any more.
  void give_up(std::uint32_t job) {
    JobRecord& record = jobs[job];
    LAYERFARM_CHECK(record.uses > 0);
    if (--record.uses > 0) return;
    if (record.state == JobState::Open) {
      record.state = JobState::Dropped;
      record.waiting = kNone;
      turn.dropped.push_back(JobId(job));
    }
    give_back_needs(job);
  }

  void wait_for(const Place& at, std::uint32_t job, CaseState as) {
    state[at.id] = as;
    waits[at.id] = job;
    link[at.id] = jobs[job].waiting;
    jobs[job].waiting = at.id;
    ++jobs[job].uses;
    if (as != CaseState::WaitingEarly) make_firm(job);
  }

  void stop_waiting(std::uint32_t id) {
    if (waits[id] == kNone) return;
    // It stays in the job's list until that is gone through: its `waits` tells that it is not meant
    // any more.
    give_up(std::exchange(waits[id], kNone));
  }

  // ---- one case ----

  [[nodiscard]] CaseSettled settled(const Place& at, How how) const {
    CaseSettled out;
    out.id = CaseId(at.id);
    out.file = FileId(at.file_number);
    out.layer = at.layer;
    out.executor = at.executor;
    out.how = how;
    return out;
  }

  [[nodiscard]] CaseSettled failed(const Place& at, const Knowledge& what) const {
    CaseSettled out = settled(at, How::Failed);
    out.judgement.status = domain::Status::Error;
    out.tolerance = tolerance(at);
    out.outcome = what.outcome;
    out.stored = what.stored;
    out.prepare_key = at.chip().needs_prepare ? key(at, Stage::Prepare) : Digest{};
    out.compile_key = at.chip().needs_compile ? key(at, Stage::Compile) : Digest{};
    return out;
  }

  [[nodiscard]] CaseSettled stuck(const Place& at, std::uint32_t job) const {
    CaseSettled out = settled(at, How::Unsettled);
    const auto reason = stuck_reasons.find(job);
    if (reason != stuck_reasons.end()) out.reason = reason->second;
    return out;
  }

  /// Takes a case on by one step: to its verdict, or to the job that it must wait for. The order in
  /// which jobs were settled never shows: what the verdict rests on is the first failure in the
  /// order prepare, compile, execute.
  void step(const Place& at) {
    using Kind = Knowledge::Kind;
    const CaseState waiting = state[at.id];  // Waiting or WaitingEarly
    const bool early = waiting == CaseState::WaitingEarly;
    const Knowledge execute = ask(at, Stage::Execute);
    switch (execute.kind) {
      case Kind::Open:
        return wait_for(at, execute.job, waiting);
      case Kind::Done:
        return judge(at, execute);
      case Kind::Failed:
        return verdict(at, failed(at, execute));
      case Kind::Stuck:
      case Kind::Nothing:
      case Kind::Blocked:
        break;
    }
    const Knowledge prepare = at.chip().needs_prepare ? ask(at, Stage::Prepare) : Knowledge{};
    const Knowledge compile = at.chip().needs_compile ? ask(at, Stage::Compile) : Knowledge{};
    if (prepare.kind == Kind::Failed) return verdict(at, failed(at, prepare));
    if (prepare.kind == Kind::Stuck) return verdict(at, stuck(at, prepare.job));
    if (compile.kind == Kind::Failed || compile.kind == Kind::Stuck) {
      if (at.chip().needs_prepare && prepare.kind != Kind::Done) {
        return wait_for(at, job_for(at, Stage::Prepare, prepare, early), waiting);
      }
      return verdict(at,
                     compile.kind == Kind::Failed ? failed(at, compile) : stuck(at, compile.job));
    }
    if (execute.kind == Kind::Stuck) {
      if (prepare.kind == Kind::Open) return wait_for(at, prepare.job, waiting);
      return verdict(at, stuck(at, execute.job));
    }
    const Needed needed = needed_for(at, prepare, compile, early);
    const NewJob how{.speculative = early, .needs = {needed.prepare, needed.compile}};
    wait_for(at, make_job(at, Stage::Execute, how), waiting);
  }

  void judge(const Place& at, const Knowledge& execute) {
    if (!execute.outcome->executed) {
      return verdict(
          at, failed(at, {.outcome = made_failure(Stage::Execute, "compare", "refused",
                                                  "the stored outcome holds no comparison")}));
    }
    CaseSettled out = settled(at, How::Judged);
    out.tolerance = tolerance(at);
    out.prepare_key = at.chip().needs_prepare ? key(at, Stage::Prepare) : Digest{};
    out.compile_key = at.chip().needs_compile ? key(at, Stage::Compile) : Digest{};
    const auto judged = [&](const Knowledge& what) {
      if (!what.outcome->executed) return false;
      const domain::Executed& executed = *what.outcome->executed;
      auto judgement = domain::judge(executed.outputs, executed.expected_outputs, out.tolerance);
      if (!judgement) return false;
      out.judgement = std::move(*judgement);
      out.outcome = what.outcome;
      out.stored = what.stored && execute.stored;
      if (!out.compile_key.is_zero()) {
        const std::uint32_t compile = jobs.find(work_key(at, Stage::Compile));
        out.compile_stored =
            compile == kNone || !counts_for(compile, *at.request) || jobs[compile].known;
      }
      return true;
    };
    if (judged(execute)) return verdict(at, std::move(out));
    const Knowledge again = ask_recompare(at, execute.job, out.tolerance);
    using Kind = Knowledge::Kind;
    switch (again.kind) {
      case Kind::Open:
        return wait_for(at, again.job, state[at.id]);
      case Kind::Done:
        if (judged(again)) return verdict(at, std::move(out));
        return verdict(at, failed(at, {.outcome = made_failure(
                                           Stage::Recompare, "compare", "refused",
                                           "the outputs cannot be judged by this tolerance")}));
      case Kind::Failed:
        return verdict(at, failed(at, again));
      case Kind::Stuck:
        return verdict(at, stuck(at, again.job));
      case Kind::Blocked:
        return verdict(at, failed(at, {.outcome = made_failure(
                                           Stage::Recompare, "compare", "refused",
                                           "the outputs are gone and could not be made again")}));
      case Kind::Nothing:
        break;
    }
    wait_for(at, make_recompare(at, execute, out.tolerance), state[at.id]);
  }

  [[nodiscard]] Knowledge ask_recompare(const Place& at, std::uint32_t execute_job,
                                        const domain::Tolerance& wanted) {
    if (execute_job != kNone) {
      const auto found = recompares.find(
          {execute_job, wanted.fp_avg_tol, wanted.fp_max_tol, wanted.fp_abs_tol_frac});
      if (found != recompares.end() && counts_for(found->second, *at.request)) {
        Knowledge out = job_knowledge(found->second);
        if (out.kind != Knowledge::Kind::Nothing) return out;
      }
    }
    if (at.options().recompute) return {};
    return stored_knowledge(key(at, Stage::Recompare), Stage::Recompare,
                            group_of(at, Stage::Recompare));
  }

  std::uint32_t make_recompare(const Place& at, const Knowledge& execute,
                               const domain::Tolerance& wanted) {
    const bool early = state[at.id] == CaseState::WaitingEarly;
    std::uint32_t execute_job = execute.job;
    const Knowledge prepare = at.chip().needs_prepare ? ask(at, Stage::Prepare) : Knowledge{};
    if (execute_job == kNone) {
      // Known from the store: told to the scheduler with what it was made of, in case its outputs
      // are gone.
      const Knowledge compile = at.chip().needs_compile ? ask(at, Stage::Compile) : Knowledge{};
      const Needed needed = needed_for(at, prepare, compile, true);
      execute_job =
          make_job(at, Stage::Execute, {.known = true, .needs = {needed.prepare, needed.compile}});
    }
    const std::uint32_t prepare_job =
        at.chip().needs_prepare ? job_for(at, Stage::Prepare, ask(at, Stage::Prepare), early)
                                : kNone;
    const std::uint32_t job =
        make_job(at, Stage::Recompare, {.speculative = early, .needs = {prepare_job, execute_job}});
    recompares[{execute_job, wanted.fp_avg_tol, wanted.fp_max_tol, wanted.fp_abs_tol_frac}] = job;
    return job;
  }

  /// The case's own verdict is there; in skip mode those above it speak first.
  void verdict(const Place& at, CaseSettled out) {
    waits[at.id] = kNone;
    if (!at.options().skip_mode) return after_verdict(at, std::move(out));
    held[at.id] = std::move(out);
    state[at.id] = CaseState::Held;
    resolve_layer(at);
  }

  /// Skip mode: goes down the executors of a layer as far as verdicts are there.
  void resolve_layer(const Place& any) {
    for (std::uint32_t executor = 0; executor < any.file->executors; ++executor) {
      const std::uint32_t id = case_of(*any.file, any.layer, executor);
      switch (state[id]) {
        case CaseState::NotSelected:
        case CaseState::Skipped:
        case CaseState::Tested:
        case CaseState::Unsettled:
        case CaseState::Timing:
          continue;
        case CaseState::Works:
        case CaseState::TimingSuccess:
        case CaseState::Idle:
        case CaseState::Waiting:
        case CaseState::WaitingForSource:
          return;
        case CaseState::WaitingEarly:
          state[id] = CaseState::Waiting;
          if (waits[id] != kNone) make_firm(waits[id]);
          return;
        case CaseState::Held:
          break;
      }
      CaseSettled out = std::move(held.at(id));
      held.erase(id);
      const bool works = out.how == How::Judged && out.judgement.status == domain::Status::Success;
      if (works) skip_below(any, executor);
      after_verdict(place_in(any.file_number, id), std::move(out));
      if (works) return;
    }
  }

  /// The layer works with `executor`: what is below is not wanted.
  void skip_below(const Place& any, std::uint32_t executor) {
    for (std::uint32_t lower = executor + 1; lower < any.file->executors; ++lower) {
      const std::uint32_t id = case_of(*any.file, any.layer, lower);
      if (state[id] == CaseState::NotSelected || is_settled(state[id])) continue;
      stop_waiting(id);
      held.erase(id);
      skip(place_in(any.file_number, id), SkipReason::AlreadyWorks, executor);
    }
  }

  void after_verdict(const Place& at, CaseSettled out) {
    if (!at.options().collect_timing || out.how != How::Judged) return settle(at, std::move(out));
    using Kind = Knowledge::Kind;
    const bool works = out.judgement.status == domain::Status::Success;
    Knowledge time = ask(at, Stage::Time);
    if (time.kind == Kind::Nothing) {
      const Knowledge prepare = at.chip().needs_prepare ? ask(at, Stage::Prepare) : Knowledge{};
      const Knowledge compile = at.chip().needs_compile ? ask(at, Stage::Compile) : Knowledge{};
      const Needed needed = needed_for(at, prepare, compile, false);
      time.job = make_job(at, Stage::Time, {.needs = {needed.prepare, needed.compile}});
      time.kind = Kind::Open;
    }
    if (time.kind == Kind::Open) {
      held[at.id] = std::move(out);
      return wait_for(at, time.job, works ? CaseState::TimingSuccess : CaseState::Timing);
    }
    if (time.kind == Kind::Done) out.timed = time.outcome;
    settle(at, std::move(out));
  }

  void skip(const Place& at, SkipReason reason, std::uint32_t executor = 0) {
    CaseSettled out = settled(at, How::Skipped);
    out.skip = reason;
    out.skip_executor = executor;
    settle(at, std::move(out));
  }

  /// The end of a case, and of those that copy it.
  void settle(const Place& at, CaseSettled out) {
    CaseState end = CaseState::Tested;
    switch (out.how) {
      case How::Judged:
      case How::Copied:
      case How::Failed:
        if (out.judgement.status == domain::Status::Success) end = CaseState::Works;
        break;
      case How::CopiedOld:
        if (out.judgement.status == domain::Status::Success) end = CaseState::Works;
        break;
      case How::Skipped:
        end = CaseState::Skipped;
        break;
      case How::Unsettled:
        end = CaseState::Unsettled;
        break;
    }
    state[at.id] = end;
    waits[at.id] = kNone;
    ++files[at.file_number].counts.settled;
    const bool has_copies = !at.file->next_copy.empty() && at.file->source[at.layer] == at.layer;
    if (!has_copies) {
      turn.settled.push_back(std::move(out));
      return;
    }
    turn.settled.push_back(out);
    for (std::uint32_t layer = at.file->next_copy[at.layer]; layer != kNone;
         layer = at.file->next_copy[layer]) {
      const std::uint32_t id = case_of(*at.file, layer, at.executor);
      if (state[id] == CaseState::WaitingForSource) copy(place_in(at.file_number, id), out);
    }
  }

  /// The first executor that the old report has a success on.
  [[nodiscard]] std::optional<std::uint32_t> old_success(const Place& any) const {
    for (std::uint32_t executor = 0; executor < any.file->executors; ++executor) {
      const Place at = place_in(any.file_number, case_of(*any.file, any.layer, executor));
      if (contains(at.options().skip_executors, at.executor_spec().name)) continue;
      if (old_status(at) == domain::Status::Success) return executor;
    }
    return std::nullopt;
  }

  void copy(const Place& at, const CaseSettled& from) {
    if (at.options().skip_mode) {
      for (std::uint32_t higher = 0; higher < at.executor; ++higher) {
        if (state[case_of(*at.file, at.layer, higher)] != CaseState::Works) continue;
        return skip(at, SkipReason::AlreadyWorks, higher);
      }
    }
    CaseSettled out = from;
    out.id = CaseId(at.id);
    out.layer = at.layer;
    out.source_layer = from.layer;
    switch (from.how) {
      case How::Judged:
      case How::Failed:
      case How::Copied:
      case How::CopiedOld:
        out.how = How::Copied;
        break;
      case How::Unsettled:
        out.reason = "duplicate of " + at.request->given.model->layers[from.layer].id +
                     ", which is unsettled: " + from.reason;
        break;
      case How::Skipped: {
        const Place source = place_in(at.file_number, from.id.value());
        const auto works_in_file =
            from.skip == SkipReason::AlreadyWorks ? old_success(source) : std::nullopt;
        if (from.skip == SkipReason::AlreadyWorks && (!works_in_file || at.options().recompute))
          break;  // by this run: so here too
        if (works_in_file && *works_in_file < at.executor) {
          out.skip_executor = *works_in_file;  // which is copied here as well
          break;
        }
        const auto old = old_status(source);
        if (works_in_file && old) {
          out.how = How::CopiedOld;
          out.judgement.status = *old;
        } else {
          out.skip = SkipReason::DuplicateNotTested;
        }
        break;
      }
    }
    const bool works = (out.how == How::Copied || out.how == How::CopiedOld) &&
                       out.judgement.status == domain::Status::Success;
    if (works && at.options().skip_mode) skip_below(at, at.executor);
    settle(at, std::move(out));
  }

  // ---- a new model ----

  void number_layers(Request& request, std::uint32_t request_number) {
    const PlanRequest& given = request.given;
    request.work.reserve(given.model->layers.size());
    request.signature.reserve(given.model->layers.size());
    for (std::uint32_t i = 0; i < given.model->layers.size(); ++i) {
      const domain::Layer& layer = given.model->layers[i];
      const Digest prepare = domain::prepare_key(layer, given.inputs, given.reference);
      const auto work = work_numbers.number_of(prepare);
      if (work.fresh) prepare_keys.push_back(prepare);
      request.work.push_back(work.value);
      const auto signature = signature_numbers.number_of(layer.signature);
      if (signature.fresh) signature_examples.emplace_back(request_number, i);
      request.signature.push_back(signature.value);
    }
  }

  std::uint16_t run_number(RunId run) {
    const auto [at, fresh] = runs.try_emplace(run, static_cast<std::uint16_t>(runs.size()));
    LAYERFARM_CHECK(!fresh || runs.size() < std::numeric_limits<std::uint16_t>::max());
    return at->second;
  }

  void number_executors(File& file, const std::shared_ptr<const PlanChip>& chip) {
    static const domain::Layer kNoLayer;
    for (std::uint32_t executor = 0; executor < file.executors; ++executor) {
      const domain::ExecutorSpec& spec = chip->spec.executors[executor];
      // What is left of the keys when nothing is said of the layer.
      const Digest compile = domain::compile_key(kNoLayer, chip->spec, spec, chip->tool);
      file.compile_target.push_back(
          compile_targets.try_emplace(compile, static_cast<std::uint32_t>(compile_targets.size()))
              .first->second);
      const Digest execute = domain::execute_key(Digest{}, compile, chip->spec, chip->tool);
      const Digest whole = base::Hasher("layerfarm.plan.group.1")
                               .add(execute)
                               .add(chip->place)
                               .add(chip->needs_prepare)
                               .add(chip->needs_compile)
                               .finish();
      const auto [group, fresh] = groups.try_emplace(whole, static_cast<Group>(groups.size() + 1));
      if (fresh) turn.groups.push_back({group->second, chip, executor});
      file.group.push_back(group->second);
    }
  }

  /// Under --dedup-layers: the first selected layer of each kind is the source of the others.
  void find_sources(File& file, const Request& request) const {
    const PlanOptions& options = request.given.options;
    if (options.dedup == Dedup::Off) return;
    const auto& layers = request.given.model->layers;
    file.source.assign(layers.size(), kNone);
    file.next_copy.assign(layers.size(), kNone);
    const OldReport* old =
        file.chip < request.given.old.size() ? &request.given.old[file.chip] : nullptr;
    const auto edit_of = [&](const domain::Layer& layer) -> ToleranceEdit {
      if (old == nullptr) return {};
      const auto found = old->edits.find(layer.id);
      return found == old->edits.end() ? ToleranceEdit{} : found->second;
    };
    std::unordered_map<Digest, std::uint32_t> loose;
    // Equal in everything is equal work judged alike.
    std::map<std::tuple<std::uint32_t, std::optional<double>, std::optional<double>>, std::uint32_t>
        exact;
    std::vector<std::uint32_t> last(layers.size(), kNone);
    for (std::uint32_t i = 0; i < layers.size(); ++i) {
      if (!request.selected[i] || !layers[i].problem.empty()) continue;
      const ToleranceEdit edit = edit_of(layers[i]);
      const std::uint32_t source =
          options.dedup == Dedup::Loose
              ? loose.try_emplace(layers[i].loose_signature, i).first->second
              : exact.try_emplace({request.work[i], edit.fp_avg_tol, edit.fp_max_tol}, i)
                    .first->second;
      file.source[i] = source;
      if (source != i) file.next_copy[last[source] == kNone ? source : last[source]] = i;
      last[source] = i;
    }
  }

  /// Decides what is decided without any job; the rest is left Idle or WaitingForSource.
  void open_layer(std::uint32_t file_number, std::uint32_t layer) {
    const File& file = files[file_number];
    const Request& request = requests[file.request];
    const PlanOptions& options = request.given.options;
    if (!request.selected[layer]) return;
    const domain::Layer& spec = request.given.model->layers[layer];
    const bool op_skipped =
        std::any_of(options.skip_ops.begin(), options.skip_ops.end(),
                    [&](const std::string& op) { return same_text_any_case(op, spec.op_type); });
    const Place first = place_in(file_number, case_of(file, layer, 0));
    const auto works_in_file =
        options.skip_mode && !options.recompute ? old_success(first) : std::nullopt;
    const bool copies =
        !file.source.empty() && file.source[layer] != kNone && file.source[layer] != layer;
    bool any = false;
    for (std::uint32_t executor = 0; executor < file.executors; ++executor) {
      const Place at = place_in(file_number, case_of(file, layer, executor));
      const std::string& name = at.executor_spec().name;
      if (!options.executors.empty() && !contains(options.executors, name)) continue;
      any = true;
      ++files[file_number].counts.cases;
      if (contains(options.skip_executors, name)) {
        skip(at, SkipReason::ExecutorInSkipList);
      } else if (op_skipped) {
        skip(at, SkipReason::OpInSkipList);
      } else if (works_in_file) {
        skip(at, SkipReason::AlreadyWorks, *works_in_file);
      } else {
        state[at.id] = copies ? CaseState::WaitingForSource : CaseState::Idle;
      }
    }
    if (any) ++files[file_number].counts.layers;
  }

  void start_layer(std::uint32_t file_number, std::uint32_t layer) {
    const File& file = files[file_number];
    const Request& request = requests[file.request];
    const domain::Layer& spec = request.given.model->layers[layer];
    for (std::uint32_t executor = 0; executor < file.executors; ++executor) {
      const Place at = place_in(file_number, case_of(file, layer, executor));
      if (state[at.id] == CaseState::WaitingForSource) {
        // Its source may have been skipped before this one was looked at.
        const std::uint32_t source = case_of(file, file.source[layer], executor);
        if (is_settled(state[source])) copy(at, skipped_source(place_in(file_number, source)));
        continue;
      }
      if (state[at.id] != CaseState::Idle) continue;
      if (!spec.problem.empty()) {
        settle(at, failed(at, {.outcome = made_failure(Stage::Analyze, "import", "refused",
                                                       spec.problem)}));
        continue;
      }
      bool early = false;
      if (request.given.options.skip_mode) {
        for (std::uint32_t higher = 0; higher < executor; ++higher) {
          const CaseState above = state[case_of(file, layer, higher)];
          early = early || above == CaseState::Waiting || above == CaseState::WaitingEarly ||
                  above == CaseState::Held;
        }
      }
      state[at.id] = early ? CaseState::WaitingEarly : CaseState::Waiting;
      step(at);
    }
  }

  /// What open_layer said of a source: skipped, and because it works in the old report (the skip
  /// lists hold for copies too).
  [[nodiscard]] CaseSettled skipped_source(const Place& source) const {
    CaseSettled out = settled(source, How::Skipped);
    out.skip = SkipReason::AlreadyWorks;
    out.skip_executor = old_success(source).value_or(0);
    return out;
  }

  void begin_turn() {
    turn = {};
    first_new_job = jobs.size();
    just_settled = kNone;
    just_outcome = nullptr;
  }

  [[nodiscard]] Turn end_turn() {
    just_settled = kNone;
    just_outcome = nullptr;
    // A job may be dropped in the call that made it wanted.
    std::erase_if(turn.wanted,
                  [this](JobId job) { return jobs[job.value()].state != JobState::Open; });
    return std::exchange(turn, {});
  }
};

CaseBook::CaseBook(Known& known) : impl_(std::make_unique<Impl>(known)) {}
CaseBook::~CaseBook() = default;

PlannedJob CaseBook::add_analyze(const Digest& key, bool known) {
  JobRecord record;
  record.stage = Stage::Analyze;
  record.state = known ? JobState::Done : JobState::Open;
  record.known = known;
  record.uses = 1;  // its caller
  PlannedJob out;
  out.id = JobId(impl_->jobs.add(record));
  out.stage = Stage::Analyze;
  out.known = known;
  out.cost_us = impl_->experience.estimate(Stage::Analyze, 0);
  impl_->analyze_keys[out.id.value()] = key;
  return out;
}

base::Result<Added> CaseBook::add(PlanRequest request) {
  Impl& book = *impl_;
  const std::size_t layers = request.model->layers.size();
  std::size_t cases = book.state.size();
  for (const auto& chip : request.chips) {
    if (chip->spec.executors.empty()) {
      return base::fail(base::ErrorCode::InvalidInput,
                        "the chip " + chip->spec.name + " has no executors");
    }
    cases += layers * chip->spec.executors.size();
  }
  if (cases >= kNone / 4) {
    return base::fail(
        base::ErrorCode::InvalidInput,
        std::to_string(cases) + " cases are more than one coordinator can hold; split the request");
  }
  book.begin_turn();
  const auto request_number = static_cast<std::uint32_t>(book.requests.size());
  book.requests.push_back({.given = std::move(request)});
  Request& added = book.requests.back();
  added.run = book.run_number(added.given.run);
  added.selected = choose_layers(added.given.model->layers, added.given.options.layers);
  book.number_layers(added, request_number);

  const auto first_file = static_cast<std::uint32_t>(book.files.size());
  for (std::uint32_t chip = 0; chip < added.given.chips.size(); ++chip) {
    File file;
    file.request = request_number;
    file.chip = chip;
    file.first_case = static_cast<std::uint32_t>(book.state.size());
    file.executors = static_cast<std::uint32_t>(added.given.chips[chip]->spec.executors.size());
    book.number_executors(file, added.given.chips[chip]);
    book.find_sources(file, added);
    const std::size_t count = book.state.size() + layers * file.executors;
    book.state.resize(count, CaseState::NotSelected);
    book.waits.resize(count, kNone);
    book.link.resize(count, kNone);
    book.files.push_back(std::move(file));
    const auto number = static_cast<std::uint32_t>(book.files.size() - 1);
    for (std::uint32_t layer = 0; layer < layers; ++layer) book.open_layer(number, layer);
    for (std::uint32_t layer = 0; layer < layers; ++layer) book.start_layer(number, layer);
  }
  return Added{FileId(first_file), book.end_turn()};
}

Turn CaseBook::on_settled(JobId id, const JobAnswer& answer) {
  Impl& book = *impl_;
  book.begin_turn();
  const std::uint32_t job = id.value();
  LAYERFARM_CHECK(job < book.jobs.size());
  JobRecord& record = book.jobs[job];
  if (record.state == JobState::Dropped) return book.end_turn();  // too late to matter
  book.failures.erase(job);
  book.stuck_reasons.erase(job);
  book.just_settled = job;
  if (const auto* answered = std::get_if<Answered>(&answer)) {
    book.just_outcome = answered->outcome;
    record.state = answered->outcome->ending == Ending::Done ? JobState::Done : JobState::Failed;
    record.known = false;
    if (!domain::answers_later_runs(answered->outcome->ending))
      book.failures[job] = answered->outcome;
    if (record.stage != Stage::Analyze) {
      book.experience.saw(record.stage, book.group_of(book.place(record.example), record.stage),
                          answered->outcome->took_us);
    }
  } else if (const auto* stuck = std::get_if<NotSettled>(&answer)) {
    record.state = JobState::Stuck;
    book.stuck_reasons[job] = stuck->reason;
  } else if (record.stage == Stage::Prepare || record.stage == Stage::Compile) {
    // Only after a loss: what it is made of could not be made again.
    record.state = JobState::Failed;
    book.failures[job] =
        made_failure(record.stage, "import", "refused", "the model could not be read again");
  } else {
    record.state = JobState::Blocked;
  }
  if (record.stage == Stage::Analyze) return book.end_turn();

  std::vector<std::uint32_t> cases;
  for (std::uint32_t id_of = std::exchange(record.waiting, kNone); id_of != kNone;
       id_of = book.link[id_of]) {
    if (book.waits[id_of] == job) cases.push_back(id_of);
  }
  std::sort(cases.begin(), cases.end());
  cases.erase(std::unique(cases.begin(), cases.end()), cases.end());
  for (const std::uint32_t waiting : cases) {
    // One of the cases before may have made this one unwanted.
    if (book.waits[waiting] != job) continue;
    book.waits[waiting] = kNone;
    --book.jobs[job].uses;
    const Impl::Place at = book.place(waiting);
    if (book.state[waiting] == CaseState::Timing ||
        book.state[waiting] == CaseState::TimingSuccess) {
      CaseSettled out = std::move(book.held.at(waiting));
      book.held.erase(waiting);
      if (record.state == JobState::Done) out.timed = book.just_outcome;
      book.settle(at, std::move(out));
    } else {
      book.step(at);
    }
  }
  book.give_back_needs(job);
  return book.end_turn();
}

std::vector<JobId> CaseBook::producers_of(JobId id, const std::vector<Digest>& lost) {
  Impl& book = *impl_;
  std::set<JobId> out;
  const std::uint32_t job = id.value();
  const JobRecord& record = book.jobs[job];
  if (record.stage == Stage::Analyze) return {};
  const Impl::Place at = book.place(record.example);
  const std::set<Digest> wanted(lost.begin(), lost.end());
  const auto lists = [&](const std::vector<Digest>& blobs) {
    return std::any_of(blobs.begin(), blobs.end(),
                       [&](const Digest& blob) { return wanted.contains(blob); });
  };
  const auto has_files = [&](const std::vector<domain::DataFile>& data) {
    return std::any_of(data.begin(), data.end(),
                       [&](const domain::DataFile& file) { return wanted.contains(file.blob); });
  };
  for (const std::uint32_t need : record.needs) {
    if (need == kNone) continue;
    const OutcomePtr outcome = book.outcome_of(need);
    if (!outcome) {
      out.insert(JobId(need));  // its answer is gone as well
      continue;
    }
    bool made = outcome->prepared &&
                (lists(outcome->prepared->inputs) || lists(outcome->prepared->expected));
    made = made || (outcome->artifact && (wanted.contains(outcome->artifact->blob) ||
                                          has_files(outcome->artifact->data)));
    made = made || (outcome->executed && lists(outcome->executed->actual));
    if (!made) continue;
    out.insert(JobId(need));
    // The counts that are made anew are those that are wanted now.
    if (book.jobs[need].stage == Stage::Execute) book.jobs[need].example = record.example;
  }
  const domain::Layer& layer = at.layer_spec();
  const auto module_lost = [&](const domain::LayerModule& module) {
    return wanted.contains(module.blob) || has_files(module.data);
  };
  if (at.request->given.analyze &&
      (module_lost(layer.module) || (layer.wide_module && module_lost(*layer.wide_module)))) {
    out.insert(*at.request->given.analyze);
  }
  return {out.begin(), out.end()};
}

Turn CaseBook::cancel(FileId file) {
  Impl& book = *impl_;
  book.begin_turn();
  const File& of = book.files[file.value()];
  const auto layers = static_cast<std::uint32_t>(book.requests[of.request].work.size());
  for (std::uint32_t id = of.first_case; id < of.first_case + layers * of.executors; ++id) {
    if (book.state[id] == CaseState::NotSelected || is_settled(book.state[id])) continue;
    book.state[id] = CaseState::NotSelected;
    book.held.erase(id);
    book.stop_waiting(id);
  }
  return book.end_turn();
}

base::Digest CaseBook::key(JobId job) const { return impl_->key(job.value()); }

JobContent CaseBook::content(JobId id) const {
  const Impl& book = *impl_;
  const std::uint32_t job = id.value();
  const JobRecord& record = book.jobs[job];
  JobContent out;
  out.stage = record.stage;
  out.key = book.key(job);
  if (record.stage == Stage::Analyze) return out;
  const Impl::Place at = book.place(record.example);
  out.model = at.request->given.model;
  out.layer = at.layer;
  out.analyze = at.request->given.analyze;
  out.inputs = at.request->given.inputs;
  out.prepare_key = book.key(at, Stage::Prepare);
  if (record.stage == Stage::Prepare) return out;
  out.chip = at.request->given.chips[at.file->chip];
  out.executor = at.executor;
  out.tolerance = book.tolerance(at);
  if (record.stage == Stage::Time) out.runs = std::max(at.options().timing_runs, 1);
  out.compile_key = book.key(at, Stage::Compile);
  if (record.stage == Stage::Compile) return out;
  out.execute_key = book.key(at, Stage::Execute);
  for (const std::uint32_t need : record.needs) {
    if (need == kNone) continue;
    switch (book.jobs[need].stage) {
      case Stage::Prepare:
        out.prepare = JobId(need);
        break;
      case Stage::Compile:
        out.compile = JobId(need);
        break;
      case Stage::Execute:
        out.execute = JobId(need);
        break;
      case Stage::Analyze:
      case Stage::Recompare:
      case Stage::Time:
        break;
    }
  }
  return out;
}

FileCounts CaseBook::counts(FileId file) const { return impl_->files[file.value()].counts; }

std::optional<JobId> CaseBook::waits_for(FileId file, std::uint32_t layer,
                                         std::uint32_t executor) const {
  const std::uint32_t id = impl_->case_of(impl_->files[file.value()], layer, executor);
  const std::uint32_t job = impl_->waits[id];
  return job == kNone ? std::nullopt : std::optional(JobId(job));
}

domain::Tolerance CaseBook::tolerance(FileId file, std::uint32_t layer,
                                      std::uint32_t executor) const {
  const std::uint32_t id = impl_->case_of(impl_->files[file.value()], layer, executor);
  return impl_->tolerance(impl_->place_in(file.value(), id));
}

void CaseBook::set_typical_times(const std::array<std::optional<std::int64_t>, 7>& times) {
  impl_->experience.typical = times;
}

std::size_t CaseBook::memory_bytes() const {
  const Impl& book = *impl_;
  std::size_t out = book.jobs.memory_bytes() + book.work_numbers.memory_bytes() +
                    book.signature_numbers.memory_bytes();
  out += book.prepare_keys.size() * sizeof(Digest) + book.signature_examples.size() * 8;
  out += book.state.capacity() +
         (book.waits.capacity() + book.link.capacity()) * sizeof(std::uint32_t);
  for (const Request& request : book.requests) {
    out += (request.work.capacity() + request.signature.capacity()) * sizeof(std::uint32_t) +
           request.selected.capacity() / 8;
  }
  for (const File& file : book.files) {
    out +=
        sizeof(File) + (file.source.capacity() + file.next_copy.capacity()) * sizeof(std::uint32_t);
  }
  return out;
}

std::string CaseBook::check_invariants() const {
  const Impl& book = *impl_;
  std::vector<std::uint32_t> uses(book.jobs.size(), 0);
  for (std::uint32_t job = 0; job < book.jobs.size(); ++job) {
    const JobRecord& record = book.jobs[job];
    if (record.stage == Stage::Analyze) ++uses[job];
    for (const std::uint32_t need : record.needs) {
      if (need == kNone) continue;
      if (need >= job) return "job " + std::to_string(job) + " needs a later one";
      if (record.holds_needs) ++uses[need];
      if (record.state == JobState::Open && !record.speculative && book.jobs[need].speculative) {
        return "job " + std::to_string(job) + " is wanted, one that it needs is speculative";
      }
    }
    if (record.state == JobState::Open && record.uses == 0)
      return "job " + std::to_string(job) + " is open and nobody wants it";
  }
  std::vector<FileCounts> counts(book.files.size());
  for (std::uint32_t file = 0; file < book.files.size(); ++file) {
    const File& of = book.files[file];
    const auto layers = static_cast<std::uint32_t>(book.requests[of.request].work.size());
    std::uint64_t settled = 0;
    for (std::uint32_t id = of.first_case; id < of.first_case + layers * of.executors; ++id) {
      const CaseState state = book.state[id];
      const std::uint32_t job = book.waits[id];
      const bool must_wait = state == CaseState::Waiting || state == CaseState::WaitingEarly ||
                             state == CaseState::Timing || state == CaseState::TimingSuccess;
      if (must_wait != (job != kNone))
        return "case " + std::to_string(id) + " waits for nothing, or for no reason";
      if (job != kNone) {
        ++uses[job];
        if (book.jobs[job].state != JobState::Open)
          return "case " + std::to_string(id) + " waits for a job that is over";
        if (state != CaseState::WaitingEarly && book.jobs[job].speculative) {
          return "case " + std::to_string(id) + " is wanted, its job is speculative";
        }
      }
      if (state == CaseState::Idle) return "case " + std::to_string(id) + " was never looked at";
      const bool holds = state == CaseState::Held || state == CaseState::Timing ||
                         state == CaseState::TimingSuccess;
      if (holds != book.held.contains(id))
        return "case " + std::to_string(id) + " holds a verdict, or lost it";
      if (is_settled(state)) ++settled;
    }
    if (settled != of.counts.settled)
      return "file " + std::to_string(file) + " counts its settled cases wrongly";
  }
  for (std::uint32_t job = 0; job < book.jobs.size(); ++job) {
    if (uses[job] != book.jobs[job].uses)
      return "job " + std::to_string(job) + " counts its uses wrongly";
  }
  return {};
}

}  // namespace layerfarm::coordinator::plan
