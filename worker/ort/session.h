// Sessions of ONNX Runtime as requests describe them, and tensors between files and ONNX Runtime.
// Functions here throw Ort::Exception, and Failure for what is wrong without it; operations.cpp
// turns both into answers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/ort/request.h"
#include "worker/ort/runtime.h"

namespace layerfarm::worker::ort {

/// Thrown inside this library only: `where` is the step as answers name it.
struct Failure {
  std::string where;
  std::string text;
};

/// An input or output as a session declares it.
struct Declared {
  std::string name;
  bool tensor = false;
  domain::TensorType type;  ///< unknown dims are -1
};

[[nodiscard]] Ort::SessionOptions session_options(Runtime& runtime, const SessionRequest& request);
[[nodiscard]] Ort::Session open_session(Runtime& runtime, const SessionRequest& request,
                                        const Ort::SessionOptions& options);
[[nodiscard]] std::vector<Declared> declared_inputs(const Ort::Session& session);
[[nodiscard]] std::vector<Declared> declared_outputs(const Ort::Session& session);

/// A tensor that owns its bytes, at an address that a move does not change.
struct Loaded {
  std::unique_ptr<std::string> bytes;
  Ort::Value value{nullptr};
};
/// `bytes` has to be type.bytes() long.
[[nodiscard]] Loaded make_tensor(std::string bytes, const domain::TensorType& type);
/// Reads the files and checks them against what the session wants, by position.
[[nodiscard]] std::vector<Loaded> load_inputs(const Ort::Session& session,
                                              const std::vector<TensorFile>& files);

/// Type of a value that came out; Undefined when it is no tensor of a fixed-size type.
[[nodiscard]] domain::TensorType type_of(const Ort::Value& value);
/// Its raw array; the value has to be a tensor on the CPU with a fixed-size type.
[[nodiscard]] base::BytesView bytes_of(const Ort::Value& value, const domain::TensorType& type);

/// Runs with inputs and outputs by position.
[[nodiscard]] std::vector<Ort::Value> run(Ort::Session& session,
                                          const std::vector<Declared>& inputs,
                                          const std::vector<Declared>& outputs,
                                          const std::vector<Loaded>& values);

}  // namespace layerfarm::worker::ort
