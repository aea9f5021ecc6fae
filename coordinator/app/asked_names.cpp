#include "coordinator/app/asked_names.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "coordinator/app/flag_values.h"
#include "coordinator/plan/plan_request.h"
#include "shared/base/near_names.h"
#include "shared/base/text.h"

namespace layerfarm::coordinator::app {
namespace {

constexpr std::size_t kMostListed = 10;
constexpr std::size_t kMostNear = 3;

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

bool matches_a_layer(const std::string& pattern, std::span<const ReadModel> models) {
  return std::any_of(models.begin(), models.end(), [&pattern](const ReadModel& read) {
    const std::vector<bool> chosen = plan::choose_layers(read.model->layers, {pattern});
    return std::find(chosen.begin(), chosen.end(), true) != chosen.end();
  });
}

/// Commas part the patterns, as with the other lists; but an id may hold one.
std::vector<std::string> patterns_of(const DiscoverOptions& options,
                                     std::span<const ReadModel> models) {
  std::vector<std::string> out;
  for (const std::string& given : options.layers) {
    if (given.find(',') == std::string::npos || matches_a_layer(given, models)) {
      out.push_back(given);
      continue;
    }
    for (std::string& part : split_commas({given})) out.push_back(std::move(part));
  }
  return out;
}

/// `name_of` each layer of the models, each once.
template <class NameOf>
std::vector<std::string> names_of_layers(std::span<const ReadModel> models, NameOf name_of) {
  std::set<std::string> out;
  for (const ReadModel& read : models) {
    for (const domain::Layer& layer : read.model->layers) out.insert(name_of(layer));
  }
  return {out.begin(), out.end()};
}

void check_layers(std::span<const ReadModel> models, AskedNames& out) {
  if (out.layers.empty()) return;
  const auto ids = names_of_layers(models, [](const auto& layer) { return layer.id; });
  if (ids.empty()) return;  // why a model has no layers is said elsewhere
  for (const std::string& pattern : out.layers) {
    if (matches_a_layer(pattern, models)) continue;
    out.errors.push_back("--layers " + pattern + " matches no layer of " +
                         (models.size() == 1 ? models[0].name : std::string("any of the models")) +
                         "; nearest: " + base::join(base::nearest(pattern, ids, kMostNear)));
  }
}

void check_ops(const DiscoverOptions& options, std::span<const ReadModel> models, AskedNames& out) {
  if (options.skip_ops.empty()) return;
  const auto types = names_of_layers(models, [](const auto& layer) { return layer.op_type; });
  if (types.empty()) return;
  for (const std::string& op : options.skip_ops) {
    const bool known = std::any_of(types.begin(), types.end(), [&op](const std::string& type) {
      return base::equal_any_case(op, type);
    });
    if (known) continue;
    out.lines.push_back("[SkipOps] Warning: no layer is of type '" + op +
                        "'; nearest: " + base::join(base::nearest(op, types, kMostNear)));
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
  out.layers = patterns_of(options, models);
  check_layers(models, out);
  check_ops(options, models, out);
  return out;
}

bool asks_names(const DiscoverOptions& options, const InputFiles& inputs) {
  return !options.dims.empty() || !inputs.names.empty() || !options.layers.empty() ||
         !options.skip_ops.empty();
}

}  // namespace layerfarm::coordinator::app
