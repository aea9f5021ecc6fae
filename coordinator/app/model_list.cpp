#include "coordinator/app/model_list.h"

#include <glob.h>

#include <algorithm>
#include <map>
#include <set>

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::ErrorCode;
using base::fail;
using base::Result;

namespace {

Result<std::vector<fs::path>> matches(const std::string& pattern) {
  std::error_code error;
  // A file may well be called "a[1].onnx": what exists is taken as it is.
  if (fs::exists(pattern, error)) return std::vector<fs::path>{pattern};
  if (pattern.find_first_of("*?[") == std::string::npos) {
    return fail(ErrorCode::NotFound, "Model not found: " + pattern);
  }
  glob_t found{};
  const int status = ::glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
  std::vector<fs::path> out(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (status != 0 || out.empty())
    return fail(ErrorCode::NotFound, "Model not found: no file matches " + pattern);
  return out;
}

/// The longest folder that holds all of them.
fs::path common_parent(const std::vector<fs::path>& files) {
  fs::path common = files.front().parent_path();
  for (const fs::path& file : files) {
    fs::path kept;
    auto a = common.begin();
    const fs::path parent = file.parent_path();
    for (auto b = parent.begin(); a != common.end() && b != parent.end() && *a == *b; ++a, ++b)
      kept /= *a;
    common = kept;
  }
  return common;
}

}  // namespace

Result<void> check_model_file(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error))
    return fail(ErrorCode::InvalidInput, "Model is a folder: " + path.string());
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  if (extension == ".tflite") {
    return fail(ErrorCode::InvalidInput,
                "TFLite models are not supported (ONNX only): " + path.string());
  }
  if (extension == ".pt" || extension == ".pth" || extension == ".py") {
    return fail(ErrorCode::InvalidInput,
                "Torch models are not supported; export to ONNX first: " + path.string());
  }
  return {};
}

Result<std::vector<ModelFile>> expand_models(const std::vector<std::string>& patterns) {
  std::vector<ModelFile> out;
  std::set<fs::path> seen;
  for (const std::string& pattern : patterns) {
    auto files = matches(pattern);
    if (!files) return fail(files.error());
    for (const fs::path& path : *files) {
      if (auto good = check_model_file(path); !good) return fail(good.error());
      std::error_code error;
      if (!seen.insert(fs::weakly_canonical(path, error)).second) continue;
      out.push_back({path, path.stem().string(), {}});
    }
  }
  std::map<std::string, std::size_t> names;
  for (const ModelFile& model : out) ++names[model.name];
  std::vector<fs::path> absolute;
  for (const ModelFile& model : out)
    absolute.push_back(fs::absolute(model.path).lexically_normal());
  if (absolute.empty()) return out;
  const fs::path parent = common_parent(absolute);
  std::set<std::pair<fs::path, std::string>> places;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (names[out[i].name] > 1)
      out[i].folder = absolute[i].parent_path().lexically_relative(parent);
    if (out[i].folder == ".") out[i].folder.clear();
    const auto takes_place = [&places, &model = out[i]] {
      // A model called X_compiler would write its report over X's compiler file.
      const auto all = {model.name, model.name + "_compiler", model.name + "_mac_debug"};
      return std::all_of(all.begin(), all.end(), [&](const std::string& name) {
        return !places.contains({model.folder, name});
      });
    };
    // Same folder and stem, other extension: only the whole file name can tell them apart.
    if (!takes_place()) out[i].folder /= out[i].path.filename();
    for (const char* suffix : {"", "_compiler", "_mac_debug"})
      places.emplace(out[i].folder, out[i].name + suffix);
  }
  return out;
}

}  // namespace layerfarm::coordinator::app
