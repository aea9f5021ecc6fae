// FailedCases: `--keep-failed DIR`, everything about each failed case in a folder of its own, for
// whoever looks into it.
#pragma once

#include <filesystem>
#include <string>

#include "coordinator/app/known_outcomes.h"
#include "coordinator/app/run_reports.h"
#include "coordinator/plan/case_settled.h"
#include "shared/base/blob_folder.h"
#include "shared/base/result.h"

namespace layerfarm::coordinator::app {

/// Nothing when folders can be made and written there, or the name is empty (keep nothing); leaves
/// nothing there. Asked before the work begins, since the first failed case may come hours later.
/// `flag` is what named the folder.
[[nodiscard]] base::Result<void> check_writable_folder(const std::string& flag,
                                                       const std::filesystem::path& folder);

class FailedCases {
 public:
  /// An empty folder means: keep nothing.
  FailedCases(std::filesystem::path folder, base::BlobFolder blobs)
      : folder_(std::move(folder)), blobs_(std::move(blobs)) {}

  [[nodiscard]] bool wanted() const { return !folder_.empty(); }
  /// `<folder>/<model>/<chip>/<place>_<op type>_<executor>/` with the layer's module, inputs,
  /// expected and actual outputs (raw arrays), the raw diagnostic with its command lines and
  /// versions, and case.json. Blobs that were pruned are named in case.json instead.
  [[nodiscard]] base::Result<void> keep(const plan::CaseSettled& settled,
                                        const report::CaseResult& result, const ReportSetup& setup,
                                        KnownOutcomes& known) const;

 private:
  std::filesystem::path folder_;
  base::BlobFolder blobs_;
};

}  // namespace layerfarm::coordinator::app
