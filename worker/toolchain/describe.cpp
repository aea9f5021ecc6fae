#include "worker/toolchain/describe.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "shared/base/build_info.h"
#include "shared/base/onnxruntime_library.h"
#include "worker/toolchain/cpu.h"
#include "worker/toolchain/file_digests.h"
#include "worker/toolchain/option_files.h"
#include "worker/toolchain/programs.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {
namespace {

using nlohmann::json;

json identity_json(const domain::ToolIdentity& identity) {
  return {{"version", identity.version}, {"files", identity.files.hex()}, {"cpu", identity.cpu}};
}

json ability_json(const protocol::Ability& ability) {
  return {{"toolchain", ability.toolchain},
          {"chip", ability.chip.hex()},
          {"found", ability.found},
          {"identity", identity_json(ability.identity)},
          {"missing", ability.missing},
          {"how_to_get", ability.how_to_get},
          {"needs_prepare", ability.needs_prepare},
          {"needs_compile", ability.needs_compile},
          {"batch", ability.batch},
          {"takes_map", ability.takes_map}};
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace

protocol::Ability ability_for(const domain::ChipSpec& chip) {
  protocol::Ability out;
  out.toolchain = chip.toolchain;
  out.chip = base::digest_of(domain::chip_json(chip));
  const std::unique_ptr<Toolchain> toolchain = make_toolchain(chip.toolchain);
  if (toolchain == nullptr) {
    out.missing = "an adapter for the toolchain '" + chip.toolchain + "'";
    out.how_to_get = "this version has " + joined(toolchain_names()) +
                     ": take a chip of one of these, or correct 'toolchain' in the chip file";
    return out;
  }
  const Needs needs = toolchain->needs(chip);
  out.needs_prepare = needs.prepare;
  out.needs_compile = needs.compile;
  out.batch = needs.batch;
  out.takes_map = needs.takes_map;
  Probe probe = toolchain->probe(chip);
  out.found = probe.found;
  out.identity = std::move(probe.identity);
  // Each adapter knows its tool's files; what options name is a matter of the options.
  if (const auto named = option_files(chip); out.found && !named.empty()) {
    base::Hasher hasher("layerfarm.tool-with-options.1");
    hasher.add(out.identity.files).add(digest_of_option_files(named));
    out.identity.files = hasher.finish();
  }
  out.missing = std::move(probe.missing);
  out.how_to_get = std::move(probe.how_to_get);
  return out;
}

domain::ToolIdentity reader_identity() {
  FileDigests digests;
  return {
      .version = std::string(base::kVersion),
      .files = digests.of_all({own_program("layerfarm-onnx"), package_record("iree_base_compiler"),
                               package_record("onnx"), package_record("onnxruntime"),
                               sidecar_script(), quantizer_script()}),
      .cpu = ""};
}

domain::ToolIdentity reference_identity() {
  FileDigests digests;
  const auto library = base::onnxruntime_library();
  std::error_code error;
  const std::string real =
      std::filesystem::canonical(library, error).filename().string();  // libonnxruntime.so.1.32.0
  const auto at = real.find(".so.");
  return {.version = at == std::string::npos ? "" : real.substr(at + 4),
          .files = digests.of_all({own_program("layerfarm-ort"), library}),
          .cpu = cpu_identity()};
}

base::Result<std::string> describe(const std::string& request) {
  const json chips = json::parse(request, nullptr, /*allow_exceptions=*/false);
  if (!chips.is_array())
    return base::fail(base::ErrorCode::InvalidInput,
                      "--describe reads a JSON array of chip descriptions from standard input");
  json abilities = json::array();
  for (std::size_t i = 0; i < chips.size(); ++i) {
    const auto chip = domain::parse_chip(chips[i].dump(), "number " + std::to_string(i));
    if (!chip) return base::fail(chip.error());
    abilities.push_back(ability_json(ability_for(*chip)));
  }
  json out = {{"software", "layerfarm-worker " + std::string(base::kVersion) + " (" +
                               std::string(base::build_commit()) + ")"},
              {"cpu_model", cpu_model()},
              {"reader", identity_json(reader_identity())},
              {"reference", identity_json(reference_identity())},
              {"abilities", std::move(abilities)}};
  return out.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

}  // namespace layerfarm::worker::toolchain
