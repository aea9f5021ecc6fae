#include "coordinator/app/model_changes.h"

#include "coordinator/report/subgraph_reports.h"

namespace layerfarm::coordinator::app {
using base::ErrorCode;
using base::fail;
using base::Result;

Result<void> check_model_changes(const DiscoverOptions& options) {
  const auto invalid = [](const std::string& why) { return fail(ErrorCode::InvalidInput, why); };
  if (auto both = report::check_both_ends({options.subgraph_from, options.subgraph_to}); !both)
    return both;
  if (!options.save_bf16_model.empty() && !options.convert.bf16)
    return invalid("--save-bf16-model needs --auto-convert-bf16, which makes that model");
  if (options.quantize.enabled && (options.convert.bf16 || options.convert.int32)) {
    return invalid(
        std::string(options.convert.bf16 ? "--auto-convert-bf16" : "--auto-convert-int32") +
        " and --quantize exclude each other: a model is converted or quantized");
  }
  return {};
}

void say_notes(const domain::ModelAnalysis& model, const std::string& file,
               const std::string& label, Console& console) {
  for (const std::string& note : model.notes) {
    const std::size_t prefix = note.starts_with('[') ? note.find("] ") : std::string::npos;
    if (prefix == std::string::npos) {
      console.say_verbose("[Model] " + file + ": " + note);
    } else if (label.empty()) {
      console.say(note);
    } else {
      console.say(note.substr(0, prefix + 2) + label + ": " + note.substr(prefix + 2));
    }
  }
}

}  // namespace layerfarm::coordinator::app
