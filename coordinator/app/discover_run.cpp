#include "coordinator/app/discover_run.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "coordinator/app/asked_names.h"
#include "coordinator/app/end_texts.h"
#include "coordinator/app/model_changes.h"
#include "coordinator/app/quantize_options.h"
#include "coordinator/app/result_list.h"
#include "coordinator/app/stored_report.h"
#include "coordinator/report/log_lines.h"
#include "shared/base/text.h"

namespace layerfarm::coordinator::app {
using namespace std::chrono_literals;
using core::JobId;
using plan::CaseSettled;

namespace {

constexpr auto kLongestTurn = 500ms;
constexpr auto kLiveEvery = 200ms;
constexpr std::int64_t kAnalyzeCostUs =
    10'000'000;  // models are read first: everything else follows from them

}  // namespace

DiscoverRun::DiscoverRun(DiscoverRequest request, Console& console, store::Store& store,
                         store::RunId run)
    : request_(std::move(request)),
      console_(console),
      store_(store),
      run_(run),
      known_(store),
      book_(known_),
      started_(clock_.now()),
      models_(request_, known_, book_),
      model_reports_(request_, console),
      specs_(request_),
      names_open_(asks_names(request_.options, request_.inputs)),
      reports_(console, known_),
      log_(console, progress_, request_.chips.size() > 1),
      failed_cases_(request_.options.keep_failed, base::BlobFolder(request_.cache / "blobs")),
      ir_dumps_({.folder = request_.options.tool.dump_folder,
                 .several_models = request_.models.size() > 1,
                 .several_chips = request_.chips.size() > 1},
                base::BlobFolder(request_.cache / "blobs")) {
  book_.set_typical_times(store.typical_times());
  if (auto pins = store::BlobPins::open(request_.cache)) pins_ = std::move(*pins);
}

RunResult DiscoverRun::go(Dispatcher& dispatcher) {
  dispatcher_ = &dispatcher;
  for (const auto& chip : request_.chips)
    console_.say(report::chip_line(chip->spec.name, chip->spec.target));
  begin_reading();
  loop();
  finish();
  return result_;
}

// ---- models ----

void DiscoverRun::begin_reading() {
  for (const ModelFile& file : request_.models) {
    const ModelReading::Begun begun = models_.begin(file);
    if (!begun.problem.empty()) model_failed(*begun.reading, begun.problem);
    if (begun.job) add_reading_job(*begun.job);
    if (begun.reading->model) plan_when_due(*begun.reading);
  }
  check_names_when_due();
}

void DiscoverRun::add_reading_job(const plan::PlannedJob& job) {
  core::JobSpec spec = specs_.spec(job);
  spec.cost_us = kAnalyzeCostUs;
  spec.priority = 1;
  dispatcher_->tell(core::JobsAdded{{spec}});
}

/// Once every model is known: a name that none of them has ends the run before it tests something
/// else than was meant; else the models are planned, which have waited for this.
void DiscoverRun::check_names_when_due() {
  if (!names_open_ || !models_.complete()) return;
  names_open_ = false;
  std::vector<ReadModel> models;
  for (const auto& reading : models_.all()) {
    if (reading->model) models.push_back({reading->label(), reading->model.get()});
  }
  AskedNames names = check_asked_names(request_.options, request_.inputs, models);
  request_.options.layers = std::move(names.layers);
  for (const std::string& line : names.lines) console_.say(line);
  for (const std::string& error : names.errors) console_.error(error);
  result_.model_failed = result_.model_failed || !names.errors.empty();
  for (const auto& reading : models_.all()) {
    if (!names.errors.empty()) reading->model = nullptr;
    if (reading->model) plan_when_due(*reading);
  }
}

void DiscoverRun::model_failed(Reading& reading, const std::string& why) {
  // The reader names the file too.
  const std::string own = reading.file.path.filename().string() + ": ";
  const std::string reason = why.starts_with(own) ? why.substr(own.size()) : why;
  // A name on the command line is the user's matter, not the file's, where only one can be meant.
  const bool about_flag = reason.starts_with("Could not resolve --") && request_.models.size() == 1;
  console_.error((about_flag ? "" : reading.file.path.string() + ": ") + reason);
  result_.model_failed = true;
  reading.failed = true;
  check_names_when_due();
}

void DiscoverRun::model_settled(Reading& reading, const plan::JobAnswer& answer) {
  if (const auto* answered = std::get_if<plan::Answered>(&answer)) {
    const auto read = models_.read(reading, *answered->outcome);
    if (!read) return model_failed(reading, read.error().text());
    if (*read) add_reading_job(**read);
    if (!reading.model) return;  // it waits for a job of its own now
    if (!reading.planned) plan_when_due(reading);
    check_names_when_due();
    return;
  }
  const auto* not_settled = std::get_if<plan::NotSettled>(&answer);
  model_failed(reading, not_settled != nullptr ? not_settled->reason : "it cannot be read");
  ++result_.unsettled;
}

void DiscoverRun::plan_when_due(Reading& reading) {
  // A dry run's jobs are never handed to the core, so they may not take numbers before the last
  // model is read.
  if (!request_.options.dry_run && !names_open_) plan_model(reading);
}

void DiscoverRun::plan_model(Reading& reading) {
  reading.planned = true;
  say_notes(*reading.model, reading.file.name,
            request_.models.size() > 1 ? reading.label() : std::string(), console_);
  if (const std::string line = quantization_line(*reading.model); !line.empty())
    console_.say("[Quantize] " + reading.file.name + ": " + line);
  if (!reading.model->skipped.empty()) {
    console_.say("Case generation skipped: " + reading.model->skipped);
    return;
  }
  say_unmatched(reading);
  auto opened = model_reports_.open(reading);
  if (!opened) return model_failed(reading, opened.error().text());
  plan::PlanRequest request;
  request.run = run_;
  request.model = reading.model;
  request.analyze = reading.job;
  request.chips = request_.chips;
  request.inputs = request_.inputs.set;
  request.reference = request_.machine.reference;
  request.options = plan_options_of(request_.options);
  for (OpenedReport& report : *opened) request.old.push_back(std::move(report.old));
  const auto repeats = static_cast<std::uint32_t>(request_.options.repeats);
  const bool dry_run = request_.options.dry_run;
  // What one set of inputs gave is no report of several: after a crash the run itself goes on.
  if (!dry_run && repeats == 1) {
    for (const OpenedReport& report : *opened) remember_file(reading, report.report.setup);
  }
  std::vector<plan::Turn> turns;
  for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
    plan::PlanRequest one = request;
    one.inputs.seed += repeat;
    one.options.collect_timing = request.options.collect_timing && repeat == 0;
    auto added = book_.add(std::move(one));
    if (!added) return model_failed(reading, added.error().text());
    if (dry_run) forecast_ += plan::forecast(*added, request_.options.workers);
    if (repeat == 0) progress_.add_total(added->counts.cases);
    turns.push_back(std::move(added->turn));
  }
  if (dry_run) return;  // nothing of the plan is carried out
  std::vector<OpenReport> reports;
  for (OpenedReport& report : *opened) reports.push_back(std::move(report.report));
  reports_.add(std::move(reports));
  for (plan::Turn& turn : turns) carry_out(std::move(turn));
}

