#include "coordinator/app/chip_choice.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "coordinator/app/chip_catalog.h"
#include "shared/base/places.h"
#include "shared/base/text.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::ErrorCode;
using base::fail;
using base::Result;

fs::path worker_program() { return base::program_folder() / "layerfarm-worker"; }

namespace {

/// Every chip that this machine can use now, for people whose chip it cannot.
std::string usable_chips(const ChipCatalog& catalog) {
  std::vector<domain::ChipSpec> chips;
  for (const std::string& name : catalog.names()) {
    auto chip = catalog.chip(name);
    if (chip && !is_stand_in(chip->spec)) chips.push_back(std::move(chip->spec));
  }
  std::vector<std::string> found;
  if (const auto machine = describe_machine(worker_program(), chips)) {
    for (std::size_t i = 0; i < chips.size(); ++i) {
      if (machine->abilities[i].found) found.push_back(chips[i].name);
    }
  }
  return found.empty() ? "none; see `layerfarm chips`" : base::join(found);
}

/// What is missing for a chip of this request, and what to do.
std::string missing_text(const std::string& request, const CatalogChip& chip,
                         const protocol::Ability& ability, const ChipCatalog& catalog) {
  const std::string usable = "\n  Chips that this machine can use now: " + usable_chips(catalog);
  const std::string& name = chip.spec.name;
  if (!chip.known) {
    // Who misspelt a name is not helped by the tools of another chip.
    if (const auto meant = catalog.likely_meant(name); !meant.empty()) {
      return "no chip file is called '" + name + "'; did you mean " + base::join(meant, " or ") +
             "? (As a torq target it cannot be used here: " + ability.missing + ")" + usable;
    }
  }
  std::string out;
  if (is_unnamed(request)) {
    out = "no chip was named, and the default, " + name + " (" + chip.spec.toolchain + "), ";
  } else if (!chip.known) {
    out = "no chip file is called '" + name +
          "' (nearest: " + base::join(catalog.nearest(name, 3)) + "), and as a torq target it ";
  } else {
    out = "chip " + name + " ";
  }
  out += "cannot be used here: " + ability.missing;
  if (!ability.how_to_get.empty()) out += "\n  " + ability.how_to_get;
  if (is_unnamed(request)) out += "\n  --chip NAME or the variable LAYERFARM_CHIP names another";
  return out + usable;
}

}  // namespace

bool takes_map(const ChosenChips& chosen, const domain::ChipSpec& chip) {
  const base::Digest digest = base::digest_of(domain::chip_json(chip));
  const auto& abilities = chosen.machine.abilities;
  return std::any_of(abilities.begin(), abilities.end(), [&](const protocol::Ability& ability) {
    return ability.chip == digest && ability.takes_map;
  });
}

void say_missing_dumps(const ToolOptions& options, const ChosenChips& chosen, Console& console) {
  if (options.dump_folder.empty()) return;
  for (const auto& chip : chosen.chips) {
    if (!can_dump_ir(chip->spec)) {
      console.say("[DebugIR] chip " + chip->spec.name + ": its toolchain " + chip->spec.toolchain +
                  " has no intermediate forms to write");
    }
  }
}

Result<ChosenChips> find_chips(const std::string& names, const std::string& chips_dir,
                               const ToolOptions& options) {
  std::error_code error;
  if (!chips_dir.empty() && !fs::is_directory(chips_dir, error)) {
    return fail(ErrorCode::NotFound, "--chips-dir: no folder " + chips_dir);
  }
  const auto selection = ChipCatalog::standard(chips_dir, options.hw_type).select(names);
  if (!selection) return fail(selection.error());
  ChosenChips out;
  std::vector<domain::ChipSpec> specs;
  for (const CatalogChip& chip : selection->chips) {
    auto spec = with_tool_options(chip.spec, options);
    if (!spec) return fail(spec.error());
    out.own_hw_type = out.own_hw_type && spec->hw_type == chip.own_hw_type;
    specs.push_back(std::move(*spec));
  }
  auto machine = describe_machine(worker_program(), specs);
  if (!machine) return fail(machine.error());
  out.machine = std::move(*machine);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const protocol::Ability& ability = out.machine.abilities[i];
    if (!ability.found && selection->only_found) continue;
    if (!ability.found)
      return fail(ErrorCode::Unavailable, missing_text(names, selection->chips[i], ability,
                                                       ChipCatalog::standard(chips_dir)));
    auto chip = std::make_shared<plan::PlanChip>();
    chip->spec = specs[i];
    chip->tool = ability.identity;
    chip->needs_prepare = ability.needs_prepare;
    chip->needs_compile = ability.needs_compile;
    chip->batch = ability.batch;
    chip->place = out.machine.cpu_model;
    out.chips.push_back(std::move(chip));
  }
  if (out.chips.empty())
    return fail(ErrorCode::Unavailable,
                "no chip of this machine can be used; see `layerfarm chips`");
  return out;
}

}  // namespace layerfarm::coordinator::app
