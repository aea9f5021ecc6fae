// ResidentHelpers: the worker's two resident children, layerfarm-ort and the Python sidecar.
// Started on first use; renewed after so many jobs, when grown, when a job may take more memory
// than the child was started with, or when dead. Job thread only (docs/helpers.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "shared/base/blob_folder.h"
#include "worker/process/process_runner.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {

/// How one kind of helper is started and how long it may live.
struct HelperKind {
  std::string name;  ///< "layerfarm-ort", "sidecar"; for people
  std::vector<std::string> argv;
  std::vector<std::filesystem::path> needed;  ///< files without which it cannot start
  std::string how_to_get;                     ///< when one of them is missing
  int most_jobs = 200;                        ///< renewed after so many
  std::int64_t most_memory_bytes = std::int64_t{1}
                                   << 30;  ///< renewed when it holds more than this between jobs
};

class ResidentHelpers final : public Helpers {
 public:
  /// `folder`: where the helpers run. All references outlive this object.
  ResidentHelpers(process::ProcessRunner& runner, const base::BlobFolder& blobs,
                  const process::CancelToken& cancel, std::vector<int> cores,
                  std::filesystem::path folder);
  /// With other programs: for tests.
  ResidentHelpers(process::ProcessRunner& runner, const base::BlobFolder& blobs,
                  const process::CancelToken& cancel, std::vector<int> cores,
                  std::filesystem::path folder, HelperKind ort, HelperKind sidecar);
  ~ResidentHelpers() override;

  HelperAnswer ort(const std::string& request, const process::Bounds& bounds) override;
  HelperAnswer sidecar(const std::string& request, const process::Bounds& bounds) override;

  [[nodiscard]] static HelperKind ort_kind();
  [[nodiscard]] static HelperKind sidecar_kind();

 private:
  struct Child;
  HelperAnswer ask(Child& child, const std::string& request, const process::Bounds& bounds);
  /// Empty when the child is there and fit for a job with these bounds; else why not.
  HelperAnswer make_ready(Child& child, const process::Bounds& bounds);

  process::ProcessRunner& runner_;
  const base::BlobFolder& blobs_;
  const process::CancelToken& cancel_;
  std::vector<int> cores_;
  std::filesystem::path folder_;
  std::unique_ptr<Child> ort_;
  std::unique_ptr<Child> sidecar_;
};

}  // namespace layerfarm::worker::toolchain