/// What the user asked for by name that this model does not have.
void DiscoverRun::say_unmatched(const Reading& reading) {
  const DiscoverOptions& options = request_.options;
  const auto& layers = reading.model->layers;
  const std::vector<bool> chosen = plan::choose_layers(layers, options.layers);
  if (std::find(chosen.begin(), chosen.end(), true) == chosen.end() && !chosen.empty()) {
    console_.say("[Model] " + reading.file.name + ": no layer matches --layers " +
                 base::join(options.layers));
  }
  if (request_.models.size() < 2) return;  // what no model has was said before
  for (const std::string& op : options.skip_ops) {
    const auto is_op = [&op](const domain::Layer& layer) {
      return base::equal_any_case(op, layer.op_type);
    };
    if (std::none_of(layers.begin(), layers.end(), is_op))
      console_.say_verbose("[SkipOps] " + reading.file.name + " has no layer of type " + op);
  }
}

void DiscoverRun::remember_file(const Reading& reading, const ReportSetup& setup) {
  const auto outcome = known_.find(reading.key);
  if (!outcome || !outcome->analysis) return;
  store_.append({store::RunFileFact{
      run_, run_file_of(setup, reading.request.model_path, *outcome->analysis)}});
}

// ---- jobs and cases ----

void DiscoverRun::carry_out(plan::Turn turn) {
  if (!turn.groups.empty()) dispatcher_->tell(specs_.groups(turn.groups));
  if (!turn.jobs.empty()) {
    core::JobsAdded jobs;
    for (const plan::PlannedJob& job : turn.jobs) jobs.jobs.push_back(specs_.spec(job));
    dispatcher_->tell(std::move(jobs));
    pin(turn.jobs);
  }
  if (!turn.wanted.empty()) dispatcher_->tell(core::JobsWanted{std::move(turn.wanted)});
  if (!turn.dropped.empty()) dispatcher_->tell(core::JobsDropped{std::move(turn.dropped)});
  for (const CaseSettled& settled : turn.settled) case_settled(settled);
}

