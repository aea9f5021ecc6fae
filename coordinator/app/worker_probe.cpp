#include "coordinator/app/worker_probe.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "coordinator/app/child_call.h"

namespace layerfarm::coordinator::app {
using base::ErrorCode;
using base::fail;
using base::Result;
using nlohmann::json;

namespace {

constexpr std::chrono::seconds kPatience(30);

domain::ToolIdentity identity(const json& in) {
  domain::ToolIdentity out;
  out.version = in.at("version").get<std::string>();
  out.cpu = in.at("cpu").get<std::string>();
  if (auto digest = base::Digest::from_hex(in.at("files").get<std::string>())) out.files = *digest;
  return out;
}

MachineDescription read_description(const json& in) {
  MachineDescription out;
  out.software = in.at("software").get<std::string>();
  out.cpu_model = in.at("cpu_model").get<std::string>();
  out.reader = identity(in.at("reader"));
  out.reference = identity(in.at("reference"));
  for (const json& item : in.at("abilities")) {
    protocol::Ability ability;
    ability.toolchain = item.at("toolchain").get<std::string>();
    if (auto digest = base::Digest::from_hex(item.at("chip").get<std::string>()))
      ability.chip = *digest;
    ability.found = item.at("found").get<bool>();
    ability.identity = identity(item.at("identity"));
    ability.missing = item.at("missing").get<std::string>();
    ability.how_to_get = item.at("how_to_get").get<std::string>();
    ability.needs_prepare = item.at("needs_prepare").get<bool>();
    ability.needs_compile = item.at("needs_compile").get<bool>();
    ability.batch = item.at("batch").get<std::uint32_t>();
    ability.takes_map = item.at("takes_map").get<bool>();
    out.abilities.push_back(std::move(ability));
  }
  return out;
}

}  // namespace

Result<std::string> ask_worker(const std::filesystem::path& program, const std::string& flag,
                               std::string_view input, base::Duration patience) {
  auto answer = call_child({program.string(), flag}, input, Take::Output, patience);
  if (!answer) return fail(std::move(answer.error()));
  if (answer->status != 0) {
    return fail(ErrorCode::Unavailable,
                program.string() + " " + flag + " failed; its own message is above");
  }
  return std::move(answer->text);
}

Result<MachineDescription> describe_machine(const std::filesystem::path& program,
                                            const std::vector<domain::ChipSpec>& chips) {
  json request = json::array();
  for (const domain::ChipSpec& chip : chips)
    request.push_back(json::parse(domain::chip_json(chip)));
  const auto output = ask_worker(program, "--describe", request.dump(), kPatience);
  if (!output) return fail(output.error());
  const std::string call = program.string() + " --describe";
  try {
    MachineDescription out = read_description(json::parse(*output));
    if (out.abilities.size() == chips.size()) return out;
    return fail(ErrorCode::Internal, call + " answered for another number of chips");
  } catch (const json::exception& bad) {
    return fail(ErrorCode::Internal, call + " gave an answer that cannot be read: " + bad.what());
  }
}

}  // namespace layerfarm::coordinator::app
