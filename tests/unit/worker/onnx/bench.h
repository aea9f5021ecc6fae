// What the tests of worker/onnx share: models from ONNX's text form, written to a folder of the
// test's own and taken apart.
#pragma once

#include <doctest/doctest.h>
#include <onnx/defs/parser.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "shared/base/files.h"
#include "tests/support/paths.h"
#include "worker/onnx/analyze.h"
#include "worker/onnx/canonical.h"
#include "worker/onnx/load.h"

namespace layerfarm::test {

namespace lf = worker::onnx;
namespace pb = ::onnx;

inline pb::ModelProto parse_model(const std::string& text) {
  pb::ModelProto model;
  pb::OnnxParser parser(text.c_str());
  const auto status = parser.Parse(model);
  INFO(status.ErrorMessage());
  REQUIRE(status.IsOK());
  return model;
}

/// A model of one graph under opset 17: `graph` begins with its inputs.
inline pb::ModelProto graph_model(const std::string& graph, int opset = 17) {
  return parse_model("<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) +
                     "]>\nagraph " + graph);
}

inline pb::ModelProto read_model(const std::string& name) {
  const auto bytes =
      base::read_file(std::filesystem::path(kTestsFolder) / "data" / "models" / name);
  REQUIRE(bytes);
  pb::ModelProto model;
  REQUIRE(model.ParseFromString(*bytes));
  return model;
}

struct OnnxBench {
  base::ScratchFolder scratch =
      *base::ScratchFolder::make(std::filesystem::temp_directory_path(), "worker-onnx");
  std::filesystem::path folder = scratch.path();
  base::BlobFolder blobs{folder / "blobs"};

  std::filesystem::path write(const std::string& bytes,
                              const std::string& name = "model.onnx") const {
    const auto path = folder / name;
    REQUIRE(base::write_file_atomically(path, bytes, base::Sync::No));
    return path;
  }
  std::filesystem::path write(const pb::ModelProto& model) const {
    return write(model.SerializeAsString());
  }

  base::Result<lf::AnalyzeAnswer> try_analyze(
      const std::filesystem::path& file,
      std::vector<std::pair<std::string, std::int64_t>> dims = {}) const {
    return try_analyze({.model_path = file.string(), .dims = std::move(dims)});
  }
  base::Result<lf::AnalyzeAnswer> try_analyze(
      domain::AnalyzeRequest request,
      std::optional<std::filesystem::path> changed_model = std::nullopt) const {
    return lf::analyze({.request = std::move(request),
                        .blobs = blobs,
                        .shapes_answer = {},
                        .shapes_folder = {},
                        .changed_model = std::move(changed_model)});
  }
  domain::ModelAnalysis analyze(const pb::ModelProto& model,
                                std::vector<std::pair<std::string, std::int64_t>> dims = {}) const {
    auto answer = try_analyze(write(model), std::move(dims));
    INFO((answer ? std::string() : answer.error().text()));
    REQUIRE(answer);
    return answer->analysis;
  }
  /// The reason why a file is refused; fails the test when it is not.
  std::string refusal(const std::filesystem::path& file) const {
    const auto answer = try_analyze(file);
    REQUIRE_FALSE(answer);
    return answer.error().text();
  }
  pb::ModelProto module(const domain::LayerModule& stored) const {
    const auto bytes = blobs.get(stored.blob);
    REQUIRE(bytes);
    pb::ModelProto model;
    REQUIRE(model.ParseFromString(*bytes));
    return model;
  }
};

inline const domain::Layer& layer_named(const domain::ModelAnalysis& analysis,
                                        const std::string& id) {
  const auto found = std::find_if(analysis.layers.begin(), analysis.layers.end(),
                                  [&](const domain::Layer& layer) { return layer.id == id; });
  INFO(id);
  REQUIRE(found != analysis.layers.end());
  return *found;
}

}  // namespace layerfarm::test
