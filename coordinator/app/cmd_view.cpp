#include "coordinator/app/cmd_view.h"

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "coordinator/app/report_choice.h"
#include "coordinator/report/compiler_map.h"
#include "coordinator/report/edit.h"
#include "coordinator/report/report_files.h"
#include "coordinator/report/texts.h"
#include "coordinator/report/view_text.h"
#include "shared/base/exit_code.h"
#include "shared/base/text.h"

namespace layerfarm::coordinator::app {
namespace {

namespace fs = std::filesystem;

int code(base::ExitCode exit_code) { return static_cast<int>(exit_code); }

/// What is to be shown: the file, and the layer when one is named.
struct Target {
  fs::path path;
  std::string layer;
};

base::Result<Target> target_of(const ViewOptions& options) {
  std::error_code ignored;
  Target target{options.config, options.layer};
  const bool is_layer = !options.model.empty() && !options.config.empty() &&
                        options.layer.empty() && !fs::exists(options.config, ignored);
  if (is_layer) target = {fs::path(), options.config};
  if (!target.path.empty()) {
    if (fs::exists(target.path, ignored)) return target;
    return base::fail(base::ErrorCode::NotFound, "Config file not found: " + target.path.string());
  }
  auto found = find_chosen({options.model, options.output_dir, options.chip, options.subgraph},
                           CompilerFile::Yes);
  if (!found) return base::fail(std::move(found.error()));
  target.path = std::move(*found);
  return target;
}

/// The layers that are meant: the one of this very id, else what `discover --layers` and `edit`
/// would select. The original knows exact ids only.
std::vector<std::string> layers_of(const report::json::Value& file, const std::string& layer,
                                   const ViewOptions& options) {
  const report::json::Value* ops = file.get("ops");
  if (ops != nullptr && ops->get(layer) != nullptr) return {layer};
  return options.compat ? std::vector<std::string>() : report::select_layers(file, layer);
}

int show(const report::json::Value& file, const Target& target, const ViewOptions& options,
         std::ostream& out, std::ostream& err) {
  if (report::is_compiler_file(file)) {
    out << base::printable(report::view_compiler(file));
    return code(base::ExitCode::Success);
  }
  if (report::is_unfinished(file)) {
    err << "Note: the run that wrote " << target.path.string()
        << " is still going on, or was ended before its end; the next discover or edit completes "
           "it.\n";
  }
  if (target.layer.empty()) {
    out << base::printable(
        report::view_summary(file, options.colour ? report::Colour::Yes : report::Colour::No));
    return code(base::ExitCode::Success);
  }
  const std::vector<std::string> layers = layers_of(file, target.layer, options);
  for (const std::string& layer : layers)
    out << base::printable(report::view_layer(file, layer).value_or(""));
  if (!layers.empty()) return code(base::ExitCode::Success);
  out << "Layer '" << base::printable(report::one_line(target.layer))
      << "' not found.\nAvailable layers: " << base::printable(report::some_layers(file)) << "\n";
  return code(options.compat ? base::ExitCode::Success : base::ExitCode::Failed);
}

}  // namespace

int cmd_view(const ViewOptions& options, std::ostream& out, std::ostream& err) {
  const auto target = target_of(options);
  if (!target) {
    err << "Error: " << target.error().text() << "\n";
    return code(base::ExitCode::Failed);
  }
  const auto file = report::load_config(target->path);
  if (file) return show(*file, *target, options, out, err);
  err << "Error: " << file.error().text() << "\n";
  if (!options.compat) return code(base::ExitCode::Failed);
  return show(report::json::Object(), *target, options, out, err);
}

int cmd_view(const ViewOptions& options) { return cmd_view(options, std::cout, std::cerr); }

}  // namespace layerfarm::coordinator::app
