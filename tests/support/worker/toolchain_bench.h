// ToolBench: everything a toolchain or a stage is called with, in a folder of the test's own.
// Helpers are functions of the test.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "shared/base/blob_folder.h"
#include "shared/base/files.h"
#include "tests/support/worker/fake_process_runner.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::test {

/// Answers by a function per helper; without one the helper is missing.
class FakeHelpers final : public worker::toolchain::Helpers {
 public:
  using Answer = std::function<worker::toolchain::HelperAnswer(const std::string& request)>;
  Answer on_ort;
  Answer on_sidecar;
  std::vector<std::string> requests;

  worker::toolchain::HelperAnswer ort(const std::string& request,
                                      const worker::process::Bounds& bounds) override {
    return ask(on_ort, request, bounds);
  }
  worker::toolchain::HelperAnswer sidecar(const std::string& request,
                                          const worker::process::Bounds& bounds) override {
    return ask(on_sidecar, request, bounds);
  }

 private:
  worker::toolchain::HelperAnswer ask(const Answer& answer, const std::string& request,
                                      const worker::process::Bounds& /*bounds*/) {
    requests.push_back(request);
    return answer ? answer(request) : worker::toolchain::HelperAnswer{};
  }
};

/// A helper's good answer.
inline worker::toolchain::HelperAnswer answered(std::string json) {
  worker::toolchain::HelperAnswer out;
  out.ending = domain::Ending::Done;
  out.json = std::move(json);
  return out;
}

struct ToolBench {
  base::ScratchFolder folder =
      *base::ScratchFolder::make(std::filesystem::temp_directory_path(), "toolbench");
  base::BlobFolder blobs{folder.path() / "blobs"};
  FakeProcessRunner runner;
  FakeHelpers helpers;
  worker::process::CancelToken cancel;
  worker::toolchain::StepContext step{runner,
                                      helpers,
                                      blobs,
                                      cancel,
                                      folder.path() / "scratch",
                                      {},
                                      {.compile_timeout_ms = 60000,
                                       .run_timeout_ms = 60000,
                                       .memory_bytes = std::int64_t{4} << 30,
                                       .output_bytes = 16 << 20,
                                       .file_bytes = std::int64_t{1} << 30}};
  worker::toolchain::StepContext& context() {
    std::filesystem::create_directories(step.scratch);
    return step;
  }
};

}  // namespace layerfarm::test