void DiscoverRun::pin(const std::vector<plan::PlannedJob>& jobs) {
  if (!pins_) return;
  std::vector<base::Digest> blobs;
  for (const plan::PlannedJob& job : jobs) {
    if (!job.known) continue;
    const auto outcome = known_.find(book_.key(job.id));
    if (!outcome) continue;
    if (outcome->prepared) {
      blobs.insert(blobs.end(), outcome->prepared->inputs.begin(), outcome->prepared->inputs.end());
      blobs.insert(blobs.end(), outcome->prepared->expected.begin(),
                   outcome->prepared->expected.end());
    }
    if (outcome->artifact) {
      blobs.push_back(outcome->artifact->blob);
      for (const domain::DataFile& file : outcome->artifact->data) blobs.push_back(file.blob);
    }
  }
  // A pin that cannot be written costs at worst the making of a blob again.
  if (!blobs.empty()) [[maybe_unused]]
    const auto added = pins_->add(blobs);
}

void DiscoverRun::case_settled(const CaseSettled& one) {
  const auto shown = reports_.settle(one);
  if (!shown) return;
  const CaseSettled& settled = shown->settled;
  const ReportSetup& setup = shown->report->setup;
  const auto& result = shown->result;
  if (!result) {
    progress_.settled_without_verdict();
    if (settled.how == plan::How::Unsettled) ++result_.unsettled;
    log_.say_without_result(settled, setup);
    return;
  }
  if (settled.stored) {
    progress_.add_known(1);
  } else {
    progress_.settled(result->status);
    ++result_.fresh;
  }
  if (result->status == domain::Status::Error) {
    ++result_.failing_errors;
    if (settled.stored) ++result_.stored_errors;
  }
  if (result->status == domain::Status::Difference) ++result_.failing_differences;
  log_.say(settled, *result, setup);
  if (ir_dumps_.wanted()) {
    if (auto written = ir_dumps_.write(settled, setup, known_); !written)
      console_.error(written.error().text());
  }
  if (failed_cases_.wanted() && result->status != domain::Status::Success) {
    if (auto kept = failed_cases_.keep(settled, *result, setup, known_); !kept)
      console_.error(kept.error().text());
  }
}

// ---- what the dispatcher asks and tells ----

JobContent DiscoverRun::content(JobId job) const {
  JobContent out;
  if (const auto* readings = models_.of_job(job)) {
    out.job.stage = domain::Stage::Analyze;
    out.analyze = &readings->front()->request;
    return out;
  }
  out.job = book_.content(job);
  return out;
}

