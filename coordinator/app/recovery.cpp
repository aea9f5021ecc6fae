#include "coordinator/app/recovery.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "coordinator/app/known_outcomes.h"
#include "coordinator/app/stored_report.h"
#include "coordinator/store/sqlite_store.h"
#include "shared/base/places.h"
#include "shared/base/process_identity.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::fail;
using base::Result;

namespace {

bool is_below(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

/// Settles what the store knows into the report's state and writes its files. False when there is
/// nothing to go on with (a pruned blob).
Result<bool> renew(store::Store& store, const fs::path& cache, store::RunId run,
                   const store::RunFile& file) {
  auto found = setup_of(file, cache);
  if (!found) return false;
  ReportSetup setup = std::move(*found);
  auto opened = open_report(setup);
  if (!opened) return fail(opened.error());

  KnownOutcomes known(store);
  known.include_all_of(run);
  plan::CaseBook book(known);
  plan::PlanRequest request;
  request.run = run;
  request.model = setup.model;
  request.chips = {setup.chip};
  request.old = {opened->old};
  request.inputs = setup.inputs;
  request.reference = setup.reference_tool;
  request.options = setup.options;
  // What was tested again for --recompute-cache is in the store by now; its older answers are the
  // same work's.
  request.options.recompute = false;
  auto added = book.add(std::move(request));
  if (!added) return fail(added.error());
  for (const plan::CaseSettled& settled : added->turn.settled) {
    if (settled.how == plan::How::Unsettled) continue;
    if (const auto result = case_result_of(settled, setup, known))
      opened->report.state->settle(settled.layer, settled.executor, *result);
  }
  auto written = opened->report.writer->write(report::Phase::Running);
  if (!written) return fail(written.error());
  return true;
}

}  // namespace

Result<std::vector<fs::path>> recover_folder(store::Store& store, const fs::path& cache,
                                             const fs::path& folder) {
  std::vector<fs::path> out;
  std::vector<store::Fact> ended;
  for (const store::RunRecord& run : store.runs(/*only_open=*/true)) {
    if (base::is_alive(run.start.process)) continue;
    bool all = true;
    for (const store::RunFile& file : run.files) {
      if (!is_below(file.report_path, folder)) {
        all = false;  // somebody else's folder: whoever goes on there brings it up to date
        continue;
      }
      auto renewed = renew(store, cache, run.id, file);
      if (!renewed)
        return fail(
            std::move(renewed.error())
                .with("bringing " + file.report_path + " up to date after a run that did not end"));
      if (*renewed) out.emplace_back(file.report_path);
    }
    if (all) ended.emplace_back(store::RunEndedFact{run.id, 3});
  }
  if (!ended.empty()) store.append(std::move(ended));
  return out;
}

Result<void> recover_report(const fs::path& report) {
  const fs::path cache = base::cache_folder();
  std::error_code error;
  if (!fs::exists(cache / "store.sqlite", error)) return {};
  auto store = store::SqliteStore::open(cache);
  if (!store) return fail(store.error());
  auto done = recover_folder(**store, cache, fs::absolute(report).lexically_normal().parent_path());
  if (!done) return fail(done.error());
  return {};
}

}  // namespace layerfarm::coordinator::app
