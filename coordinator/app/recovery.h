// Recovery: after a run that did not end (kill -9, power cut) its reports are brought up to what
// the store knows, before anybody goes on with them. Needs no worker and reads no model: the
// analysis is a blob, planning is pure.
#pragma once

#include <filesystem>
#include <vector>

#include "coordinator/store/store.h"
#include "shared/base/result.h"

namespace layerfarm::coordinator::app {

/// Brings the files of dead runs up to date; `reports`: only these (empty = whatever the dead runs
/// have in `folder` or below). The report files that were renewed. Runs of processes that still
/// live are left alone.
[[nodiscard]] base::Result<std::vector<std::filesystem::path>> recover_folder(
    store::Store& store, const std::filesystem::path& cache, const std::filesystem::path& folder);

/// The same for one report, opening the store for it; nothing happens when there is no store yet.
/// For `edit`.
[[nodiscard]] base::Result<void> recover_report(const std::filesystem::path& report);

}  // namespace layerfarm::coordinator::app
