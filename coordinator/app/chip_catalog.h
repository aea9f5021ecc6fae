// ChipCatalog: from what the user wrote after --chip to chip descriptions (spec section 23,
// "Chips"; design.md section 8).
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "shared/base/result.h"
#include "shared/domain/chip.h"

namespace layerfarm::coordinator::app {

/// One chip of a request. `known` is false for a name that no file describes: it is a torq target
/// as it stands.
struct CatalogChip {
  domain::ChipSpec spec;
  bool known = true;
  std::string own_hw_type;  ///< what the file names, whatever the catalog puts in its place
};

/// The chip that a name means: `default` is `$LAYERFARM_CHIP`, else SL2610.
[[nodiscard]] std::string meant_chip(const std::string& name);

/// Whether the request is `default` and `$LAYERFARM_CHIP` names none either.
[[nodiscard]] bool is_unnamed(const std::string& request);
/// Whether none of its executors tests anything: such a chip measures layerfarm itself, so it is
/// used where it is named and offered nowhere.
[[nodiscard]] bool is_stand_in(const domain::ChipSpec& chip);

/// What a request expands to.
struct ChipSelection {
  std::vector<CatalogChip> chips;  ///< sorted by name, each once
  /// `all` where no name ends in "latest": the caller keeps those whose toolchain this machine has.
  bool only_found = false;
};

class ChipCatalog {
 public:
  /// Folders in order of precedence; a folder that does not exist is skipped.
  /// `hw_type` takes the place of what the files name as `runtime_hw_type`, unless it is empty.
  explicit ChipCatalog(std::vector<std::filesystem::path> folders, std::string hw_type = "")
      : folders_(std::move(folders)), hw_type_(std::move(hw_type)) {}
  /// `--chips-dir` (may be empty), `$LAYERFARM_CHIPS`, then the installed ones.
  static ChipCatalog standard(const std::string& chips_dir, const std::string& hw_type = "");

  /// Comma list of names, `x.group` and `all`. Errors name the file, the key or the group that is
  /// wrong.
  [[nodiscard]] base::Result<ChipSelection> select(const std::string& request) const;
  /// Names of all chip files, sorted.
  [[nodiscard]] std::vector<std::string> names() const;
  /// One chip by exact name.
  [[nodiscard]] base::Result<CatalogChip> chip(const std::string& name) const;
  /// The names most like this one, best first, at most `count`.
  [[nodiscard]] std::vector<std::string> nearest(const std::string& name, std::size_t count) const;
  /// The names of which this one is likely a slip.
  [[nodiscard]] std::vector<std::string> likely_meant(const std::string& name) const;

 private:
  [[nodiscard]] base::Result<std::vector<std::string>> group(const std::string& name) const;
  std::vector<std::filesystem::path> folders_;
  std::string hw_type_;
};

}  // namespace layerfarm::coordinator::app
