// What the store keeps of a report, so that it can be brought up to date after a run that died
// (store::RunFile), and the way back.
#pragma once

#include <filesystem>

#include "coordinator/app/run_reports.h"
#include "coordinator/store/store.h"
#include "shared/base/result.h"

namespace layerfarm::coordinator::app {

[[nodiscard]] store::RunFile run_file_of(const ReportSetup& setup,
                                         const std::filesystem::path& model,
                                         const base::Digest& analysis);

/// The setup again. NotFound when the analysis blob was pruned, Corrupt when what is stored cannot
/// be read.
[[nodiscard]] base::Result<ReportSetup> setup_of(const store::RunFile& file,
                                                 const std::filesystem::path& cache);

}  // namespace layerfarm::coordinator::app
