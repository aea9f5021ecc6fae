#include "coordinator/app/chip_catalog.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>

#include "shared/base/files.h"
#include "shared/base/near_names.h"
#include "shared/base/places.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::ErrorCode;
using base::fail;
using base::Result;

namespace {

constexpr std::string_view kGroupSuffix = ".group";
constexpr std::string_view kChipSuffix = ".json";
/// What `default` means when nothing else is set (spec section 23).
constexpr std::string_view kDefaultChip = "SL2610";
constexpr const char* kSimulator = "sim";
constexpr std::string_view kTorq = "torq";

std::string trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    if (std::string word = trim(part); !word.empty()) out.push_back(std::move(word));
  }
  return out;
}

/// A name becomes a file name and a word of reports, so it is made of letters, digits and few
/// signs. Colons: a torq target may spell itself out.
bool plain_name(const std::string& name) {
  if (name.empty() || name.front() == '.' || name.front() == '-') return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == ':' || c == '+';
  });
}

/// A target of the torq compiler that no file describes: passed on as it is, with that tool's
/// executors.
domain::ChipSpec torq_target(const std::string& name, const std::string& hw_type) {
  domain::ChipSpec chip;
  chip.name = name;
  chip.target = name;
  chip.toolchain = "torq";
  chip.hw_type = hw_type.empty() ? kSimulator : hw_type;
  for (const char* executor : {"nss", "css", "host"}) {
    domain::ExecutorSpec spec;
    spec.name = executor;
    spec.evidence =
        chip.hw_type == kSimulator ? domain::Evidence::Emulator : domain::Evidence::Hardware;
    chip.executors.push_back(spec);
  }
  return chip;
}

/// A chip file as if it named this run-time hardware type. Read again from the text: where a file
/// says something `by_hw_type`, that has taken the place of its other words already.
Result<domain::ChipSpec> on_hw_type(const domain::ChipSpec& chip, const std::string& text,
                                    const std::string& path, const std::string& hw_type) {
  if (hw_type == chip.hw_type) return chip;
  if (chip.hw_type.empty() && chip.toolchain != kTorq) {
    return fail(ErrorCode::InvalidInput, "--torq-hw-type: chip " + chip.name +
                                             " has no run-time hardware types (toolchain " +
                                             chip.toolchain + ")");
  }
  auto document = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  document["runtime_hw_type"] = hw_type;
  return domain::parse_chip(document.dump(), path);
}

}  // namespace

std::string meant_chip(const std::string& name) {
  if (name != "default") return name;
  return is_unnamed(name) ? std::string(kDefaultChip) : base::environment("LAYERFARM_CHIP");
}

bool is_unnamed(const std::string& request) {
  const std::string other = base::environment("LAYERFARM_CHIP");
  return request == "default" && (other.empty() || other == "default");
}

bool is_stand_in(const domain::ChipSpec& chip) {
  return std::all_of(chip.executors.begin(), chip.executors.end(), [](const auto& executor) {
    return executor.evidence == domain::Evidence::StandIn;
  });
}

ChipCatalog ChipCatalog::standard(const std::string& chips_dir, const std::string& hw_type) {
  std::vector<fs::path> folders;
  if (!chips_dir.empty()) folders.emplace_back(chips_dir);
  if (const std::string from_environment = base::environment("LAYERFARM_CHIPS");
      !from_environment.empty()) {
    folders.emplace_back(from_environment);
  }
  folders.push_back(base::program_folder().parent_path() / "share" / "layerfarm" / "configs" /
                    "chips");
  return ChipCatalog(std::move(folders), hw_type);
}

std::vector<std::string> ChipCatalog::names() const {
  std::set<std::string> out;
  for (const fs::path& folder : folders_) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() == kChipSuffix) out.insert(entry.path().stem().string());
    }
  }
  return {out.begin(), out.end()};
}

Result<CatalogChip> ChipCatalog::chip(const std::string& name) const {
  if (!plain_name(name))
    return fail(ErrorCode::InvalidInput, "'" + name + "' is no name of a chip");
  for (const fs::path& folder : folders_) {
    const fs::path path = folder / (name + std::string(kChipSuffix));
    auto text = base::read_file(path);
    if (!text && text.error().code == ErrorCode::NotFound) continue;
    if (!text) return fail(text.error());
    auto spec = domain::parse_chip(*text, path.string());
    if (!spec) return fail(spec.error());
    const std::string own = spec->hw_type;
    if (!hw_type_.empty()) spec = on_hw_type(*spec, *text, path.string(), hw_type_);
    if (!spec) return fail(spec.error());
    return CatalogChip{std::move(*spec), true, own};
  }
  return CatalogChip{torq_target(name, hw_type_), false, kSimulator};
}

Result<std::vector<std::string>> ChipCatalog::group(const std::string& name) const {
  if (!plain_name(name))
    return fail(ErrorCode::InvalidInput, "'" + name + "' is no name of a chip group");
  for (const fs::path& folder : folders_) {
    auto text = base::read_file(folder / name);
    if (!text && text.error().code == ErrorCode::NotFound) continue;
    if (!text) return fail(text.error());
    std::vector<std::string> out;
    for (const std::string& line : split(*text, '\n')) {
      if (std::string member = trim(line.substr(0, line.find('#'))); !member.empty())
        out.push_back(std::move(member));
    }
    if (out.empty())
      return fail(ErrorCode::InvalidInput, (folder / name).string() + ": the group names no chip");
    return out;
  }
  if (name == "default.group") return std::vector<std::string>{"default"};
  std::string message = "no chip group '" + name + "'";
  for (std::size_t i = 0; i < folders_.size(); ++i)
    message += (i == 0 ? "; looked in " : ", ") + folders_[i].string();
  return fail(ErrorCode::NotFound, message);
}

Result<ChipSelection> ChipCatalog::select(const std::string& request) const {
  ChipSelection out;
  std::set<std::string> wanted;
  const auto add = [&wanted](const std::string& name) { wanted.insert(meant_chip(name)); };
  for (const std::string& word : split(request, ',')) {
    if (word == "all") {
      std::vector<std::string> every = names();
      // A file that cannot be read is kept: its error is said below.
      std::erase_if(every, [catalog = ChipCatalog(folders_)](const std::string& name) {
        const auto found = catalog.chip(name);
        return found && is_stand_in(found->spec);
      });
      std::vector<std::string> latest;
      std::copy_if(every.begin(), every.end(), std::back_inserter(latest),
                   [](const std::string& name) { return name.ends_with("latest"); });
      out.only_found = latest.empty();
      for (const std::string& name : latest.empty() ? every : latest) wanted.insert(name);
    } else if (word.ends_with(kGroupSuffix)) {
      auto members = group(word);
      if (!members) return fail(members.error());
      for (const std::string& name : *members) add(name);
    } else {
      add(word);
    }
  }
  if (wanted.empty()) return fail(ErrorCode::InvalidInput, "no chips in '" + request + "'");
  for (const std::string& name : wanted) {
    auto found = chip(name);
    if (!found) return fail(found.error());
    out.chips.push_back(std::move(*found));
  }
  return out;
}

std::vector<std::string> ChipCatalog::likely_meant(const std::string& name) const {
  return base::likely_meant(name, names());
}

std::vector<std::string> ChipCatalog::nearest(const std::string& name, std::size_t count) const {
  return base::nearest(name, names(), count);
}

}  // namespace layerfarm::coordinator::app
