#include "worker/toolchain/torq_command.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "worker/toolchain/ir_dump.h"

namespace layerfarm::worker::toolchain {
namespace {

/// Parts of a `custom` target in the order in which the compiler reads them.
struct CustomPart {
  const char* key;
  const char* otherwise;  ///< null: must be given
};
constexpr std::array<CustomPart, 10> kCustomParts = {{{"hw_id", nullptr},
                                                      {"lram_size", nullptr},
                                                      {"slice_count", nullptr},
                                                      {"css_features", nullptr},
                                                      {"nss_features", nullptr},
                                                      {"dma_bytes_per_cycle", "8"},
                                                      {"dma_factor", "1.0"},
                                                      {"host_triple", "native"},
                                                      {"host_cpu", "host"},
                                                      {"host_cpu_features", "host"}}};

base::Result<std::string> custom_target(const std::string& chip, const domain::Options& options) {
  std::string out;
  for (const CustomPart& part : kCustomParts) {
    const auto found = options.find(part.key);
    if (found == options.end() && part.otherwise == nullptr) {
      return base::fail(base::ErrorCode::InvalidInput,
                        "chip " + chip + ": the target 'custom' needs the option '" + part.key +
                            "' in the chip file");
    }
    out += (out.empty() ? "" : ":") +
           (found == options.end() ? std::string(part.otherwise) : found->second);
  }
  return out;
}

/// Flags that leave only this executor (spec section 22), where the chip file names none of its
/// own.
std::vector<std::string> disable_flags(const domain::ExecutorSpec& executor) {
  if (auto own = domain::option_list(executor.options, "disable"); !own.empty()) return own;
  if (executor.name == "nss") return {"--torq-disable-css", "--torq-disable-host"};
  if (executor.name == "css") return {"--torq-disable-slices", "--torq-disable-host"};
  if (executor.name == "host") return {"--torq-disable-slices", "--torq-disable-css"};
  return {};
}

/// The host part is compiled for the machine at hand where the accelerator is simulated beside it.
bool host_is_native(const std::string& hw_type) {
  return hw_type == "sim" || hw_type == "aws_fpga";
}

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

base::Result<TorqTarget> torq_target(const domain::ChipSpec& chip,
                                     const domain::ExecutorSpec& executor) {
  const domain::Options options = domain::merged_options(chip, executor);
  TorqTarget out;
  out.hw = chip.target;
  if (chip.target == "custom") {
    auto custom = custom_target(chip.name, options);
    if (!custom) return base::fail(std::move(custom.error()));
    out.hw = std::move(*custom);
  }
  out.hw_type = chip.hw_type.empty() ? "sim" : chip.hw_type;
  out.disable = disable_flags(executor);
  out.compiler_options = domain::option_list(options, "compiler_options");
  out.runtime_options = domain::option_list(options, "runtime_options");
  out.dump_ir = wants_ir_dump(options);
  return out;
}

std::vector<std::string> torq_compile_arguments(const TorqTarget& target,
                                                const TorqCompileFiles& files) {
  std::vector<std::string> out = {files.module, "-o", files.artifact, "--torq-hw=" + target.hw};
  if (target.dump_ir) {
    append(out, {"--mlir-print-ir-after-all", "--mlir-print-ir-tree-dir=debug/ir",
                 "--mlir-elide-elementsattrs-if-larger=50"});
  }
  out.emplace_back("--dump-compilation-phases-to=phases");
  if (host_is_native(target.hw_type)) out.emplace_back("--torq-target-host-triple=native");
  const std::string map = "--torq-executor-map=" + files.map;
  if (!files.map.empty() && !files.whole) out.push_back(map);
  if (!files.whole) append(out, target.disable);
  append(out, target.compiler_options);
  if (!files.map.empty() && files.whole) out.push_back(map);
  out.emplace_back("--torq-debug-info=debug");
  return out;
}

std::vector<std::string> torq_run_arguments(const TorqTarget& target, const TorqRunFiles& files) {
  std::vector<std::string> out = {"--module=" + files.artifact, "--function=" + files.function};
  for (const std::string& output : files.outputs) out.push_back("--output=@" + output);
  out.push_back("--torq_hw_type=" + target.hw_type);
  append(out, target.runtime_options);
  for (const std::string& input : files.inputs) out.push_back("--input=" + input);
  return out;
}

std::string torq_model_map(const std::vector<std::pair<std::string, std::string>>& executors) {
  nlohmann::ordered_json map = {{"op_assignments", nlohmann::ordered_json::object()}};
  for (const auto& [place, executor] : executors)
    map["op_assignments"][place] = {{"executor", executor}};
  return map.dump();
}

std::string torq_layer_map(const std::string& layer_id, const std::string& executor) {
  const nlohmann::json map = {{"op_assignments", {{layer_id, {{"executor", executor}}}}}};
  return map.dump();
}

}  // namespace layerfarm::worker::toolchain
