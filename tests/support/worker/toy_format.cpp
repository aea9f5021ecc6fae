#include "tests/support/worker/toy_format.h"

#include <sstream>

#include "shared/base/files.h"

namespace layerfarm::test {

using worker::toolchain::FormatAnswer;
using worker::toolchain::FormatLocations;
using worker::toolchain::StepContext;

FormatAnswer ToyFormat::layers(const domain::AnalyzeRequest& request, StepContext& context) {
  const auto text = base::read_file(request.model_path);
  if (!text)
    return {.ending = domain::Ending::Refused,
            .diagnostic = {.where = "import", .cause = "refused", .text = text.error().text()}};
  FormatAnswer out{.ending = domain::Ending::Done};
  out.analysis.model_digest = base::digest_of(*text);
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    domain::Layer layer;
    std::string output;
    if (!(words >> layer.op_type >> output))
      return {
          .ending = domain::Ending::Refused,
          .diagnostic = {
              .where = "import", .cause = "refused", .text = "a line without operator and output"}};
    layer.id = layer.op_type + "_" + output;
    layer.orig_index = static_cast<std::uint32_t>(out.analysis.layers.size());
    layer.node_index = out.analysis.operators++;
    std::string module = layer.op_type;
    for (std::string input; words >> input;) {
      layer.draw_order.push_back(static_cast<std::uint32_t>(layer.inputs.size()));
      layer.inputs.push_back({.type = {domain::DType::Float32, {4}}});
      layer.input_names.push_back(input);
      module += " i" + std::to_string(layer.inputs.size() - 1);
    }
    layer.outputs.push_back({domain::DType::Float32, {4}});
    layer.output_names.push_back(output);
    const auto blob = context.blobs.put(module);
    if (!blob) return {};
    layer.module = {.format = "toy", .blob = *blob, .data = {}};
    layer.signature = base::Hasher("toy").add(module).finish();
    layer.loose_signature = layer.signature;
    out.analysis.layers.push_back(std::move(layer));
  }
  return out;
}

FormatLocations ToyFormat::locations(const domain::AnalyzeRequest& request, const FormatAnswer&,
                                     StepContext&) {
  const auto text = base::read_file(request.model_path);
  FormatLocations out{
      .ending = domain::Ending::Done, .locations = {}, .importer = "toy 1", .problem = {}};
  std::istringstream lines(text.value_or(""));
  std::uint32_t number = 0;
  for (std::string op, line; std::getline(lines, line);) {
    std::istringstream(line) >> op;
    out.locations.push_back({++number, 1, op});
  }
  return out;
}

}  // namespace layerfarm::test
