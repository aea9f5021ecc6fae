// RealBench: launcher, helpers, blobs and the models of tests/support/make_models.py, in a folder
// of the test's own.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shared/base/blob_folder.h"
#include "shared/base/files.h"
#include "shared/domain/verdict.h"
#include "tests/support/paths.h"
#include "worker/process/launcher.h"
#include "worker/process/posix_process_runner.h"
#include "worker/toolchain/execute_stage.h"
#include "worker/toolchain/programs.h"
#include "worker/toolchain/resident_helpers.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::test {

struct RealBench {
  base::ScratchFolder folder = std::move(
      *base::ScratchFolder::make(std::filesystem::temp_directory_path(), "layerfarm-tools"));
  base::BlobFolder blobs{folder.path() / "blobs"};
  std::unique_ptr<worker::process::Launcher> launcher =
      std::move(*worker::process::Launcher::start());
  worker::process::PosixProcessRunner runner{*launcher};
  worker::process::CancelToken cancel;
  worker::toolchain::ResidentHelpers helpers{runner, blobs, cancel, {}, folder.path() / "helpers"};
  worker::toolchain::StepContext step{runner,
                                      helpers,
                                      blobs,
                                      cancel,
                                      folder.path() / "scratch",
                                      {},
                                      {.compile_timeout_ms = 60'000,
                                       .run_timeout_ms = 60'000,
                                       .memory_bytes = std::int64_t{8} << 30,
                                       .output_bytes = 16 << 20,
                                       .file_bytes = std::int64_t{1} << 30}};
  nlohmann::json index;

  RealBench() {
    const auto made = folder.path() / "models";
    std::filesystem::create_directories(made);
    std::filesystem::create_directories(step.scratch);
    worker::process::Command command;
    command.argv = {worker::toolchain::python_program().string(), "-I",
                    std::string(kTestsFolder) + "/support/make_models.py", made.string()};
    command.folder = made;
    command.bounds.wall = std::chrono::seconds(120);
    const auto result = runner.run(command, cancel);
    REQUIRE_MESSAGE(result.ok(), result.errors.text << result.problem);
    index = nlohmann::json::parse(base::read_file(made / "index.json").value());
  }

  static domain::TensorType type_of(const nlohmann::json& item) {
    return {static_cast<domain::DType>(item.at("dtype").get<int>()),
            item.at("dims").get<std::vector<std::int64_t>>()};
  }

  /// The layer of one entry of the index, its files in the blobs.
  domain::Layer layer_of(const nlohmann::json& entry) {
    domain::Layer layer;
    layer.id = entry.at("name").get<std::string>();
    const std::filesystem::path model = entry.at("model").get<std::string>();
    layer.module.blob = blobs.put(base::read_file(model).value()).value();
    for (const auto& name : entry.at("data")) {
      const auto bytes = base::read_file(model.parent_path() / name.get<std::string>()).value();
      layer.module.data.push_back({.name = name.get<std::string>(),
                                   .blob = blobs.put(bytes).value(),
                                   .bytes = bytes.size()});
    }
    for (const auto& item : entry.at("inputs")) {
      layer.inputs.emplace_back();
      layer.inputs.back().type = type_of(item);
    }
    for (const auto& item : entry.at("outputs")) layer.outputs.push_back(type_of(item));
    return layer;
  }

  domain::Prepared prepared_of(const nlohmann::json& entry) {
    domain::Prepared out;
    for (const auto& item : entry.at("inputs"))
      out.inputs.push_back(
          blobs.put(base::read_file(item.at("file").get<std::string>()).value()).value());
    for (const auto& item : entry.at("outputs")) {
      out.expected.push_back(
          blobs.put(base::read_file(item.at("file").get<std::string>()).value()).value());
      out.expected_types.push_back(type_of(item));
    }
    return out;
  }

  static domain::ChipSpec chip(const std::string& name) {
    const auto path = std::string(kConfigsFolder) + "/chips/" + name + ".json";
    return domain::parse_chip(base::read_file(path).value(), path).value();
  }

  nlohmann::json ask_sidecar(const nlohmann::json& request) {
    const auto answer = helpers.sidecar(request.dump(), {.wall = std::chrono::seconds(60),
                                                         .memory_bytes = std::int64_t{8} << 30,
                                                         .output_bytes = 0,
                                                         .file_bytes = 0});
    INFO(answer.diagnostic.cause << " " << answer.diagnostic.text);
    REQUIRE(!answer.json.empty());
    return nlohmann::json::parse(answer.json);
  }
};

}  // namespace layerfarm::test
