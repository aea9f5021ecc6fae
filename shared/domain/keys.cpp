#include "shared/domain/keys.h"

namespace layerfarm::domain {
namespace {

using base::Digest;
using base::Hasher;

void add(Hasher& hasher, const ToolIdentity& tool) {
  hasher.add(tool.version).add(tool.files).add(tool.cpu);
}

void add(Hasher& hasher, const Options& options) {
  hasher.add(static_cast<std::int64_t>(options.size()));
  for (const auto& [key, value] : options) hasher.add(key).add(value);
}

}  // namespace

Digest analyze_key(const Digest& model_file, const AnalyzeRequest& request,
                   const ToolIdentity& reader) {
  Hasher hasher("layerfarm.analyze.2");
  hasher.add(model_file);
  hasher.add(static_cast<std::int64_t>(request.dims.size()));
  for (const auto& [name, value] : request.dims) hasher.add(name).add(value);
  hasher.add(request.convert.bf16).add(request.convert.int32);
  hasher.add(request.subgraph.has_value());
  if (request.subgraph) hasher.add(request.subgraph->from).add(request.subgraph->to);
  hasher.add(request.quantize.has_value());
  if (request.quantize) {
    const Quantization& quantize = *request.quantize;
    hasher.add(static_cast<std::int64_t>(quantize.format))
        .add(quantize.per_channel)
        .add(quantize.full_integer)
        .add(static_cast<std::int64_t>(quantize.samples))
        .add(quantize.calibration);
  }
  hasher.add(static_cast<std::int64_t>(request.unit));
  hasher.add(static_cast<std::int64_t>(request.assignment.size()));
  for (const std::string& executor : request.assignment) hasher.add(executor);
  add(hasher, reader);
  return hasher.finish();
}

Digest prepare_key(const Layer& layer, const InputSet& inputs, const ToolIdentity& reference) {
  Hasher hasher("layerfarm.prepare.1");
  hasher.add(kRulesVersion).add(layer.signature);
  hasher.add(static_cast<std::int64_t>(layer.draw_order.size()));
  for (const std::uint32_t index : layer.draw_order) hasher.add(static_cast<std::int64_t>(index));
  // Ranges follow from the whole layer for most inputs, but an index range may come from its place
  // in the model.
  for (const InputSpec& input : layer.inputs) {
    hasher.add(input.lo).add(input.hi).add(static_cast<std::int64_t>(input.values.size()));
    for (const double value : input.values) hasher.add(value);
  }
  hasher.add(static_cast<std::int64_t>(inputs.seed)).add(inputs.folder);
  if (!inputs.folder.is_zero()) {
    for (const std::string& name : layer.input_names) hasher.add(name);
  }
  add(hasher, reference);
  // What is not compared is a part of how a run is judged, and the key of that rests on this one.
  // Layers without such outputs keep the keys that they had.
  for (const std::uint32_t index : layer.open_outputs) hasher.add(static_cast<std::int64_t>(index));
  return hasher.finish();
}

Digest compile_key(const Layer& layer, const ChipSpec& chip, const ExecutorSpec& executor,
                   const ToolIdentity& tool) {
  Hasher hasher("layerfarm.compile.1");
  hasher.add(layer.signature).add(chip.toolchain).add(chip.target).add(executor.name);
  add(hasher, chip.options);
  add(hasher, executor.options);
  add(hasher, tool);
  return hasher.finish();
}

Digest execute_key(const Digest& prepare, const Digest& compile, const ChipSpec& chip,
                   const ToolIdentity& tool) {
  // 2: sizes of outputs whose shape depends on values are judged by the reference's; earlier runs
  // were refused for them.
  Hasher hasher("layerfarm.execute.2");
  hasher.add(kRulesVersion).add(prepare).add(compile).add(chip.hw_type);
  add(hasher, tool);
  return hasher.finish();
}

Digest recompare_key(const Digest& execute, const Tolerance& tolerance) {
  Hasher hasher("layerfarm.recompare.1");
  hasher.add(execute)
      .add(tolerance.fp_avg_tol)
      .add(tolerance.fp_max_tol)
      .add(tolerance.fp_abs_tol_frac);
  // Only where it differs, so that comparisons by the usual bound keep the keys that they had.
  if (tolerance.integer_bound() != kIntegerTolerance)
    hasher.add(static_cast<std::int64_t>(tolerance.integer_bound()));
  return hasher.finish();
}

Digest time_key(const Digest& execute, const std::string& place, int runs) {
  Hasher hasher("layerfarm.time.1");
  hasher.add(execute).add(place).add(runs);
  return hasher.finish();
}

}  // namespace layerfarm::domain
