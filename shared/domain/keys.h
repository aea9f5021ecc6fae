// Job keys: what must be equal for one job to serve as another (design.md, section 5).
#pragma once

#include <string>

#include "shared/base/digest.h"
#include "shared/domain/analyze_request.h"
#include "shared/domain/chip.h"
#include "shared/domain/layer.h"

namespace layerfarm::domain {

/// Version of our own input and comparison rules; raise it when numbers change for equal tools.
inline constexpr int kRulesVersion = 2;

/// What a toolchain on this machine is, as far as it decides results.
struct ToolIdentity {
  std::string version;  ///< "3.13.0"
  base::Digest files;   ///< digest of the tool's files
  std::string cpu;      ///< CPU features where code or numbers depend on them; else empty
  friend bool operator==(const ToolIdentity&, const ToolIdentity&) = default;
};

/// Random inputs (a seed) or a folder of the user's (`--inputs`).
struct InputSet {
  std::uint64_t seed = kInputSeed;
  base::Digest folder;  ///< digest over the folder's files; zero = random inputs
  std::string path;     ///< the folder, absolute; not part of any key
  friend bool operator==(const InputSet&, const InputSet&) = default;
};

[[nodiscard]] base::Digest analyze_key(const base::Digest& model_file,
                                       const AnalyzeRequest& request, const ToolIdentity& reader);
/// No chip, no executor: one reference serves all. With a folder of inputs, the layer's input names
/// decide which arrays are taken, so they enter here.
[[nodiscard]] base::Digest prepare_key(const Layer& layer, const InputSet& inputs,
                                       const ToolIdentity& reference);
[[nodiscard]] base::Digest compile_key(const Layer& layer, const ChipSpec& chip,
                                       const ExecutorSpec& executor, const ToolIdentity& tool);
[[nodiscard]] base::Digest execute_key(const base::Digest& prepare, const base::Digest& compile,
                                       const ChipSpec& chip, const ToolIdentity& tool);
/// `outputs` is the execute job's key, `tolerance` what the counts are wanted for.
[[nodiscard]] base::Digest recompare_key(const base::Digest& execute, const Tolerance& tolerance);
/// `place` is the board's serial or the CPU's model.
[[nodiscard]] base::Digest time_key(const base::Digest& execute, const std::string& place,
                                    int runs);

}  // namespace layerfarm::domain
