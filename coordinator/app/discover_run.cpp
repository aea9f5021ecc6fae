#include "coordinator/app/discover_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iostream>
#include <limits>
#include <utility>

#include "coordinator/app/asked_names.h"
#include "coordinator/app/result_list.h"
#include "coordinator/app/stored_report.h"
#include "coordinator/report/log_lines.h"
#include "coordinator/report/texts.h"
#include "shared/base/files.h"
#include "shared/domain/keys.h"
#include "shared/protocol/codec.h"

namespace layerfarm::coordinator::app {
using namespace std::chrono_literals;
using base::ErrorCode;
using base::fail;
using base::Result;
using core::JobId;
using plan::CaseSettled;
using plan::How;
namespace json = report::json;

namespace {

constexpr auto kLongestTurn = 500ms;
constexpr auto kLiveEvery = 200ms;
constexpr std::int64_t kAnalyzeCostUs =
    10'000'000;  // models are read first: everything else follows from them

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

}  // namespace

/// A model on its way from file to cases.
struct DiscoverRun::Reading {
  ModelFile file;
  domain::AnalyzeRequest request;
  base::Digest key;
  std::optional<JobId> job;
  std::shared_ptr<const domain::ModelAnalysis> model;
  bool planned = false;
  bool failed = false;
};

DiscoverRun::DiscoverRun(DiscoverRequest request, Console& console, store::Store& store,
                         store::RunId run)
    : request_(std::move(request)),
      console_(console),
      store_(store),
      run_(run),
      known_(store),
      book_(known_),
      started_(clock_.now()),
      reports_(console, known_),
      failed_cases_(request_.options.keep_failed, base::BlobFolder(request_.cache / "blobs")),
      names_open_(!request_.options.dims.empty() || !request_.inputs.names.empty()) {
  book_.set_typical_times(store.typical_times());
  if (auto pins = store::BlobPins::open(request_.cache)) pins_ = std::move(*pins);
}

DiscoverRun::~DiscoverRun() = default;

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
    auto reading = std::make_unique<Reading>();
    reading->file = file;
    reading->request.model_path = std::filesystem::absolute(file.path).lexically_normal().string();
    reading->request.dims = request_.options.dims;
    auto digest = base::digest_of_file(reading->request.model_path);
    readings_.push_back(std::move(reading));
    Reading& added = *readings_.back();
    if (!digest) {
      model_failed(added, digest.error().text());
      continue;
    }
    added.key = domain::analyze_key(*digest, added.request, request_.machine.reader);
    const auto stored = request_.options.recompute ? nullptr : known_.find(added.key);
    if (stored && stored->analysis) {
      if (auto model = known_analysis(added, *stored)) added.model = std::move(*model);
    }
    const auto same = std::find_if(readings_.begin(), readings_.end(), [&](const auto& other) {
      return other.get() != &added && other->job && other->key == added.key;
    });
    if (same != readings_.end()) {
      added.job = (*same)->job;
      analyze_jobs_[*added.job].push_back(&added);
      if (added.model) plan_when_due(added);
      continue;
    }
    const plan::PlannedJob job = book_.add_analyze(added.key, added.model != nullptr);
    added.job = JobId(job.id.value());
    analyze_jobs_[*added.job] = {&added};
    core::JobSpec spec = spec_of(job);
    spec.cost_us = kAnalyzeCostUs;
    spec.priority = 1;
    dispatcher_->tell(core::JobsAdded{{spec}});
    if (added.model) plan_when_due(added);
  }
  check_names_when_due();
}

/// Once every model is known: a name that none of them has ends the run before it tests something
/// else than was meant; else the models are planned, which have waited for this.
void DiscoverRun::check_names_when_due() {
  if (!names_open_ || readings_.size() < request_.models.size()) return;
  std::vector<ReadModel> models;
  for (const auto& reading : readings_) {
    if (!reading->model && !reading->failed) return;
    if (reading->model)
      models.push_back(
          {(reading->file.folder / reading->file.name).string(), reading->model.get()});
  }
  names_open_ = false;
  const AskedNames names = check_asked_names(request_.options, request_.inputs, models);
  for (const std::string& line : names.lines) console_.say(line);
  for (const std::string& error : names.errors) console_.error(error);
  result_.model_failed = result_.model_failed || !names.errors.empty();
  for (const auto& reading : readings_) {
    if (!names.errors.empty()) reading->model = nullptr;
    if (reading->model) plan_when_due(*reading);
  }
}

