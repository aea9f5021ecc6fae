// What the stages and adapters ask of layerfarm-ort (docs/helpers.md), as values instead of JSON:
// one layer's session, run, timed or compiled. Job thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "shared/domain/chip.h"
#include "shared/domain/outcome.h"
#include "shared/domain/tensor.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {

/// A plug-in execution provider.
struct OrtProvider {
  std::filesystem::path library;
  std::string name;
  std::string device;  ///< "", "CPU", "GPU" or "NPU"
  domain::Options options;
};

/// How a session is made. Without a provider it runs on ONNX Runtime's CPU provider.
struct OrtSession {
  std::filesystem::path model;
  bool optimize = true;
  /// One by default: sums are taken in the same order whatever number of cores a worker has, so
  /// results are equal bit for bit.
  int threads = 1;
  domain::Options config;
  std::optional<OrtProvider> provider;
};

/// A raw array for one input.
struct OrtInput {
  std::filesystem::path file;
  domain::TensorType type;
};

/// Runs once; outputs are written to the step's scratch folder.
[[nodiscard]] RunResult ort_run(const OrtSession& session, const std::vector<OrtInput>& inputs,
                                StepContext& context);
/// One warm-up, then `runs` timed calls of the session.
[[nodiscard]] TimeResult ort_time(const OrtSession& session, const std::vector<OrtInput>& inputs,
                                  int runs, StepContext& context);

/// Files that a compile made.
struct OrtCompiled {
  domain::Ending ending = domain::Ending::Infrastructure;
  std::filesystem::path model;  ///< Done: the context model; empty when the provider wrote none
  std::vector<std::filesystem::path> beside;  ///< Done: files that it names
  std::int64_t took_us = 0;
  domain::Diagnostic diagnostic;  ///< else
};
/// Makes a context model `<folder>/<name>` and its binaries; the folder has to be there and empty.
[[nodiscard]] OrtCompiled ort_compile(const OrtSession& session,
                                      const std::filesystem::path& folder, const std::string& name,
                                      StepContext& context);

/// The prepared inputs of a layer, where they lie as blobs.
[[nodiscard]] std::vector<OrtInput> prepared_inputs(const domain::Layer& layer,
                                                    const domain::Prepared& prepared,
                                                    const base::BlobFolder& blobs);

/// A session on the CPU provider as chip options describe it: `optimization`, `threads`,
/// `session.<entry>`.
[[nodiscard]] OrtSession cpu_session_of(const domain::Options& options,
                                        const std::filesystem::path& model);
/// What this machine has of ONNX Runtime.
[[nodiscard]] Probe probe_onnxruntime();

/// "1.32.0", from the name of the library's file; empty when the library is not there.
[[nodiscard]] std::string onnxruntime_version();

}  // namespace layerfarm::worker::toolchain
