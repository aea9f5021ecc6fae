// Requests to layerfarm-ort (docs/helpers.md), read from JSON with every field checked: a hostile
// request is an error answer, never a crash.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "shared/base/result.h"
#include "shared/domain/inputs.h"
#include "shared/domain/tensor.h"
#include "worker/ort/runtime.h"

namespace layerfarm::worker::ort {

/// What a session is made from.
struct SessionRequest {
  std::string model;
  bool optimize = true;
  int threads = 0;  ///< 0 = ONNX Runtime's choice
  std::map<std::string, std::string> config;
  std::optional<Provider> provider;
  bool no_fallback = true;
};

/// A raw array in a file.
struct TensorFile {
  std::string file;
  domain::TensorType type;
};

struct DescribeRequest {};
struct RunRequest {
  SessionRequest session;
  std::vector<TensorFile> inputs;
  std::string output_folder;
  std::uint64_t output_limit = 0;  ///< bytes of all outputs together; 0 = no bound
};
struct TimeRequest {
  SessionRequest session;
  std::vector<TensorFile> inputs;
  int warm_up = 1;
  int runs = 1;
};
struct CompileRequest {
  SessionRequest session;
  std::string output;
};
struct NamedInput {
  std::string name;
  domain::InputSpec spec;
};
struct ShapesRequest {
  std::string model;
  std::vector<std::string> values;  ///< made outputs on top of the model's own
  std::vector<NamedInput> inputs;
};

using Request =
    std::variant<DescribeRequest, RunRequest, TimeRequest, CompileRequest, ShapesRequest>;

[[nodiscard]] base::Result<Request> parse_request(const std::string& text);

}  // namespace layerfarm::worker::ort
