#include "coordinator/plan/job_content.h"

#include <algorithm>
#include <set>

namespace layerfarm::coordinator::plan {

using base::Digest;
using domain::Stage;

namespace {

/// Blobs that are gone.
class Lost {
 public:
  explicit Lost(const std::vector<Digest>& lost) : lost_(lost.begin(), lost.end()) {}

  [[nodiscard]] bool has(const Digest& blob) const { return lost_.contains(blob); }
  [[nodiscard]] bool any_of(const std::vector<Digest>& blobs) const {
    return std::any_of(blobs.begin(), blobs.end(),
                       [this](const Digest& blob) { return has(blob); });
  }
  [[nodiscard]] bool any_of(const std::vector<domain::DataFile>& data) const {
    return std::any_of(data.begin(), data.end(),
                       [this](const domain::DataFile& file) { return has(file.blob); });
  }
  [[nodiscard]] bool made_by(const domain::Outcome& outcome) const {
    if (const auto& made = outcome.prepared;
        made && (any_of(made->inputs) || any_of(made->expected)))
      return true;
    if (const auto& made = outcome.artifact; made && (has(made->blob) || any_of(made->data)))
      return true;
    return outcome.executed && any_of(outcome.executed->actual);
  }
  [[nodiscard]] bool part_of(const domain::LayerModule& module) const {
    return has(module.blob) || any_of(module.data);
  }

 private:
  std::set<Digest> lost_;
};

}  // namespace

JobContent content_of(const BookTables& tables, std::uint32_t job) {
  const JobRecord& record = tables.jobs()[job];
  JobContent out;
  out.stage = record.stage;
  if (record.stage == Stage::Analyze) return out;
  const Place at = tables.place(record.example);
  out.model = at.request->given.model;
  out.layer = at.layer;
  out.analyze = at.request->given.analyze;
  out.inputs = at.request->given.inputs;
  if (record.stage == Stage::Prepare) return out;
  out.chip = at.request->given.chips[at.file->chip];
  out.executor = at.executor;
  out.tolerance = at.tolerance();
  if (record.stage == Stage::Time) out.runs = std::max(at.options().timing_runs, 1);
  if (record.stage == Stage::Compile) return out;
  for (const std::uint32_t need : record.needs) {
    if (need == kNone) continue;
    switch (tables.jobs()[need].stage) {
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
      case Stage::Whole:
        break;
    }
  }
  return out;
}

std::vector<JobId> find_producers(BookTables& tables, const Answers& answers, std::uint32_t job,
                                  const std::vector<Digest>& lost_blobs) {
  JobTable& jobs = tables.jobs();
  const JobRecord& record = jobs[job];
  if (record.stage == Stage::Analyze) return {};
  const Place at = tables.place(record.example);
  const Lost lost(lost_blobs);
  std::set<JobId> out;
  for (const std::uint32_t need : record.needs) {
    if (need == kNone) continue;
    const OutcomePtr outcome = answers.outcome_of(need);
    if (!outcome) {
      out.insert(JobId(need));  // its answer is gone as well
      continue;
    }
    if (!lost.made_by(*outcome)) continue;
    out.insert(JobId(need));
    // The counts that are made anew are those that are wanted now.
    if (jobs[need].stage == Stage::Execute) jobs[need].example = record.example;
  }
  const domain::Layer& layer = at.layer_spec();
  const auto analyze = at.request->given.analyze;
  if (analyze &&
      (lost.part_of(layer.module) || (layer.wide_module && lost.part_of(*layer.wide_module)))) {
    out.insert(*analyze);
  }
  return {out.begin(), out.end()};
}

}  // namespace layerfarm::coordinator::plan
