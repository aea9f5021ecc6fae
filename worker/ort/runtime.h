// Runtime: ONNX Runtime's library, opened at run time from the place that the dependency rule
// names, its one environment, and the plug-in providers registered in it so far. One per process;
// the helper's only thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <onnxruntime_cxx_api.h>

#include "shared/base/result.h"

namespace layerfarm::worker::ort {

/// A plug-in execution provider, as a request names it.
struct Provider {
  std::string library;  ///< path of the plug-in
  std::string name;     ///< as its devices call it: "QNNExecutionProvider"
  std::string device;   ///< "" = the first device; else "CPU", "GPU" or "NPU"
  std::map<std::string, std::string> options;
};

class Runtime {
 public:
  /// Opens the library. Unavailable when it is not there or too old. Nothing of ONNX Runtime may be
  /// used before.
  static base::Result<Runtime> open();

  [[nodiscard]] Ort::Env& environment() { return environment_; }
  [[nodiscard]] const std::string& version() const { return version_; }
  /// Adds the provider to the options, registering its library the first time; it stays registered,
  /// so later sessions start fast. Throws Ort::Exception.
  base::Result<void> append(const Provider& provider, Ort::SessionOptions& options);

 private:
  Runtime(std::string version, Ort::Env environment)
      : version_(std::move(version)), environment_(std::move(environment)) {}

  std::string version_;
  Ort::Env environment_;
  std::map<std::string, std::string> registered_;  ///< provider's name -> library path
};

/// The version of the interface asked for: 22 has plug-in providers, and the interface only grows.
inline constexpr std::uint32_t kApiVersion = 22;

}  // namespace layerfarm::worker::ort
