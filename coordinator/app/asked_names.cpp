#include "coordinator/app/asked_names.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "shared/base/text.h"

namespace layerfarm::coordinator::app {
namespace {

constexpr std::size_t kMostListed = 10;

/// The first of them, for a line that people read.
std::string listed(std::vector<std::string> words, std::string_view separator = ", ") {
  const bool more = words.size() > kMostListed;
  if (more) words.resize(kMostListed);
  if (more) words.emplace_back("...");
  return base::join(words, separator);
}

void check_dims(const DiscoverOptions& options, std::span<const ReadModel> models,
                AskedNames& out) {
  for (const auto& [name, value] : options.dims) {
    std::vector<std::string> lacking;
    for (const ReadModel& read : models) {
      const auto& names = read.model->dim_names;
      if (std::binary_search(names.begin(), names.end(), name)) continue;
      lacking.push_back(read.name + ": no input has a dim named '" + name + "' (" +
                        (names.empty() ? "none of its dims has a name"
                                       : "its dims with names: " + listed(names)) +
                        ")");
    }
    if (models.empty() || lacking.size() < models.size()) continue;
    const std::string error = "--dim " + name + " would change nothing; " + listed(lacking, "; ");
    if (std::find(out.errors.begin(), out.errors.end(), error) == out.errors.end())
      out.errors.push_back(error);
  }
}

}  // namespace

AskedNames check_inputs(const InputFiles& inputs, std::span<const ReadModel> models) {
  AskedNames out;
  if (inputs.set.folder.is_zero() || models.empty()) return out;
  std::set<std::string> used;
  std::vector<std::string> asked;
  for (const ReadModel& read : models) {
    const InputUse use = input_use(inputs, *read.model);
    used.insert(use.used.begin(), use.used.end());
    asked.push_back(read.name + " has the inputs " +
                    (use.missing.empty() ? "(none)" : listed(use.missing)));
    for (const std::string& misfit : use.misfits)
      out.errors.push_back("--inputs: " + read.name + ": " + misfit);
    if (inputs.all_known) out.lines.push_back("[Inputs] " + read.name + ": " + input_use_text(use));
    for (const std::string& misfit : use.partly)
      out.lines.push_back("[Inputs] " + read.name + ": " + misfit + "; other layers take it");
  }
  if (!inputs.all_known) return out;
  std::vector<std::string> unused;
  std::set_difference(inputs.names.begin(), inputs.names.end(), used.begin(), used.end(),
                      std::back_inserter(unused));
  if (used.empty()) {
    out.errors.push_back("--inputs: no layer has an input of a name that " + inputs.set.path +
                         " holds (" + listed(inputs.names) + "); " + listed(asked, "; "));
  } else if (!unused.empty()) {
    out.lines.push_back("[Inputs] no layer has an input of the name " + listed(unused) +
                        "; nothing is taken from there");
  }
  return out;
}

AskedNames check_asked_names(const DiscoverOptions& options, const InputFiles& inputs,
                             std::span<const ReadModel> models) {
  AskedNames out = check_inputs(inputs, models);
  check_dims(options, models, out);
  return out;
}

}  // namespace layerfarm::coordinator::app
