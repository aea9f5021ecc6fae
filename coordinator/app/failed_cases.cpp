#include "coordinator/app/failed_cases.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "shared/base/files.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::ErrorCode;
using base::fail;
using base::Result;
using nlohmann::ordered_json;

namespace {

/// A folder name from a name of the model's: anything that could walk through folders or upset a
/// shell becomes "_".
std::string plain(const std::string& text) {
  std::string out = text;
  std::replace_if(
      out.begin(), out.end(),
      [](unsigned char c) {
        return !(std::isalnum(c) || c == '-' || c == '.' || c == '_' || c >= 128);
      },
      '_');
  if (out.empty() || out == "." || out == "..") return "_";
  return out;
}

ordered_json tensor(const domain::TensorType& type, const std::string& file) {
  return {{"file", file}, {"dtype", domain::dtype_name(type.dtype)}, {"dims", type.dims}};
}

/// Copies blobs out under plain names and remembers which are gone.
class Copier {
 public:
  Copier(const base::BlobFolder& blobs, fs::path folder)
      : blobs_(blobs), folder_(std::move(folder)) {}
  std::string copy(const base::Digest& digest, const std::string& name) {
    auto bytes = blobs_.get(digest);
    if (!bytes) {
      gone_.push_back(name);
      return name + " (pruned)";
    }
    if (auto written = base::write_file_atomically(folder_ / name, *bytes, base::Sync::No);
        !written && !error_)
      error_ = written.error();
    return name;
  }
  [[nodiscard]] const std::vector<std::string>& gone() const { return gone_; }
  [[nodiscard]] const std::optional<base::Error>& error() const { return error_; }

 private:
  const base::BlobFolder& blobs_;
  fs::path folder_;
  std::vector<std::string> gone_;
  std::optional<base::Error> error_;
};

}  // namespace

Result<void> check_writable_folder(const std::string& flag, const fs::path& folder) {
  if (folder.empty()) return {};
  const auto refuse = [&flag, &folder](const std::string& why) {
    return fail(ErrorCode::InvalidInput, flag + ": cannot write into " + folder.string() + " (" +
                                             why + "); name another folder");
  };
  // Only doing it tells: permissions say little to root, and nothing of read-only file systems.
  const fs::path wanted = fs::absolute(folder).lexically_normal();
  std::vector<fs::path> made;
  std::error_code error;
  for (fs::path path = wanted; !path.empty() && !fs::exists(path, error) && !error;
       path = path.parent_path())
    made.push_back(path);
  fs::create_directories(wanted, error);
  Result<void> out;
  if (error) {
    out = refuse(error.message());
  } else if (!fs::is_directory(wanted, error)) {
    out = refuse("it is no folder");
  } else if (auto probe = base::ScratchFolder::make(wanted, "probe"); !probe) {
    out = refuse(probe.error().text());
  }
  for (const fs::path& path : made) fs::remove(path, error);  // the innermost first
  return out;
}

Result<void> FailedCases::keep(const plan::CaseSettled& settled, const report::CaseResult& result,
                               const ReportSetup& setup, KnownOutcomes& known) const {
  const domain::Layer& layer = setup.model->layers[settled.layer];
  const domain::ExecutorSpec& executor = setup.chip->spec.executors[settled.executor];
  const fs::path folder =
      folder_ / plain(setup.model_name + setup.suffix) / plain(setup.chip->spec.name) /
      (std::to_string(layer.orig_index) + "_" + plain(layer.op_type) + "_" + plain(executor.name));
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return fail(ErrorCode::Internal, "cannot make " + folder.string() + ": " + error.message());
  Copier copier(blobs_, folder);
  ordered_json info;
  info["model"] = setup.model_name;
  info["layer"] = layer.id;
  info["node"] = layer.node_name;
  info["chip"] = setup.chip->spec.name;
  info["executor"] = executor.name;
  info["status"] = domain::status_name(result.status);
  info["summary"] = report::failure_summary(result);
  info["tool"] = setup.chip->tool.version;
  info["module"] = copier.copy(layer.module.blob, "layer." + layer.module.format);
  for (const domain::DataFile& file : layer.module.data) copier.copy(file.blob, file.name);
  ordered_json inputs = ordered_json::array();
  ordered_json expected = ordered_json::array();
  ordered_json actual = ordered_json::array();
  const auto prepared = settled.prepare_key.is_zero() ? nullptr : known.find(settled.prepare_key);
  if (prepared && prepared->prepared) {
    for (std::size_t i = 0; i < prepared->prepared->inputs.size() && i < layer.inputs.size(); ++i) {
      inputs.push_back(tensor(
          layer.inputs[i].type,
          copier.copy(prepared->prepared->inputs[i], "input_" + std::to_string(i) + ".bin")));
    }
    for (std::size_t i = 0;
         i < prepared->prepared->expected.size() && i < prepared->prepared->expected_types.size();
         ++i) {
      expected.push_back(tensor(
          prepared->prepared->expected_types[i],
          copier.copy(prepared->prepared->expected[i], "expected_" + std::to_string(i) + ".bin")));
    }
    info["reference"] = prepared->prepared->reference;
  }
  if (settled.outcome && settled.outcome->executed) {
    for (std::size_t i = 0; i < settled.outcome->executed->actual.size(); ++i) {
      actual.push_back(copier.copy(settled.outcome->executed->actual[i],
                                   "actual_" + std::to_string(i) + ".bin"));
    }
  }
  info["inputs"] = std::move(inputs);
  info["expected"] = std::move(expected);
  info["actual"] = std::move(actual);
  if (settled.outcome && !settled.outcome->diagnostic.raw.is_zero()) {
    info["diagnostic"] = copier.copy(settled.outcome->diagnostic.raw, "diagnostic.txt");
  }
  if (!copier.gone().empty()) info["pruned"] = copier.gone();
  if (copier.error()) return fail(*copier.error());
  return base::write_file_atomically(folder / "case.json", info.dump(2) + "\n", base::Sync::No);
}

}  // namespace layerfarm::coordinator::app
