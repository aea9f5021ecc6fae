#include "shared/domain/whole_request.h"

namespace layerfarm::domain {

const Layer* reference_layer(const ModelAnalysis& model, bool check_boundaries) {
  const std::size_t segments = model.segments.size();
  const std::size_t wanted = check_boundaries && segments > 1 ? segments + 1 : segments;
  return segments == 0 || wanted >= model.layers.size() ? nullptr : &model.layers[wanted];
}

base::Digest whole_key(const WholeRequest& request, const ModelAnalysis& model,
                       const InputSet& inputs, const ChipSpec& chip, const ToolIdentity& tool,
                       const ToolIdentity& reference) {
  base::Hasher hasher("layerfarm.whole.1");
  hasher.add(request.check_boundaries);
  if (const Layer* layer = reference_layer(model, request.check_boundaries)) {
    // What a compiled model is given and compared with, under the hardware it runs on.
    hasher.add(execute_key(prepare_key(*layer, inputs, reference), {}, chip, tool));
    hasher.add(compile_key(*layer, chip, ExecutorSpec{}, tool));
  }
  hasher.add(static_cast<std::int64_t>(request.executors.size()));
  for (const std::string& executor : request.executors) hasher.add(executor);
  if (!request.executors.empty()) return hasher.finish();
  for (std::size_t i = 0; i < model.segments.size() && i < model.layers.size(); ++i) {
    const ExecutorSpec* executor = chip.executor(model.segments[i].executor);
    const Layer& layer = model.layers[i];
    hasher.add(executor == nullptr ? base::Digest{} : compile_key(layer, chip, *executor, tool));
    // Equal segments may be wired in different ways.
    for (const auto& names : {layer.input_names, layer.output_names}) {
      hasher.add(static_cast<std::int64_t>(names.size()));
      for (const std::string& name : names) hasher.add(name);
    }
  }
  return hasher.finish();
}

}  // namespace layerfarm::domain
