#include "worker/toolchain/materialise.h"

#include <system_error>

namespace layerfarm::worker::toolchain {
namespace fs = std::filesystem;

Placed place_module(const base::BlobFolder& blobs, const domain::LayerModule& module, const fs::path& folder, const std::string& stem) {
  Placed out;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    out.problem = "cannot make the folder " + folder.string() + ": " + error.message();
    return out;
  }
  const auto place = [&](const base::Digest& blob, const fs::path& target) {
    if (fs::exists(target, error)) return;  // layers of one lease share constants
    const auto linked = blobs.link_to(blob, target);
    if (linked) return;
    if (linked.error().code == base::ErrorCode::NotFound) {
      out.lost.push_back(blob);
    } else {
      out.problem = linked.error().text();
    }
  };
  out.module = folder / (stem + "." + module.format);
  place(module.blob, out.module);
  for (const domain::DataFile& data : module.data) {
    if (data.name.empty() || data.name.find('/') != std::string::npos || data.name.front() == '.') {
      out.problem = "the module refers to a data file with the name '" + data.name + "', which is none";
      return out;
    }
    place(data.blob, folder / data.name);
  }
  return out;
}

std::vector<base::Digest> missing_blobs(const base::BlobFolder& blobs, const std::vector<base::Digest>& wanted) {
  std::vector<base::Digest> out;
  for (const base::Digest& digest : wanted) {
    if (!blobs.has(digest)) out.push_back(digest);
  }
  return out;
}

}  // namespace layerfarm::worker::toolchain