Result<std::shared_ptr<const domain::ModelAnalysis>> DiscoverRun::known_analysis(
    const Reading& reading, const domain::Outcome& outcome) const {
  const base::BlobFolder blobs(request_.cache / "blobs");
  auto bytes = blobs.get(*outcome.analysis);
  if (!bytes) return fail(bytes.error());
  auto model = protocol::decode_analysis(*bytes);
  if (!model) return fail(model.error());
  // The key holds the model file itself; what lies beside it must be looked at.
  const std::filesystem::path folder =
      std::filesystem::path(reading.request.model_path).parent_path();
  for (std::size_t i = 1; i < model->files.size(); ++i) {
    auto digest = base::digest_of_file((folder / model->files[i].path).string());
    if (!digest) return fail(digest.error());
    if (*digest != model->files[i].digest)
      return fail(ErrorCode::Incompatible, model->files[i].path + " has changed");
  }
  return std::make_shared<const domain::ModelAnalysis>(std::move(*model));
}

void DiscoverRun::model_failed(Reading& reading, const std::string& why) {
  // The reader names the file too.
  const std::string own = reading.file.path.filename().string() + ": ";
  console_.error(reading.file.path.string() + ": " +
                 (why.starts_with(own) ? why.substr(own.size()) : why));
  result_.model_failed = true;
  reading.failed = true;
  check_names_when_due();
}

void DiscoverRun::model_read(Reading& reading, const domain::Outcome& outcome) {
  if (outcome.ending != domain::Ending::Done || !outcome.analysis) {
    std::string why = outcome.diagnostic.text;
    if (outcome.ending != domain::Ending::Refused && !outcome.diagnostic.cause.empty()) {
      why =
          "reading it failed (" + outcome.diagnostic.cause + ")" + (why.empty() ? "" : ": " + why);
    }
    model_failed(reading, why.empty() ? "it cannot be read" : std::string(report::first_line(why)));
    return;
  }
  auto model = known_analysis(reading, outcome);
  if (!model) {
    model_failed(reading, model.error().text());
    return;
  }
  reading.model = std::move(*model);
  if (!reading.planned) plan_when_due(reading);
  check_names_when_due();
}

json::Value DiscoverRun::settings() const {
  json::Object dims;
  for (const auto& [name, value] : request_.options.dims) dims.set(name, value);
  json::Object inputs;
  if (request_.inputs.set.folder.is_zero()) {
    inputs.set("seed", static_cast<std::int64_t>(request_.inputs.set.seed));
  } else {
    inputs.set("folder", request_.inputs.set.folder.hex());
  }
  json::Object out;
  out.set("dims", std::move(dims));
  out.set("inputs", std::move(inputs));
  return out;
}

Result<report::ReportPaths> DiscoverRun::place_report(const Reading& reading,
                                                      const domain::ChipSpec& chip) {
  std::filesystem::path folder = request_.output_folder / reading.file.folder;
  if (request_.chips.size() > 1) folder /= chip.name;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return fail(ErrorCode::Internal,
                "cannot make the folder " + folder.string() + ": " + error.message());
  report::ReportPaths paths = report::report_paths(folder, reading.file.name);
  if (request_.chips.size() > 1) return paths;
  // One chip takes the classic names; another chip's files there move out of the way (design.md,
  // section 8).
  auto old = report::load_config(paths.report);
  if (!old) {
    if (old.error().code == ErrorCode::NotFound) return paths;
    return fail(old.error());
  }
  const std::string there(old->get_text("_chip"));
  if (there.empty() || there == chip.name) return paths;
  auto moved = report::move_aside(paths, there);
  if (!moved) return fail(moved.error());
  for (const auto& path : *moved)
    console_.say("[ExecutorJSON] results of chip " + there + " moved to " + path.string());
  return paths;
}

