#include "coordinator/app/report_choice.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <utility>

#include "coordinator/app/chip_catalog.h"
#include "coordinator/report/assignment.h"
#include "coordinator/report/report_files.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::ErrorCode;
using base::fail;
using base::Result;

namespace {

Result<fs::path> find(const ReportChoice& choice, const std::string& chip, CompilerFile compiler) {
  const std::string name = report::model_name_of(choice.model);
  if (choice.subgraph.any())
    return report::find_subgraph_report(choice.output_dir, name, chip, choice.subgraph);
  return compiler == CompilerFile::Yes ? report::find_config(choice.output_dir, name, chip)
                                       : report::find_report(choice.output_dir, name, chip);
}

}  // namespace

void add_subgraph_ends(CLI::App& app, report::SubgraphEnds& ends) {
  app.add_option("--subgraph-from", ends.from,
                 "With --model: the report of a subgraph, by its first node")
      ->type_name("NODE");
  app.add_option("--subgraph-to", ends.to, "And by its last node")->type_name("NODE");
}

Result<fs::path> find_chosen(const ReportChoice& choice, CompilerFile compiler) {
  if (choice.model.empty()) {
    return fail(ErrorCode::InvalidInput, choice.subgraph.any()
                                             ? "--subgraph-from and --subgraph-to need --model"
                                             : "Either --model or a config path must be provided.");
  }
  const std::string chip = choice.chip.empty() ? std::string() : meant_chip(choice.chip);
  auto found = find(choice, chip, compiler);
  if (!found) return found;
  const auto file = report::load_config(*found);
  if (file && !choice.subgraph.any()) {
    const std::string name = report::model_name_of(choice.model);
    const std::string owner = report::other_owner(*file, *found, {name, std::nullopt});
    if (!owner.empty())
      return fail(ErrorCode::NotFound,
                  "no report of " + name + ": " + found->string() + " is of " + owner);
  }
  if (chip.empty()) return found;
  // One chip's files have no folder of their own, so the name alone does not tell whose they are.
  const std::string there(file ? file->get_text("_chip") : std::string_view());
  if (there.empty() || there == chip) return found;
  return fail(ErrorCode::NotFound,
              "no report of chip " + chip + ": " + found->string() + " is of chip " + there);
}

}  // namespace layerfarm::coordinator::app
