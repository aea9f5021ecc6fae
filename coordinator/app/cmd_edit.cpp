#include "coordinator/app/cmd_edit.h"

#include <iostream>
#include <vector>

#include "coordinator/app/report_choice.h"
#include "coordinator/report/compiler_map.h"
#include "coordinator/report/edit.h"
#include "coordinator/report/folder_lock.h"
#include "coordinator/report/report_files.h"
#include "coordinator/report/texts.h"
#include "coordinator/report/view_text.h"
#include "shared/base/exit_code.h"
#include "shared/base/files.h"
#include "shared/base/text.h"

namespace layerfarm::coordinator::app {
namespace {

namespace fs = std::filesystem;

int code(base::ExitCode exit_code) { return static_cast<int>(exit_code); }

base::Result<fs::path> path_of(const EditOptions& options) {
  if (!options.config.empty()) {
    std::error_code ignored;
    if (fs::exists(options.config, ignored)) return fs::path(options.config);
    return base::fail(base::ErrorCode::NotFound, "Config file not found: " + options.config);
  }
  return find_chosen({options.model, options.output_dir, options.chip, options.subgraph},
                     CompilerFile::No);
}

base::Result<report::json::Value> load_report(const fs::path& path) {
  auto file = report::load_config(path);
  if (file && report::is_compiler_file(*file)) {
    return base::fail(base::ErrorCode::InvalidInput,
                      "this is a compiler JSON, edit needs the report JSON. Expected: " +
                          report::report_path_of(path).string() + ", found: " + path.string());
  }
  return file;
}

/// Whether the compiler file is another one now.
base::Result<bool> write_files(const fs::path& path, const report::json::Value& config,
                               std::ostream& err) {
  if (const std::size_t count = report::json::count_unwritable(config); count > 0) {
    err << "Note: " << count
        << " number(s) of the report are NaN or infinite, which JSON has not: they are null now\n";
  }
  if (auto done = base::write_file_atomically(path, report::json::text_of(config), base::Sync::Yes);
      !done)
    return base::fail(std::move(done.error()));
  const report::CompilerMap map = report::compiler_map(config);
  for (const std::string& warning : map.warnings)
    err << "[CompilerJSON] Warning: " << warning << "\n";
  const fs::path compiler = report::compiler_path_of(path);
  if (const auto there = base::read_file(compiler); there && *there == map.text) return false;
  if (auto done = base::write_file_atomically(compiler, map.text, base::Sync::Yes); !done)
    return base::fail(std::move(done.error()));
  return true;
}

/// Selects, changes and writes, all under the folder's lock, so that a run that goes on loses
/// nothing and sees the edit.
base::Result<int> change(const fs::path& path, const EditOptions& options, std::ostream& out,
                         std::ostream& err) {
  auto lock = report::FolderLock::take(path.parent_path());
  if (!lock) return base::fail(std::move(lock.error()));
  auto config = load_report(path);
  if (!config) return base::fail(std::move(config.error()));

  const std::vector<std::string> layers = report::select_layers(*config, options.layer);
  if (layers.empty()) {
    err << "Error: No layers match '" << options.layer
        << "'.\nAvailable layers: " << base::printable(report::some_layers(*config)) << "\n";
    return code(base::ExitCode::Failed);
  }
  const auto checked = report::check_edit(
      *config, {options.executor, options.tolerance_avg, options.tolerance_max,
                options.tolerance_abs_frac, options.tolerance_int, options.automatic});
  if (!checked) return base::fail(checked.error());
  const report::Edit& edit = *checked;
  if (layers.size() > 1) {
    out << "Batch edit: " << layers.size() << " layer(s) match '" << options.layer << "'\n";
    for (const std::string& layer : layers)
      out << "  - " << base::printable(report::one_line(layer)) << "\n";
  }
  if (edit.executor || edit.has_bounds()) {
    err << base::printable(report::rejudged_lines(report::apply_edit(*config, layers, edit)))
        << base::printable(report::idle_bound_lines(*config, layers, edit));
    const auto changed = write_files(path, *config, err);
    if (!changed) return base::fail(changed.error());
    if (edit.executor && !*changed) err << "Note: the compiler JSON holds what it held before\n";
  }
  out << base::printable(
      report::edit_lines(*config, layers, edit, report::compiler_path_of(path).string()));
  if (edit.executor) err << base::printable(report::unplaced_lines(*config, layers));
  return code(base::ExitCode::Success);
}

base::Result<int> edit_or_list(const EditOptions& options, std::ostream& out, std::ostream& err) {
  const auto path = path_of(options);
  if (!path) return base::fail(path.error());
  if (options.list) {
    const auto config = load_report(*path);
    if (!config) return base::fail(config.error());
    out << base::printable(report::list_layers(*config, *options.list));
    return code(base::ExitCode::Success);
  }
  if (options.layer.empty()) {
    return base::fail(base::ErrorCode::InvalidInput,
                      "--layer is required (a layer id, a part of one, a pattern, or ALL); "
                      "--list shows the layers.");
  }
  if (options.recover) {
    // A file that edit refuses is refused before anything is brought up to date.
    if (auto config = load_report(*path); !config) return base::fail(std::move(config.error()));
    if (auto done = options.recover(*path); !done) return base::fail(std::move(done.error()));
  }
  return change(*path, options, out, err);
}

}  // namespace

int cmd_edit(const EditOptions& options, std::ostream& out, std::ostream& err) {
  const auto result = edit_or_list(options, out, err);
  if (result) return *result;
  err << "Error: " << result.error().text() << "\n";
  return code(base::ExitCode::Failed);
}

int cmd_edit(const EditOptions& options) { return cmd_edit(options, std::cout, std::cerr); }

}  // namespace layerfarm::coordinator::app
