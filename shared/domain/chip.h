// Chip: a target described by a file in configs/chips (docs: configs/schemas/chip.schema.json).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/result.h"
#include "shared/domain/tolerance.h"

namespace layerfarm::domain {

/// What a verdict rests on; shown beside every verdict. An emulator's success is not hardware's.
enum class Evidence : std::uint8_t { Hardware, Emulator, StandIn };
[[nodiscard]] std::string_view evidence_name(
    Evidence evidence);  ///< "hardware", "emulator", "stand-in"
[[nodiscard]] std::optional<Evidence> evidence_from_name(std::string_view name);

/// Bounds of one tool step. Zero means "the program's default".
struct Limits {
  std::int64_t compile_timeout_ms = 0;
  std::int64_t run_timeout_ms = 0;
  std::int64_t memory_bytes = 0;  ///< resident memory of the step's whole process group
  std::int64_t output_bytes = 0;  ///< what a step may print before it is ended
  std::int64_t file_bytes = 0;    ///< largest file a step may write
  friend bool operator==(const Limits&, const Limits&) = default;
};

/// Time limits where neither the user nor the chip file says anything (those of the original tool,
/// spec section 10).
inline constexpr std::int64_t kDefaultCompileTimeoutMs = 300'000;
inline constexpr std::int64_t kDefaultRunTimeoutMs = 240'000;

/// Options are passed to the toolchain as they are; what a key means is the adapter's business. A
/// list of a chip file is kept as lines.
using Options = std::map<std::string, std::string>;
/// The option's lines, one element each; empty when it is not there.
[[nodiscard]] std::vector<std::string> option_list(const Options& options, const std::string& key);
/// The chip's options with the executor's on top.
struct ExecutorSpec;
struct ChipSpec;
[[nodiscard]] Options merged_options(const ChipSpec& chip, const ExecutorSpec& executor);

/// What differs on one run-time hardware type: an instruction simulator and the board of one chip
/// are not the same witness.
struct HwVariant {
  std::optional<Tolerance> tolerance;
  std::optional<Evidence> evidence;
  friend bool operator==(const HwVariant&, const HwVariant&) = default;
};

struct ExecutorSpec {
  std::string name;  ///< as users and reports write it: "htp", "host", "llvm-cpu"
  Tolerance
      tolerance;  ///< default tolerance on this executor, measured (why: the chip file's notes)
  Evidence evidence = Evidence::Hardware;
  bool same_engine =
      false;        ///< runs on the engine that also makes the reference: agreement proves little
  Options options;  ///< for the adapter, on top of the chip's
  std::map<std::string, HwVariant> by_hw_type;  ///< see with_hw_type
  friend bool operator==(const ExecutorSpec&, const ExecutorSpec&) = default;
};

struct ChipSpec {
  std::string name;       ///< file stem, or `chip_name` in the file
  std::string target;     ///< what the toolchain calls it; defaults to the name
  std::string toolchain;  ///< "iree", "ort", "ort-ep", "torq", "null", "process"
  std::string hw_type;    ///< run-time hardware type: "sim" ...; empty when the toolchain has none
  std::vector<ExecutorSpec> executors;  ///< in priority order, at least one, names unique
  Options options;
  Limits limits;
  std::string notes;  ///< free text for people (how tolerances were chosen)

  [[nodiscard]] const ExecutorSpec* executor(std::string_view executor_name) const;
  friend bool operator==(const ChipSpec&, const ChipSpec&) = default;
};

/// The chip on that run-time hardware type: what its executors say `by_hw_type` about it takes the
/// place of their tolerance and evidence.
[[nodiscard]] ChipSpec with_hw_type(ChipSpec chip, const std::string& hw_type);

/// Reads a chip file's text; where it has a `runtime_hw_type`, with_hw_type is applied already.
/// Errors name `path`, the key and the reason (`configs/schemas/chip.schema.json` says what may be
/// there).
[[nodiscard]] base::Result<ChipSpec> parse_chip(const std::string& text, const std::string& path);
/// Canonical JSON of a chip, as sent to workers; parse_chip reads it back to an equal value.
[[nodiscard]] std::string chip_json(const ChipSpec& chip);

}  // namespace layerfarm::domain
