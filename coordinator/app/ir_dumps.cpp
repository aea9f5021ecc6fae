#include "coordinator/app/ir_dumps.h"

#include <fmt/format.h>

#include <algorithm>

#include "shared/base/file_bundle.h"
#include "shared/base/files.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::ErrorCode;
using base::fail;
using base::Result;

namespace {

/// File systems take names of 255 bytes.
constexpr std::size_t kMostName = 200;

std::optional<base::Digest> dump_of(const plan::CaseSettled& settled, KnownOutcomes& known) {
  // A compilation that failed is the case's own outcome, and a crash is in no store.
  if (settled.outcome && settled.outcome->stage == domain::Stage::Compile)
    return settled.outcome->ir_dump;
  if (settled.compile_key.is_zero()) return std::nullopt;
  const auto compiled = known.find(settled.compile_key);
  return compiled ? compiled->ir_dump : std::nullopt;
}

Result<void> write_files(const std::vector<base::BundledFile>& files, const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  for (const base::BundledFile& file : files) {
    const fs::path path = folder / file.path;
    fs::create_directories(path.parent_path(), error);
    if (error)
      return fail(ErrorCode::Internal, "--debug-ir: cannot make the folder " +
                                           path.parent_path().string() + ": " + error.message());
    if (auto written = base::write_file_atomically(path, file.content, base::Sync::No); !written)
      return fail(written.error());
  }
  return {};
}

}  // namespace

std::string folder_name_of(const std::string& layer_id, std::uint32_t orig_index) {
  std::string out = layer_id.substr(0, kMostName);
  std::replace_if(
      out.begin(), out.end(),
      [](unsigned char c) { return c < ' ' || c == '/' || c == '\\' || c == 127; }, '_');
  if (out == layer_id && out != "." && out != ".." && !out.empty()) return out;
  return out + "_" + std::to_string(orig_index);
}

Result<void> IrDumps::write(const plan::CaseSettled& settled, const ReportSetup& setup,
                            KnownOutcomes& known) {
  if (settled.how != plan::How::Judged && settled.how != plan::How::Failed) return {};
  const auto dump = dump_of(settled, known);
  if (!dump) return {};
  const domain::Layer& layer = setup.model->layers[settled.layer];
  fs::path folder = settings_.folder;
  if (settings_.several_models) folder /= folder_name_of(setup.label, 0);
  if (settings_.several_chips) folder /= folder_name_of(setup.chip->spec.name, 0);
  folder /= folder_name_of(layer.id, layer.orig_index);
  return unpack(*dump, folder / setup.chip->spec.executors[settled.executor].name);
}

Result<void> IrDumps::write(const base::Digest& dump, const std::string& case_name) {
  return unpack(dump, settings_.folder / folder_name_of(case_name, 0));
}

Result<void> IrDumps::unpack(const base::Digest& dump, const fs::path& folder) {
  const auto bytes = blobs_.get(dump);
  if (!bytes) {
    ++pruned_;
    return {};
  }
  auto files = base::decode_bundle(*bytes);
  if (!files) return fail(std::move(files.error()));
  auto written = write_files(*files, folder);
  if (written) ++written_;
  return written;
}

std::string IrDumps::summary() const {
  if (!wanted()) return "";
  std::string out =
      fmt::format("[DebugIR] {} dump(s) written to {}", written_, settings_.folder.string());
  if (pruned_ > 0)
    out +=
        fmt::format("; {} are gone from the cache (--recompute-cache makes them again)", pruned_);
  return out;
}

}  // namespace layerfarm::coordinator::app
