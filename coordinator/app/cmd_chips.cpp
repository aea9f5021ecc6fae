#include "coordinator/app/cmd_chips.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "coordinator/app/chip_catalog.h"
#include "coordinator/app/worker_probe.h"
#include "shared/base/exit_code.h"
#include "shared/base/places.h"

namespace layerfarm::coordinator::app {
using base::ExitCode;
using nlohmann::ordered_json;

namespace {

struct Listed {
  domain::ChipSpec chip;
  protocol::Ability ability;
};

std::string join_executors(const domain::ChipSpec& chip) {
  std::string out;
  for (const domain::ExecutorSpec& executor : chip.executors)
    out += (out.empty() ? "" : ",") + executor.name;
  return out;
}

/// Evidence of the chip's first executor stands for the chip; the report tells each one's.
std::string evidence_of(const domain::ChipSpec& chip) {
  return std::string(domain::evidence_name(chip.executors.front().evidence));
}

void print_json(const std::vector<Listed>& list) {
  ordered_json out = ordered_json::array();
  for (const Listed& item : list) {
    ordered_json entry;
    entry["chip"] = item.chip.name;
    entry["target"] = item.chip.target;
    entry["toolchain"] = item.chip.toolchain;
    ordered_json executors = ordered_json::array();
    for (const domain::ExecutorSpec& executor : item.chip.executors) {
      executors.push_back(
          {{"name", executor.name}, {"evidence", domain::evidence_name(executor.evidence)}});
    }
    entry["executors"] = std::move(executors);
    entry["found"] = item.ability.found;
    if (item.ability.found) {
      entry["version"] = item.ability.identity.version;
    } else {
      entry["missing"] = item.ability.missing;
      entry["how_to_get"] = item.ability.how_to_get;
    }
    out.push_back(std::move(entry));
  }
  std::cout << out.dump(2) << "\n";
}

void print_table(const std::vector<Listed>& list) {
  const auto row = [](std::string text, std::size_t width) {
    text.resize(std::max(width, text.size()), ' ');
    return text + "  ";
  };
  std::vector<std::vector<std::string>> cells = {
      {"Chip", "Toolchain", "Executors", "Evidence", "Found", "Version"}};
  for (const Listed& item : list) {
    cells.push_back({item.chip.name, item.chip.toolchain, join_executors(item.chip),
                     evidence_of(item.chip), item.ability.found ? "yes" : "no",
                     item.ability.found ? item.ability.identity.version : "-"});
  }
  std::vector<std::size_t> widths(cells[0].size());
  for (const auto& line : cells) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (const auto& line : cells) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) text += row(line[i], widths[i]);
    text.erase(text.find_last_not_of(' ') + 1);
    std::cout << text << "\n";
  }
  for (const Listed& item : list) {
    if (item.ability.found) continue;
    std::cout << "\n"
              << item.chip.name << ": " << item.ability.missing << "\n  " << item.ability.how_to_get
              << "\n";
  }
}

}  // namespace

int cmd_chips(const ChipsOptions& options) {
  const ChipCatalog catalog = ChipCatalog::standard(options.chips_dir);
  std::vector<domain::ChipSpec> chips;
  bool broken = false;
  for (const std::string& name : catalog.names()) {
    auto chip = catalog.chip(name);
    if (!chip) {
      // The others are still worth listing.
      std::cerr << "Error: " << chip.error().text() << "\n";
      broken = true;
      continue;
    }
    chips.push_back(std::move(chip->spec));
  }
  if (chips.empty() && !broken) {
    std::cerr
        << "Error: no chip files found; name their folder with --chips-dir or $LAYERFARM_CHIPS\n";
    return static_cast<int>(ExitCode::Failed);
  }
  auto machine = describe_machine(base::program_folder() / "layerfarm-worker", chips);
  if (!machine) {
    std::cerr << "Error: " << machine.error().text() << "\n";
    return static_cast<int>(ExitCode::Failed);
  }
  std::vector<Listed> list;
  for (std::size_t i = 0; i < chips.size(); ++i)
    list.push_back({std::move(chips[i]), std::move(machine->abilities[i])});
  options.json ? print_json(list) : print_table(list);
  return static_cast<int>(broken ? ExitCode::Failed : ExitCode::Success);
}

}  // namespace layerfarm::coordinator::app
