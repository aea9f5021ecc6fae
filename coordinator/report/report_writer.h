// ReportWriter: keeps the three files of a report equal to a ReportState. Each write is lock, read
// again what others changed, render, rename. Used by the thread that owns the state.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/report/report_files.h"
#include "coordinator/report/report_state.h"
#include "shared/base/files.h"
#include "shared/base/result.h"
#include "shared/base/time.h"

namespace layerfarm::coordinator::report {

/// What a write did.
struct Written {
  bool changed = false;  ///< at least one file was renamed into place
  Takeover taken_over;   ///< what somebody else had changed in the file since our last write
  std::vector<std::string> warnings;  ///< each is given once, when it first comes up
  std::string moved;  ///< where the files are from now on and why, for people; empty = as before
};

/// Time from the start of one write to that of the next: max(1 s, 20 x the last write's cost).
[[nodiscard]] base::Duration write_interval(base::Duration last_cost);

class ReportWriter {
 public:
  /// `state` must outlive the writer. Nothing is read or written yet.
  ReportWriter(ReportState& state, ReportPaths paths, base::Sync sync = base::Sync::Yes)
      : state_(state), paths_(std::move(paths)), sync_(sync) {}

  /// Takes over the file that is there from before, if any. An unreadable one is an error: the user
  /// decides what becomes of it.
  [[nodiscard]] base::Result<Takeover> load();

  /// Writes what changed. Files whose text is as it was are left alone. An error leaves old, whole
  /// files; call again later.
  [[nodiscard]] base::Result<Written> write(
      Phase phase, const std::optional<WholeModel>& whole_model = std::nullopt);

  /// Whether a write would have something to do as far as this process knows (others' edits are
  /// looked at by write() only).
  [[nodiscard]] bool is_due(Phase phase) const {
    return !written_ || revision_ != state_.revision() || phase_ != phase;
  }

  /// Where the files are: in the chip's own folder since another chip's run took the names.
  [[nodiscard]] const ReportPaths& paths() const { return paths_; }

 private:
  std::string make_way();
  [[nodiscard]] base::Result<void> take_over_changes(Written& written);
  [[nodiscard]] base::Result<void> put(const std::filesystem::path& path, const std::string& text,
                                       std::string& last, bool& changed);

  ReportState& state_;
  ReportPaths paths_;
  base::Sync sync_;
  bool written_ = false;
  std::uint64_t revision_ = 0;
  Phase phase_ = Phase::Running;
  std::optional<FileState> seen_;  ///< the report as we last wrote or read it
  std::string last_compiler_;
  std::string last_macs_;
  std::vector<std::string> warned_;
};

}  // namespace layerfarm::coordinator::report
