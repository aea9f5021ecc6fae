#include "worker/toolchain/ir_dump.h"

#include <algorithm>
#include <filesystem>

#include "shared/base/file_bundle.h"
#include "shared/base/files.h"
#include "worker/toolchain/tool_options.h"

namespace layerfarm::worker::toolchain {
namespace fs = std::filesystem;

namespace {

constexpr const char* kLeftOut = "left_out.txt";

std::vector<fs::path> files_of(const std::vector<std::string>& names, const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const std::string& name : names) {
    const fs::path path = folder / name;
    if (fs::is_regular_file(fs::symlink_status(path, error))) out.push_back(path);
    if (!fs::is_directory(fs::symlink_status(path, error))) continue;
    for (fs::recursive_directory_iterator at(path, error), end; !error && at != end;
         at.increment(error)) {
      if (at->symlink_status(error).type() == fs::file_type::regular) out.push_back(at->path());
    }
  }
  // The order in which a folder is read says nothing, and equal dumps shall be one blob.
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

bool wants_ir_dump(const domain::Options& options) {
  return text_option(options, "dump_ir", "") == "1";
}

std::optional<base::Digest> keep_ir_dump(const std::vector<std::string>& names,
                                         const StepContext& context, std::uint64_t most_bytes) {
  std::vector<base::BundledFile> files;
  std::uint64_t bytes = 0;
  std::string left_out;
  for (const fs::path& path : files_of(names, context.scratch)) {
    const std::string name = path.lexically_relative(context.scratch).string();
    std::error_code error;
    const std::uint64_t size = fs::file_size(path, error);
    if (error || bytes + size > most_bytes) {
      left_out += name + "\n";
      continue;
    }
    auto content = base::read_file(path);
    if (!content) continue;
    bytes += content->size();
    files.push_back({name, std::move(*content)});
  }
  if (!left_out.empty()) files.push_back({kLeftOut, std::move(left_out)});
  if (files.empty()) return std::nullopt;
  const auto blob = context.blobs.put(base::encode_bundle(files));
  return blob ? std::optional(*blob) : std::nullopt;
}

}  // namespace layerfarm::worker::toolchain
