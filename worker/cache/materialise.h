// Puts blobs where a tool can read them under names of its own. Job thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "shared/base/blob_folder.h"
#include "shared/domain/layer.h"
#include "shared/domain/outcome.h"

namespace layerfarm::worker::cache {

/// Where a module or an artifact lies now, or why not: a blob that was pruned is named in `lost`,
/// anything else is an infrastructure error.
struct Placed {
  std::filesystem::path module;
  std::vector<base::Digest> lost;
  std::string problem;
  [[nodiscard]] bool ok() const { return lost.empty() && problem.empty(); }
};

/// The layer's module in `folder` as `<stem>.<format>`, its data files beside it.
[[nodiscard]] Placed place_module(const base::BlobFolder& blobs, const domain::LayerModule& module,
                                  const std::filesystem::path& folder, const std::string& stem);
/// A compiled artifact in `folder` as `name`, its data files (context binaries ...) beside it.
[[nodiscard]] Placed place_artifact(const base::BlobFolder& blobs, const domain::Artifact& artifact,
                                    const std::filesystem::path& folder, const std::string& name);
/// Checks that all these are there; those that are not are `lost`.
[[nodiscard]] std::vector<base::Digest> missing_blobs(const base::BlobFolder& blobs,
                                                      const std::vector<base::Digest>& wanted);

}  // namespace layerfarm::worker::cache
