#include "coordinator/plan/book_tables.h"

#include <algorithm>
#include <limits>
#include <string>

#include "shared/base/check.h"
#include "shared/domain/keys.h"

namespace layerfarm::coordinator::plan {
namespace {

using base::Digest;
using domain::Stage;

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

const ToleranceEdit* edit_of(const OldReport* old, const domain::Layer& layer) {
  if (old == nullptr || old->edits.empty()) return nullptr;
  const auto found = old->edits.find(layer.id);
  return found == old->edits.end() ? nullptr : &found->second;
}

/// Under --dedup-layers: the first selected layer of each kind is the source of the others.
void find_sources(BookFile& file, const BookRequest& request) {
  const PlanOptions& options = request.given.options;
  if (options.dedup == Dedup::Off) return;
  const auto& layers = request.given.model->layers;
  file.source.assign(layers.size(), kNone);
  file.next_copy.assign(layers.size(), kNone);
  const OldReport* old =
      file.chip < request.given.old.size() ? &request.given.old[file.chip] : nullptr;
  // A copy is judged as its source is: by one tolerance. Equal in everything is equal work.
  std::map<std::pair<Digest, ToleranceEdit>, std::uint32_t> loose;
  std::map<std::pair<std::uint32_t, ToleranceEdit>, std::uint32_t> exact;
  std::vector<std::uint32_t> last(layers.size(), kNone);
  for (std::uint32_t i = 0; i < layers.size(); ++i) {
    if (!request.selected[i] || !layers[i].problem.empty()) continue;
    const ToleranceEdit* found = edit_of(old, layers[i]);
    const ToleranceEdit edit = found == nullptr ? ToleranceEdit{} : *found;
    const std::uint32_t source =
        options.dedup == Dedup::Loose
            ? loose.try_emplace({layers[i].loose_signature, edit}, i).first->second
            : exact.try_emplace({request.work[i], edit}, i).first->second;
    file.source[i] = source;
    if (source != i) file.next_copy[last[source] == kNone ? source : last[source]] = i;
    last[source] = i;
  }
}

}  // namespace

bool Place::in_skip_list() const {
  return contains(options().skip_executors, executor_spec().name);
}

bool Place::chosen() const {
  return options().executors.empty() || contains(options().executors, executor_spec().name);
}

domain::Tolerance Place::tolerance() const {
  return tolerance_in_force(executor_spec(), options().tolerance, edit_of(old(), layer_spec()));
}

std::optional<domain::Status> Place::old_status() const {
  const OldReport* report = old();
  if (report == nullptr) return std::nullopt;
  const auto found = report->statuses.find(layer_spec().id);
  if (found == report->statuses.end()) return std::nullopt;
  const auto status = found->second.find(executor_spec().name);
  return status == found->second.end() ? std::nullopt : std::optional(status->second);
}

BookTables::BookTables()
    : jobs_([this](std::uint32_t job) {
        return work_key(place(jobs_[job].example), jobs_[job].stage);
      }),
      work_numbers_(
          [this](std::uint32_t number) -> const Digest& { return prepare_keys_[number]; }),
      signature_numbers_([this](std::uint32_t number) -> const Digest& {
        const auto& [request, layer] = signature_examples_[number];
        return requests_[request].given.model->layers[layer].signature;
      }) {}

// ---- a new model ----

std::uint32_t BookTables::add_request(PlanRequest given) {
  const auto number = static_cast<std::uint32_t>(requests_.size());
  requests_.push_back({.given = std::move(given)});
  BookRequest& added = requests_.back();
  added.run = run_number(added.given.run);
  added.selected = choose_layers(added.given.model->layers, added.given.options.layers);
  number_layers(added, number);
  return number;
}

std::uint32_t BookTables::add_file(std::uint32_t request_number, std::uint32_t chip,
                                   std::vector<PlannedGroup>& fresh) {
  const BookRequest& of = requests_[request_number];
  BookFile file;
  file.request = request_number;
  file.chip = chip;
  file.first_case = static_cast<std::uint32_t>(cases_);
  file.layers = static_cast<std::uint32_t>(of.work.size());
  file.executors = static_cast<std::uint32_t>(of.given.chips[chip]->spec.executors.size());
  number_executors(file, of.given.chips[chip], fresh);
  find_sources(file, of);
  cases_ = file.end_case();
  files_.push_back(std::move(file));
  return files() - 1;
}

void BookTables::number_layers(BookRequest& request, std::uint32_t request_number) {
  const PlanRequest& given = request.given;
  request.work.reserve(given.model->layers.size());
  request.signature.reserve(given.model->layers.size());
  for (std::uint32_t i = 0; i < given.model->layers.size(); ++i) {
    const domain::Layer& layer = given.model->layers[i];
    const Digest prepare = domain::prepare_key(layer, given.inputs, given.reference);
    const auto work = work_numbers_.number_of(prepare);
    if (work.fresh) prepare_keys_.push_back(prepare);
    request.work.push_back(work.value);
    const auto signature = signature_numbers_.number_of(layer.signature);
    if (signature.fresh) signature_examples_.emplace_back(request_number, i);
    request.signature.push_back(signature.value);
  }
}

std::uint16_t BookTables::run_number(RunId run) {
  const auto [at, fresh] = runs_.try_emplace(run, static_cast<std::uint16_t>(runs_.size()));
  LAYERFARM_CHECK(!fresh || runs_.size() < std::numeric_limits<std::uint16_t>::max());
  return at->second;
}

void BookTables::number_executors(BookFile& file, const std::shared_ptr<const PlanChip>& chip,
                                  std::vector<PlannedGroup>& fresh_groups) {
  static const domain::Layer kNoLayer;
  for (std::uint32_t executor = 0; executor < file.executors; ++executor) {
    const domain::ExecutorSpec& spec = chip->spec.executors[executor];
    // What is left of the keys when nothing is said of the layer.
    const Digest compile = domain::compile_key(kNoLayer, chip->spec, spec, chip->tool);
    file.compile_target.push_back(
        compile_targets_.try_emplace(compile, static_cast<std::uint32_t>(compile_targets_.size()))
            .first->second);
    const Digest execute = domain::execute_key(Digest{}, compile, chip->spec, chip->tool);
    const Digest whole = base::Hasher("layerfarm.plan.group.1")
                             .add(execute)
                             .add(chip->place)
                             .add(chip->needs_prepare)
                             .add(chip->needs_compile)
                             .finish();
    const auto [group, fresh] = groups_.try_emplace(whole, static_cast<Group>(groups_.size() + 1));
    if (fresh) fresh_groups.push_back({group->second, chip, executor});
    file.group.push_back(group->second);
  }
}

// ---- finding things ----

Place BookTables::place(std::uint32_t id) const {
  const auto after = std::upper_bound(
      files_.begin(), files_.end(), id,
      [](std::uint32_t wanted, const BookFile& file) { return wanted < file.first_case; });
  // Files of a model without layers share their first case with the next one; the last of them has
  // it.
  return place_in(static_cast<std::uint32_t>(after - files_.begin() - 1), id);
}

WorkKey BookTables::work_key(const Place& at, Stage stage) const {
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
    case Stage::Whole:
      break;
  }
  return {stage, kNone, 0, 0};  // these are not found by their work
}