base::Digest DiscoverRun::key(JobId job) const { return book_.key(job); }

std::vector<JobId> DiscoverRun::producers_of(JobId job, const std::vector<base::Digest>& lost) {
  return book_.producers_of(job, lost);
}

plan::JobAnswer DiscoverRun::answer_of(
    const core::JobSettled& settled, const std::shared_ptr<const domain::Outcome>& outcome) const {
  if (outcome) return plan::Answered{outcome};
  if (std::holds_alternative<core::DependencyFailed>(settled.how)) return plan::DependencyFailed{};
  if (const auto* kills = std::get_if<core::KillsWorker>(&settled.how))
    return plan::Answered{death_of(*kills, content(settled.job).job.stage)};
  if (const auto* unsettled = std::get_if<core::Unsettled>(&settled.how))
    return plan::NotSettled{reason_of(*unsettled, dispatcher_->trouble_of(unsettled->cause))};
  return plan::NotSettled{"its outcome was lost"};
}

void DiscoverRun::on_settled(const core::JobSettled& settled,
                             const std::shared_ptr<const domain::Outcome>& outcome) {
  const plan::JobAnswer answer = answer_of(settled, outcome);
  const auto* readings = models_.of_job(settled.job);
  if (readings != nullptr && !settled.again) {
    const std::vector<Reading*> waiting = *readings;  // some may go on to another job
    for (Reading* reading : waiting) model_settled(*reading, answer);
    return;
  }
  carry_out(book_.on_settled(settled.job, answer));
}

void DiscoverRun::on_note(const std::string& text, bool verbose) {
  verbose ? console_.say_verbose("[Farm] " + text) : console_.say("[Farm] " + text);
}

void DiscoverRun::on_activity(const std::string& worker, const std::string& what) {
  progress_.activity(worker, what);
}

void DiscoverRun::on_interrupt() {
  ++interrupts_;
  if (interrupts_ == 1) stop_now("interrupted");
}

void DiscoverRun::stop_now(const std::string& why) {
  console_.say("[Farm] " + why + ": ending what runs");
  result_.interrupted = true;
}

// ---- the loop ----

void DiscoverRun::loop() {
  base::Time next_live{0};
  while (!dispatcher_->idle() && !result_.interrupted) {
    dispatcher_->start_workers();
    if (!dispatcher_->fatal().empty()) {
      console_.error(dispatcher_->fatal());
      result_.interrupted = true;
      break;
    }
    auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(kLongestTurn);
    if (console_.terminal())
      wait = std::min(wait, std::chrono::duration_cast<std::chrono::milliseconds>(kLiveEvery));
    if (const auto due = reports_.next_due()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(*due - clock_.now()) + 1ms;
      wait = std::clamp<std::chrono::milliseconds>(left, 0ms, wait);
    }
    dispatcher_->turn(wait);
    const base::Time now = clock_.now();
    reports_.write_due(now);
    if (now >= next_live) {
      console_.live(progress_.line(now - started_));
      next_live = now + kLiveEvery;
    }
  }
}

void DiscoverRun::finish() {
  console_.clear_live();
  dispatcher_->shut_down();
  if (request_.options.dry_run) {
    for (const auto& reading : models_.all()) {
      if (reading->model) plan_model(*reading);
    }
    print_forecast(forecast_, request_.options);
    return;
  }
  if (result_.interrupted) {
    result_.unsettled += progress_.total() - std::min(progress_.total(), progress_.done());
  }
  result_.files_failed =
      !reports_.finish(result_.interrupted ? report::Phase::Running : report::Phase::Finished);
  if (request_.options.json) std::cout << result_list(reports_.all()) << "\n";
  say_end_reports(console_, reports_.all(), result_);
  if (const std::string line = ir_dumps_.summary(); !line.empty()) console_.say(line);
}

}  // namespace layerfarm::coordinator::app
