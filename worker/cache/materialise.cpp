#include "worker/cache/materialise.h"

#include <system_error>

namespace layerfarm::worker::cache {
namespace fs = std::filesystem;
namespace {

/// `blob` as `folder`/`name`, and the data files under their own names.
Placed place(const base::BlobFolder& blobs, const base::Digest& blob,
             const std::vector<domain::DataFile>& data, const fs::path& folder,
             const std::string& name) {
  Placed out;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    out.problem = "cannot make the folder " + folder.string() + ": " + error.message();
    return out;
  }
  const auto place_one = [&](const base::Digest& digest, const fs::path& target) {
    if (fs::exists(target, error)) return;  // layers of one lease share constants
    const auto linked = blobs.link_to(digest, target);
    if (linked) return;
    if (linked.error().code == base::ErrorCode::NotFound ||
        linked.error().code == base::ErrorCode::Corrupt) {  // its producer makes it again
      out.lost.push_back(digest);
    } else {
      out.problem = linked.error().text();
    }
  };
  out.module = folder / name;
  place_one(blob, out.module);
  for (const domain::DataFile& file : data) {
    // The names come with the model; none may lead out of the folder or stand in for another file.
    if (file.name.empty() || file.name.find('/') != std::string::npos || file.name.front() == '.' ||
        file.name == name) {
      out.problem =
          "the module refers to a data file with the name '" + file.name + "', which is none";
      return out;
    }
    place_one(file.blob, folder / file.name);
  }
  return out;
}

}  // namespace

Placed place_module(const base::BlobFolder& blobs, const domain::LayerModule& module,
                    const fs::path& folder, const std::string& stem) {
  return place(blobs, module.blob, module.data, folder, stem + "." + module.format);
}

Placed place_artifact(const base::BlobFolder& blobs, const domain::Artifact& artifact,
                      const fs::path& folder, const std::string& name) {
  return place(blobs, artifact.blob, artifact.data, folder, name);
}

std::vector<base::Digest> missing_blobs(const base::BlobFolder& blobs,
                                        const std::vector<base::Digest>& wanted) {
  std::vector<base::Digest> out;
  for (const base::Digest& digest : wanted) {
    if (!blobs.intact(digest)) out.push_back(digest);
  }
  return out;
}

}  // namespace layerfarm::worker::cache
