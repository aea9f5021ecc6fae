#include "coordinator/app/input_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "shared/base/digest.h"
#include "shared/base/text.h"
#include "shared/domain/dtype.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::ErrorCode;
using base::fail;
using base::Result;

namespace {

/// The name as a file can have it; workers look for both.
std::string file_name_of(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) {
        return !((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                 c == '.' || c == '_' || c == '-');
      },
      '_');
  return name;
}

}  // namespace

Result<InputFiles> find_inputs(const std::string& folder) {
  InputFiles out;
  if (folder.empty()) return out;
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return fail(ErrorCode::NotFound, "--inputs: no folder " + folder);
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".npz" || extension == ".npy" || extension == ".pb")
      files.insert(entry.path());
  }
  if (error)
    return fail(ErrorCode::InvalidInput,
                "--inputs: cannot read the folder " + folder + ": " + error.message());
  if (files.empty())
    return fail(ErrorCode::NotFound, "--inputs: " + folder + " holds no .npz, .npy or .pb file");
  base::Hasher hasher("layerfarm.inputs.1");
  std::set<std::string> names;
  for (const fs::path& file : files) {
    auto digest = base::digest_of_file(file.string());
    if (!digest) return fail(digest.error());
    hasher.add(file.filename().string()).add(*digest);
    auto found = arrays_in(file);
    out.all_known = out.all_known && found.has_value();
    if (!found) continue;
    // Of two arrays of one name a worker takes the first file's.
    for (ArrayHeader& array : *found) {
      const bool first = names.insert(array.name).second;
      if (!first || !array.known()) continue;
      GivenArray& given = out.arrays[array.name];
      given.file = file.filename().string();
      given.header = std::move(array);
    }
  }
  out.names.assign(names.begin(), names.end());
  out.set.folder = hasher.finish();
  out.set.path = fs::absolute(folder).lexically_normal().string();
  return out;
}

namespace {

std::string type_text(const std::string& dtype, const std::vector<std::int64_t>& dims) {
  return fmt::format("{}[{}]", dtype, fmt::join(dims, ","));
}

/// What layers take an array for.
struct Uses {
  std::string input;
  bool fits = false;                           ///< one of them takes it
  const domain::Layer* wrong = nullptr;        ///< the first that does not
  const domain::TensorType* wanted = nullptr;  ///< what that one takes
};

std::string misfit_text(const GivenArray& array, const Uses& uses) {
  const ArrayHeader& header = array.header;
  const std::string dtype = domain::dtype_name(uses.wanted->dtype);
  std::string out = fmt::format("the array '{}' of {} is {}, but the input '{}' (of {}) is {}",
                                header.name, array.file, type_text(header.dtype, header.dims),
                                uses.input, uses.wrong->id, type_text(dtype, uses.wanted->dims));
  if (!header.has_type(uses.wanted->dtype))
    out += fmt::format("; save it as {}, with NumPy array.astype('{}')", dtype, dtype);
  if (header.dims != uses.wanted->dims)
    out += "; give it that shape (an open dim of the model is 1 where --dim says nothing)";
  return out;
}

}  // namespace

InputUse input_use(const InputFiles& files, const domain::ModelAnalysis& model) {
  const std::set<std::string> there(files.names.begin(), files.names.end());
  std::set<std::string> made;  // by layers: what no layer makes is an input of the model
  for (const domain::Layer& layer : model.layers)
    made.insert(layer.output_names.begin(), layer.output_names.end());
  InputUse out;
  std::set<std::string> used;
  std::set<std::string> missing;
  std::map<std::string, Uses> typed;
  for (const domain::Layer& layer : model.layers) {
    for (std::size_t i = 0; i < layer.input_names.size(); ++i) {
      const std::string& name = layer.input_names[i];
      const auto plain = there.find(name);
      const auto found = plain != there.end() ? plain : there.find(file_name_of(name));
      ++(found != there.end() ? out.taken : out.drawn);
      if (found != there.end()) used.insert(*found);
      if (found == there.end() && !made.contains(name)) missing.insert(name);
      const auto array = found == there.end() ? files.arrays.end() : files.arrays.find(*found);
      // A layer that cannot be tested takes nothing.
      if (array == files.arrays.end() || !layer.problem.empty() || i >= layer.inputs.size())
        continue;
      Uses& uses = typed[*found];
      const domain::TensorType& wanted = layer.inputs[i].type;
      if (array->second.header.fits(wanted)) {
        uses.fits = true;
      } else if (uses.wrong == nullptr) {
        uses.input = name;
        uses.wrong = &layer;
        uses.wanted = &wanted;
      }
    }
  }
  for (const auto& [name, uses] : typed) {
    if (uses.wrong == nullptr) continue;
    (uses.fits ? out.partly : out.misfits).push_back(misfit_text(files.arrays.at(name), uses));
  }
  out.used.assign(used.begin(), used.end());
  out.missing.assign(missing.begin(), missing.end());
  return out;
}

std::string input_use_text(const InputUse& use) {
  std::string out = fmt::format("{} of {} layer inputs come from {} array(s) of --inputs",
                                use.taken, use.taken + use.drawn, use.used.size());
  if (use.drawn > 0) out += ", the others are random";
  if (!use.missing.empty())
    out += " (model inputs without an array: " + base::join(use.missing) + ")";
  return out;
}

}  // namespace layerfarm::coordinator::app
