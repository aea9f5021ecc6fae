// FileBundle: some files of one folder as bytes, where a blob each would be too many.
//
// Layout, little endian, per file: length of the path u32, length of the content u64, path,
// content.
#pragma once

#include <string>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/result.h"

namespace layerfarm::base {

struct BundledFile {
  std::string path;  ///< relative, "/" between folders
  Bytes content;
  friend bool operator==(const BundledFile&, const BundledFile&) = default;
};

[[nodiscard]] Bytes encode_bundle(const std::vector<BundledFile>& files);
/// Corrupt when lengths do not fit, or when a path would leave the folder that files are written
/// into.
[[nodiscard]] Result<std::vector<BundledFile>> decode_bundle(BytesView bytes);

}  // namespace layerfarm::base
