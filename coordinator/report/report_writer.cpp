#include "coordinator/report/report_writer.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "coordinator/report/folder_lock.h"
#include "coordinator/report/ops.h"

namespace layerfarm::coordinator::report {
namespace {

/// While a run goes on a write can be left for the next time; the last one is worth waiting for.
constexpr std::chrono::milliseconds kPatienceRunning(1000);
constexpr std::chrono::milliseconds kPatienceAtEnd(20000);

}  // namespace

base::Duration write_interval(base::Duration last_cost) {
  return std::max<base::Duration>(std::chrono::seconds(1), last_cost * 20);
}

/// Runs of two chips into one folder, one behind the other, have the classic names and a folder
/// (ModelReports). At once they must not replace each other's files: whoever finds the other's
/// there, or its own moved away, goes on in its own folder. Says so, once.
std::string ReportWriter::make_way() {
  const std::string& chip = state_.plan().chip.name;
  const ReportPaths own = in_chip_folder(paths_, chip);
  if (paths_.report.parent_path().filename() == chip) return {};
  const auto now = file_state(paths_.report);
  std::string other;
  if (now) {
    if (now == seen_) return {};
    const auto report = load_config(paths_.report);
    if (!report) return {};  // whoever takes it over says why
    other = chip_of(*report, state_.plan().chip);
    if (other.empty() || other == chip) return {};
  } else if (!seen_ || !file_state(own.report)) {
    return {};
  }
  std::string line = paths_.report.string() + " is " +
                     (other.empty() ? "moved away by another run" : "of chip " + other + " now") +
                     "; this run goes on with " + own.report.string();
  paths_ = own;
  seen_.reset();
  written_ = false;
  last_compiler_.clear();
  last_macs_.clear();
  return line;
}

base::Result<Takeover> ReportWriter::load() {
  make_way();
  const auto state = file_state(paths_.report);
  auto report = load_config(paths_.report);
  if (!report) {
    if (report.error().code == base::ErrorCode::NotFound) return Takeover{};
    return base::fail(std::move(report.error()));
  }
  if (auto fine = check_edited_bounds(*report, paths_.report); !fine)
    return base::fail(std::move(fine.error()));
  seen_ = state;
  return state_.take_over(*report);
}

base::Result<void> ReportWriter::take_over_changes(Written& written) {
  const auto now = file_state(paths_.report);
  if (!now || now == seen_) return {};
  auto report = load_config(paths_.report);
  if (!report) {
    // Broken by another program while we run: what we know replaces it.
    if (report.error().code == base::ErrorCode::NotFound) return {};
    if (report.error().code != base::ErrorCode::InvalidInput)
      return base::fail(std::move(report.error()));
    written.warnings.push_back(report.error().text() + "; it is written anew");
    return {};
  }
  written.taken_over = state_.take_over(*report);
  return {};
}

base::Result<void> ReportWriter::put(const std::filesystem::path& path, const std::string& text,
                                     std::string& last, bool& changed) {
  if (written_ && text == last && file_state(path)) return {};
  if (auto done = base::write_file_atomically(path, text, sync_); !done) return done;
  last = text;
  changed = true;
  return {};
}

base::Result<Written> ReportWriter::write(Phase phase,
                                          const std::optional<WholeModel>& whole_model) {
  Written written;
  auto lock = FolderLock::take(paths_.report.parent_path(),
                               phase == Phase::Running ? kPatienceRunning : kPatienceAtEnd);
  if (!lock) return base::fail(std::move(lock.error()));
  if (std::string way = make_way(); !way.empty()) {
    written.moved = std::move(way);
    std::error_code error;
    std::filesystem::create_directories(paths_.report.parent_path(), error);
    if (error)
      return base::fail(base::ErrorCode::Internal, "cannot make the folder " +
                                                       paths_.report.parent_path().string() + ": " +
                                                       error.message());
    lock = FolderLock::take(paths_.report.parent_path(), kPatienceAtEnd);
    if (!lock) return base::fail(std::move(lock.error()));
  }
  if (auto done = take_over_changes(written); !done) return base::fail(std::move(done.error()));
  const auto now = file_state(paths_.report);
  const bool report_is_ours = now && now == seen_;
  if (!is_due(phase) && report_is_ours && !whole_model) return written;

  Texts texts = state_.texts(phase, whole_model);
  // Another run of the same model may have written just this: two runs must not keep each other
  // writing.
  bool same = now && !report_is_ours && now->size == texts.report.size();
  if (same) {
    const auto there = base::read_file(paths_.report);
    same = there && *there == texts.report;
  }
  if (!same) {
    if (auto done = base::write_file_atomically(paths_.report, texts.report, sync_); !done) {
      return base::fail(std::move(done.error()));
    }
    written.changed = true;
  }
  seen_ = file_state(paths_.report);
  if (auto done = put(paths_.compiler, texts.compiler, last_compiler_, written.changed); !done) {
    return base::fail(std::move(done.error()));
  }
  if (auto done = put(paths_.macs, texts.macs, last_macs_, written.changed); !done) {
    return base::fail(std::move(done.error()));
  }
  for (std::string& warning : texts.warnings) {
    if (std::find(warned_.begin(), warned_.end(), warning) != warned_.end()) continue;
    warned_.push_back(warning);
    written.warnings.push_back(std::move(warning));
  }
  written_ = true;
  revision_ = state_.revision();
  phase_ = phase;
  return written;
}

}  // namespace layerfarm::coordinator::report
