#include "coordinator/app/cmd_compare.h"

#include <filesystem>
#include <iostream>

#include "coordinator/app/report_choice.h"
#include "coordinator/report/compare.h"
#include "coordinator/report/report_files.h"
#include "coordinator/report/view_text.h"
#include "shared/base/text.h"

namespace layerfarm::coordinator::app {
namespace {

namespace fs = std::filesystem;

constexpr int kSame = 0;
constexpr int kDifferent = 1;
constexpr int kUnusable = 2;

base::Result<fs::path> path_of(const std::string& given, const CompareOptions& options) {
  std::error_code ignored;
  if (!fs::is_directory(given, ignored)) {
    if (fs::exists(given, ignored)) return fs::path(given);
    return base::fail(base::ErrorCode::NotFound, "Config file not found: " + given);
  }
  if (options.model.empty()) {
    return base::fail(base::ErrorCode::InvalidInput,
                      given + " is a folder: name one of its files, or the model with --model");
  }
  return find_chosen({options.model, given, options.chip, options.subgraph}, CompilerFile::Yes);
}

/// A file that says what it is, or the reason why it cannot be compared.
base::Result<report::json::Value> load(const fs::path& path, std::ostream& err) {
  auto file = report::load_config(path);
  if (!file) return file;
  const auto kind = report::kind_of(*file, path.string());
  if (!kind) return base::fail(kind.error());
  if (*kind == report::FileKind::Report && report::is_unfinished(*file)) {
    err << "Note: the run that wrote " << path.string()
        << " is still going on, or was ended before its end\n";
  }
  return file;
}

base::Result<int> compare(const CompareOptions& options, std::ostream& out, std::ostream& err) {
  const auto path_a = path_of(options.a, options);
  if (!path_a) return base::fail(path_a.error());
  const auto path_b = path_of(options.b, options);
  if (!path_b) return base::fail(path_b.error());
  const auto a = load(*path_a, err);
  if (!a) return base::fail(a.error());
  const auto b = load(*path_b, err);
  if (!b) return base::fail(b.error());
  const auto differences = report::compare(*a, *b, options.time_threshold_percent);
  if (!differences) return base::fail(differences.error());
  const report::ComparedNames names{path_a->string(), path_b->string()};
  if (options.json) {
    out << report::json::text_of(report::compare_json(*differences, names)) << "\n";
  } else {
    out << base::printable(report::compare_text(*differences, names));
  }
  return differences->count() == 0 ? kSame : kDifferent;
}

}  // namespace

int cmd_compare(const CompareOptions& options, std::ostream& out, std::ostream& err) {
  const auto result = compare(options, out, err);
  if (!result) {
    err << "Error: " << result.error().text() << "\n";
    return kUnusable;
  }
  // A comparison that did not arrive says nothing, least of all that the files are different.
  return out.flush() ? *result : kUnusable;
}

int cmd_compare(const CompareOptions& options) {
  return cmd_compare(options, std::cout, std::cerr);
}

}  // namespace layerfarm::coordinator::app