void DiscoverRun::plan_when_due(Reading& reading) {
  // A dry run's jobs are never handed to the core, so they may not take numbers before the last
  // model is read.
  if (!request_.options.dry_run && !names_open_) plan_model(reading);
}

void DiscoverRun::plan_model(Reading& reading) {
  reading.planned = true;
  for (const std::string& note : reading.model->notes)
    console_.say_verbose("[Model] " + reading.file.name + ": " + note);
  plan::PlanRequest request;
  request.run = run_;
  request.model = reading.model;
  request.analyze = reading.job;
  request.chips = request_.chips;
  request.inputs = request_.inputs.set;
  request.reference = request_.machine.reference;
  const DiscoverOptions& options = request_.options;
  plan::PlanOptions& plan_options = request.options;
  plan_options.skip_mode = options.skip_mode;
  plan_options.recompute = options.recompute;
  plan_options.dedup = options.dedup == Dedup::Off     ? plan::Dedup::Off
                       : options.dedup == Dedup::Exact ? plan::Dedup::Exact
                                                       : plan::Dedup::Loose;
  plan_options.skip_executors = options.skip_executors;
  plan_options.skip_ops = options.skip_ops;
  plan_options.executors = options.executors;
  plan_options.layers = options.layers;
  plan_options.collect_timing = options.collect_timing;
  plan_options.timing_runs = std::max(1, options.timing_runs);
  plan_options.tolerance = {options.tolerance_avg, options.tolerance_max,
                            options.tolerance_abs_frac};

  const std::vector<bool> chosen = plan::choose_layers(reading.model->layers, options.layers);
  if (std::find(chosen.begin(), chosen.end(), true) == chosen.end() && !chosen.empty()) {
    console_.say("[Model] " + reading.file.name + ": no layer matches --layers " +
                 join(options.layers));
  }
  for (const std::string& op : options.skip_ops) {
    const auto is_op = [&op](const domain::Layer& layer) {
      return std::equal(
          op.begin(), op.end(), layer.op_type.begin(), layer.op_type.end(),
          [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
    };
    if (std::none_of(reading.model->layers.begin(), reading.model->layers.end(), is_op)) {
      console_.say_verbose("[SkipOps] " + reading.file.name + " has no layer of type " + op);
    }
  }
  std::vector<OpenReport> opened;
  for (const auto& chip : request_.chips) {
    auto paths = place_report(reading, chip->spec);
    if (!paths) {
      model_failed(reading, paths.error().text());
      return;
    }
    ReportSetup setup;
    setup.model_name = reading.file.name;
    if (request_.models.size() > 1)
      setup.label = (reading.file.folder / reading.file.name).string();
    setup.model = reading.model;
    setup.chip = chip;
    setup.paths = std::move(*paths);
    setup.settings = settings();
    setup.reference = reference_name(request_.machine.reference);
    setup.tools = {{chip->spec.toolchain, chip->tool.version}};
    setup.rule = options.recommend_by_timing ? report::Rule::Timing : report::Rule::Priority;
    setup.options = plan_options;
    setup.inputs = request_.inputs.set;
    setup.reference_tool = request_.machine.reference;
    const std::string start = setup.line_start();
    auto report = open_report(std::move(setup));
    if (!report) {
      model_failed(reading, report.error().text());
      return;
    }
    if (!report->warning.empty())
      console_.say("[ONNXtoMLIR] " + reading.file.name + ": " + report->warning);
    if (!report->takeover.set_aside.empty())
      console_.say("[ExecutorJSON] " + start + report->takeover.set_aside);
    if (!report->takeover.edited.empty()) {
      console_.say("[ExecutorJSON] " + start +
                   "recommendations edited by hand are kept: " + join(report->takeover.edited));
    }
    request.old.push_back(std::move(report->old));
    if (const std::string line = missing_times_line(report->report); !line.empty())
      console_.say(line);
    remember_file(reading, report->report.setup);
    opened.push_back(std::move(report->report));
  }
  auto added = book_.add(std::move(request));
  if (!added) {
    model_failed(reading, added.error().text());
    return;
  }
  if (!options.dry_run) {
    for (OpenReport& report : opened) reports_.add(std::move(report));
  }
  for (std::size_t i = 0; i < request_.chips.size(); ++i) {
    const plan::FileCounts counts =
        book_.counts(plan::FileId(added->first_file.value() + static_cast<std::uint32_t>(i)));
    progress_.add_total(counts.cases);
    if (options.dry_run && i + 1 == request_.chips.size()) {
      plan::FileCounts all = counts;
      all.cases = 0;
      for (std::size_t k = 0; k < request_.chips.size(); ++k) {
        const auto one =
            book_.counts(plan::FileId(added->first_file.value() + static_cast<std::uint32_t>(k)));
        all.cases += one.cases;
        all.settled += k + 1 == request_.chips.size() ? 0 : one.settled;
      }
      forecast_ += plan::forecast(
          added->turn, all, static_cast<std::uint32_t>(std::max<std::size_t>(options.workers, 1)));
    }
  }
  if (options.dry_run) return;  // nothing of the plan is carried out
  carry_out(std::move(added->turn));
}

void DiscoverRun::remember_file(const Reading& reading, const ReportSetup& setup) {
  if (request_.options.dry_run) return;
  const auto outcome = known_.find(reading.key);
  if (!outcome || !outcome->analysis) return;
  store_.append({store::RunFileFact{
      run_, run_file_of(setup, reading.request.model_path, *outcome->analysis)}});
}

// ---- jobs and cases ----

core::JobSpec DiscoverRun::spec_of(const plan::PlannedJob& job) const {
  core::JobSpec spec;
  spec.id = JobId(job.id.value());
  spec.stage = job.stage;
  spec.ability = Dispatcher::kReader;
  if (job.group != 0) spec.ability = Dispatcher::class_of_chip(chip_of_group_.at(job.group));
  spec.group = core::GroupId(job.group);
  for (const auto& need : job.needs) {
    if (need) spec.needs.push_back(JobId(need->value()));
  }
  spec.cost_us = job.cost_us;
  spec.limit_ms = limit_of(job);
  spec.known = job.known ? core::Known::Succeeded : core::Known::No;
  spec.speculative = job.speculative;
  spec.exclusive = job.exclusive;
  return spec;
}

std::uint32_t DiscoverRun::limit_of(const plan::PlannedJob& job) const {
  if (job.group == 0)
    return 0;  // references and models: several engines, each with bounds of its own
  const domain::Limits& chip = request_.chips[chip_of_group_.at(job.group)]->spec.limits;
  const auto first_set = [](std::int64_t a, std::int64_t b, std::int64_t otherwise) {
    return a != 0 ? a : b != 0 ? b : otherwise;
  };
  const std::int64_t compile = first_set(request_.options.compile_timeout_ms,
                                         chip.compile_timeout_ms, domain::kDefaultCompileTimeoutMs);
  const std::int64_t run =
      first_set(request_.options.run_timeout_ms, chip.run_timeout_ms, domain::kDefaultRunTimeoutMs);
  std::int64_t limit = 0;
  switch (job.stage) {
    // A batch that fails is split and compiled again, at worst layer by layer.
    case domain::Stage::Compile:
      limit = 2 * compile * request_.chips[chip_of_group_.at(job.group)]->batch;
      break;
    case domain::Stage::Time:
      limit = run * (request_.options.timing_runs + 2);
      break;
    case domain::Stage::Execute:
    case domain::Stage::Recompare:
      limit = 2 * run;
      break;
    case domain::Stage::Analyze:
    case domain::Stage::Prepare:
      break;
  }
  return static_cast<std::uint32_t>(
      std::min<std::int64_t>(limit, std::numeric_limits<std::uint32_t>::max()));
}

void DiscoverRun::pin(const std::vector<plan::PlannedJob>& jobs) {
  if (!pins_) return;
  std::vector<base::Digest> blobs;
  for (const plan::PlannedJob& job : jobs) {
    if (!job.known) continue;
    const auto outcome = known_.find(book_.content(job.id).key);
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

void DiscoverRun::carry_out(plan::Turn turn) {
  if (!turn.groups.empty()) {
    core::GroupsAdded groups;
    for (const plan::PlannedGroup& group : turn.groups) {
      const auto chip = std::find(request_.chips.begin(), request_.chips.end(), group.chip);
      chip_of_group_[group.group] = static_cast<std::size_t>(chip - request_.chips.begin());
      groups.groups.push_back(
          {core::GroupId(group.group), static_cast<std::uint16_t>(group.chip->batch)});
    }
    dispatcher_->tell(std::move(groups));
  }
  if (!turn.jobs.empty()) {
    core::JobsAdded jobs;
    for (const plan::PlannedJob& job : turn.jobs) jobs.jobs.push_back(spec_of(job));
    dispatcher_->tell(std::move(jobs));
    pin(turn.jobs);
  }
  const auto ids = [](const std::vector<plan::JobId>& from) {
    std::vector<JobId> out;
    for (const plan::JobId id : from) out.push_back(JobId(id.value()));
    return out;
  };
  if (!turn.wanted.empty()) dispatcher_->tell(core::JobsWanted{ids(turn.wanted)});
  if (!turn.dropped.empty()) dispatcher_->tell(core::JobsDropped{ids(turn.dropped)});
  for (const CaseSettled& settled : turn.settled) case_settled(settled);
}

void DiscoverRun::case_settled(const CaseSettled& settled) {
  const OpenReport& report = reports_.all()[settled.file.value()];
  const ReportSetup& setup = report.setup;
  const domain::Layer& layer = setup.model->layers[settled.layer];
  const std::string& executor = setup.chip->spec.executors[settled.executor].name;
  const auto result = reports_.settle(settled);
  if (result) {
    if (settled.stored) {
      progress_.add_known(1);
    } else {
      progress_.settled(result->status);
      ++result_.fresh;
    }
    if (result->status == domain::Status::Error) ++result_.failing_errors;
    if (result->status == domain::Status::Difference) ++result_.failing_differences;
    if (!console_.silent()) say_case(settled, *result);
    if (failed_cases_.wanted() && result->status != domain::Status::Success) {
      if (auto kept = failed_cases_.keep(settled, *result, setup, known_); !kept)
        console_.error(kept.error().text());
    }
    return;
  }
  progress_.settled_without_verdict();
  if (settled.how == How::Unsettled) {
    ++result_.unsettled;
    console_.say(report::unsettled_lines(
        {layer.id, executor, request_.chips.size() > 1 ? setup.chip->spec.name : "", "",
         setup.label},
        settled.reason));
  } else if (console_.verbose()) {
    const auto& executors = setup.chip->spec.executors;
    console_.say_verbose(
        report::case_label(setup.model_name, layer.op_type, layer.orig_index, executor) +
        " skipped (" +
        plan::skip_text(settled, executor, executors[settled.skip_executor].name,
                        setup.model->layers[settled.source_layer].id) +
        ")");
  }
}

void DiscoverRun::say_case(const CaseSettled& settled, const report::CaseResult& result) {
  const ReportSetup& setup = reports_.all()[settled.file.value()].setup;
  const domain::Layer& layer = setup.model->layers[settled.layer];
  const domain::ExecutorSpec& executor = setup.chip->spec.executors[settled.executor];
  report::CaseLine line;
  line.layer_id = layer.id;
  line.executor = executor.name;
  line.model = setup.label;
  if (request_.chips.size() > 1) line.chip = setup.chip->spec.name;
  if (executor.evidence != domain::Evidence::Hardware)
    line.evidence = domain::evidence_name(executor.evidence);
  console_.say_coloured(report::case_lines(line, result, report::Colour::Yes),
                        report::case_lines(line, result, report::Colour::No));
  if (result.status == domain::Status::Difference && !result.reason.empty()) {
    console_.say("  " + result.reason);
  }
  if (result.failure) {
    console_.say_detail(report::details_head(report::case_label(setup.model_name, layer.op_type,
                                                                layer.orig_index, executor.name),
                                             result.failure->in_setup) +
                        "\n" + result.failure->text);
  }
  console_.say(report::progress_line(progress_.done(), progress_.total()));
}

// ---- what the dispatcher asks and tells ----

JobContent DiscoverRun::content(JobId job) const {
  JobContent out;
  if (const auto it = analyze_jobs_.find(job); it != analyze_jobs_.end()) {
    out.job.stage = domain::Stage::Analyze;
    out.job.key = it->second.front()->key;
    out.analyze = &it->second.front()->request;
    return out;
  }
  out.job = book_.content(plan::JobId(job.value()));
  return out;
}

base::Digest DiscoverRun::key(JobId job) const { return book_.key(plan::JobId(job.value())); }

std::vector<JobId> DiscoverRun::producers_of(JobId job, const std::vector<base::Digest>& lost) {
  std::vector<JobId> out;
  for (const plan::JobId producer : book_.producers_of(plan::JobId(job.value()), lost))
    out.push_back(JobId(producer.value()));
  return out;
}

void DiscoverRun::on_settled(const core::JobSettled& settled,
                             const std::shared_ptr<const domain::Outcome>& outcome) {
  plan::JobAnswer answer;
  if (outcome) {
    answer = plan::Answered{outcome};
  } else if (std::holds_alternative<core::DependencyFailed>(settled.how)) {
    answer = plan::DependencyFailed{};
  } else if (const auto* kills = std::get_if<core::KillsWorker>(&settled.how)) {
    auto death = std::make_shared<domain::Outcome>();
    death->stage = content(settled.job).job.stage;
    death->ending = domain::Ending::Crashed;
    death->diagnostic.where = "run";
    death->diagnostic.cause = "kills its worker";
    death->diagnostic.text =
        fmt::format("the worker process died under it {} times", kills->deaths);
    answer = plan::Answered{std::move(death)};
  } else if (const auto* unsettled = std::get_if<core::Unsettled>(&settled.how)) {
    std::string reason;
    switch (unsettled->reason) {
      case core::UnsettledReason::Infrastructure: {
        reason = fmt::format("failed {} times at {} places for reasons that are not its own",
                             unsettled->faults, unsettled->places);
        const std::string trouble = dispatcher_->trouble_of(unsettled->cause);
        if (!trouble.empty()) reason += ": " + std::string(report::first_line(trouble));
        break;
      }
      case core::UnsettledReason::NoWorker:
        reason = "no worker that can run it is connected";
        break;
      case core::UnsettledReason::LostBlobs:
        reason = "what it needs was lost again and again";
        break;
    }
    answer = plan::NotSettled{std::move(reason)};
  } else {
    answer = plan::NotSettled{"its outcome was lost"};
  }
  if (const auto it = analyze_jobs_.find(settled.job); it != analyze_jobs_.end()) {
    if (settled.again) {
      carry_out(book_.on_settled(plan::JobId(settled.job.value()), answer));
      return;
    }
    for (Reading* reading : it->second) {
      if (const auto* answered = std::get_if<plan::Answered>(&answer)) {
        model_read(*reading, *answered->outcome);
      } else {
        const auto* not_settled = std::get_if<plan::NotSettled>(&answer);
        model_failed(*reading, not_settled != nullptr ? not_settled->reason : "it cannot be read");
        ++result_.unsettled;
      }
    }
    return;
  }
  carry_out(book_.on_settled(plan::JobId(settled.job.value()), answer));
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
    for (const auto& reading : readings_) {
      if (reading->model) plan_model(*reading);
    }
    say_forecast();
    return;
  }
  if (result_.interrupted) {
    result_.unsettled += progress_.total() - std::min(progress_.total(), progress_.done());
  }
  result_.files_failed =
      !reports_.finish(result_.interrupted ? report::Phase::Running : report::Phase::Finished);
  if (request_.options.json) std::cout << result_list(reports_.all()) << "\n";
  say_end_reports();
}

void DiscoverRun::say_end_reports() {
  std::uint64_t cases = 0;
  for (OpenReport& open : reports_.all()) {
    console_.say("\n" + report::saved_line(open.setup.paths.report.string()));
    const report::Overview overview = open.state->overview();
    const report::EndReport end{open.setup.model_name, open.setup.paths.report.string(), &overview,
                                std::nullopt};
    console_.say_coloured(report::end_report(end, report::Colour::Yes),
                          report::end_report(end, report::Colour::No));
    report::PlacementFacts facts;
    facts.chip = open.setup.chip->spec.name;
    for (const domain::ExecutorSpec& executor : open.setup.chip->spec.executors) {
      facts.evidence.emplace_back(executor.name, domain::evidence_name(executor.evidence));
      if (executor.same_engine) facts.same_engine.push_back(executor.name);
    }
    facts.reference = open.setup.reference;
    facts.tools = open.setup.tools;
    facts.fresh = open.fresh;
    facts.stored = open.stored;
    facts.unsettled = open.state->unsettled();
    for (const domain::Layer& layer : open.setup.model->layers)
      facts.macs.emplace_back(layer.id, layer.mac_count);
    console_.say(report::placement_summary(open.state->ops(), overview.executors, facts));
    cases += open.fresh + open.stored;
  }
  const std::uint64_t failing = result_.failing_errors + result_.failing_differences;
  if (reports_.all().size() > 1) {
    console_.say(fmt::format(
        "Total: {} reports, {} cases, {} success, {} difference, {} error, {} unsettled",
        reports_.all().size(), cases, cases - failing, result_.failing_differences,
        result_.failing_errors, result_.unsettled));
  }
  if (const std::string line = report::failing_line(failing); !line.empty())
    console_.say("\n" + line);
  if (result_.unsettled > 0) {
    console_.say(
        fmt::format("{} case(s) or model(s) without a verdict; run the same command again to go on",
                    result_.unsettled));
  }
}

void DiscoverRun::say_forecast() {
  const plan::Forecast& f = forecast_;
  if (request_.options.json) {
    json::Object jobs;
    for (std::size_t stage = 1; stage < f.jobs.size(); ++stage) {
      jobs.set(domain::stage_name(static_cast<domain::Stage>(stage)),
               static_cast<std::int64_t>(f.jobs[stage]));
    }
    json::Object out;
    out.set("cases", static_cast<std::int64_t>(f.cases));
    out.set("known", static_cast<std::int64_t>(f.known));
    out.set("skipped", static_cast<std::int64_t>(f.skipped));
    out.set("copied", static_cast<std::int64_t>(f.copied));
    out.set("untestable", static_cast<std::int64_t>(f.untestable));
    out.set("open", static_cast<std::int64_t>(f.open));
    out.set("jobs", std::move(jobs));
    out.set("expected_s", static_cast<double>(f.expected_us) / 1e6);
    std::cout << json::text_of(std::move(out)) << "\n";
    return;
  }
  std::cout << fmt::format("Cases: {} ({} known, {} skipped, {} copied, {} untestable, {} open)\n",
                           f.cases, f.known, f.skipped, f.copied, f.untestable, f.open);
  for (std::size_t stage = 1; stage < f.jobs.size(); ++stage) {
    if (f.jobs[stage] == 0) continue;
    std::cout << fmt::format(
        "  {}: {} to run{}\n", domain::stage_name(static_cast<domain::Stage>(stage)), f.jobs[stage],
        f.speculative[stage] > 0
            ? fmt::format(", {} of them only if a higher executor fails", f.speculative[stage])
            : "");
  }
  std::uint64_t to_run = 0;
  for (const std::uint64_t jobs : f.jobs) to_run += jobs;
  if (f.without_estimate > 0) {
    std::cout << fmt::format("  {} jobs of a kind that was never timed here\n", f.without_estimate);
  }
  if (to_run > 0 && f.without_estimate >= to_run) {
    std::cout << "Expected time: unknown\n";
    return;
  }
  std::cout << fmt::format("Expected time: {:.1f} s with {} workers ({:.1f} s of work)\n",
                           static_cast<double>(f.expected_us) / 1e6,
                           std::max<std::size_t>(request_.options.workers, 1),
                           static_cast<double>(f.work_us) / 1e6);
}

}  // namespace layerfarm::coordinator::app
