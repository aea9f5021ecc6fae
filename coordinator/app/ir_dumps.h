// IrDumps: `--debug-ir[=DIR]`, what compilers wrote of their intermediate forms, unpacked into a
// folder per layer and executor. Loop thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "coordinator/app/known_outcomes.h"
#include "coordinator/app/run_reports.h"
#include "coordinator/plan/case_settled.h"
#include "shared/base/blob_folder.h"
#include "shared/base/result.h"

namespace layerfarm::coordinator::app {

/// A layer id as one folder's name: "/" and other signs that a path cannot hold become "_", and the
/// layer's place in case order tells such ids apart.
[[nodiscard]] std::string folder_name_of(const std::string& layer_id, std::uint32_t orig_index);

class IrDumps {
 public:
  struct Settings {
    std::filesystem::path folder;  ///< empty: write nothing
    bool several_models = false;   ///< each gets a folder
    bool several_chips = false;    ///< each gets a folder in it
  };
  IrDumps(Settings settings, base::BlobFolder blobs)
      : settings_(std::move(settings)), blobs_(std::move(blobs)) {}

  [[nodiscard]] bool wanted() const { return !settings_.folder.empty(); }
  /// Unpacks the dump of the case's compilation, where it left one, into
  /// `<folder>/[<model>/][<chip>/]<layer id>/<executor>/`; what was there goes. A dump that was
  /// pruned from the cache is counted and no error.
  [[nodiscard]] base::Result<void> write(const plan::CaseSettled& settled, const ReportSetup& setup,
                                         KnownOutcomes& known);
  /// The same for a run of the whole model: `<folder>/<case name>/`, with a folder for each segment
  /// where there are several.
  [[nodiscard]] base::Result<void> write(const base::Digest& dump, const std::string& case_name);
  /// What was written, for the end of the run; empty when nothing is wanted.
  [[nodiscard]] std::string summary() const;

 private:
  [[nodiscard]] base::Result<void> unpack(const base::Digest& dump,
                                          const std::filesystem::path& folder);
  Settings settings_;
  base::BlobFolder blobs_;
  std::size_t written_ = 0;
  std::size_t pruned_ = 0;
};

}  // namespace layerfarm::coordinator::app