Digest BookTables::key(const Place& at, Stage stage) const {
  const Digest& prepare = prepare_keys_[at.request->work[at.layer]];
  if (stage == Stage::Prepare) return prepare;
  const PlanChip& chip = at.chip();
  const Digest compile =
      domain::compile_key(at.layer_spec(), chip.spec, at.executor_spec(), chip.tool);
  if (stage == Stage::Compile) return compile;
  const Digest execute = domain::execute_key(prepare, compile, chip.spec, chip.tool);
  if (stage == Stage::Recompare) return domain::recompare_key(execute, at.tolerance());
  if (stage == Stage::Time) return domain::time_key(execute, chip.place, at.options().timing_runs);
  return execute;
}

Digest BookTables::key(std::uint32_t job) const {
  if (jobs_[job].stage == Stage::Analyze) return analyze_keys_.at(job);
  return key(place(jobs_[job].example), jobs_[job].stage);
}

std::uint32_t BookTables::recompare(std::uint32_t execute_job,
                                    const domain::Tolerance& wanted) const {
  const auto found = recompares_.find({execute_job, wanted.fp_avg_tol, wanted.fp_max_tol,
                                       wanted.fp_abs_tol_frac, wanted.integer_bound()});
  return found == recompares_.end() ? kNone : found->second;
}

void BookTables::set_recompare(std::uint32_t execute_job, const domain::Tolerance& wanted,
                               std::uint32_t job) {
  recompares_[{execute_job, wanted.fp_avg_tol, wanted.fp_max_tol, wanted.fp_abs_tol_frac,
               wanted.integer_bound()}] = job;
}

std::optional<std::uint32_t> BookTables::old_success(const Place& any) const {
  for (std::uint32_t executor = 0; executor < any.file->executors; ++executor) {
    const Place at = beside(any, executor);
    if (!at.in_skip_list() && at.old_status() == domain::Status::Success) return executor;
  }
  return std::nullopt;
}

std::size_t BookTables::memory_bytes() const {
  std::size_t out =
      jobs_.memory_bytes() + work_numbers_.memory_bytes() + signature_numbers_.memory_bytes();
  out += prepare_keys_.size() * sizeof(Digest) + signature_examples_.size() * 8;
  for (const BookRequest& request : requests_) {
    out += (request.work.capacity() + request.signature.capacity()) * sizeof(std::uint32_t) +
           request.selected.capacity() / 8;
  }
  for (const BookFile& file : files_) {
    out += sizeof(BookFile) +
           (file.source.capacity() + file.next_copy.capacity()) * sizeof(std::uint32_t);
  }
  return out;
}

}  // namespace layerfarm::coordinator::plan
