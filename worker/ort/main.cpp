// layerfarm-ort: resident helper of a worker that links ONNX Runtime (docs/helpers.md). Answers
// requests on descriptor 3 until it is closed.
#include <cstdio>
#include <string>

#include "shared/base/build_info.h"
#include "worker/ort/channel.h"
#include "worker/ort/operations.h"
#include "worker/ort/runtime.h"

namespace {

namespace ort = layerfarm::worker::ort;

int complain(const std::string& text) {
  std::fprintf(stderr, "layerfarm-ort: %s\n", text.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    if (std::string(argv[1]) != "--version")
      return complain("takes no arguments; a worker starts it (docs/helpers.md)");
    std::printf("layerfarm-ort %s (%s)\n", std::string(layerfarm::base::kVersion).c_str(),
                std::string(layerfarm::base::build_commit()).c_str());
    return 0;
  }
  auto runtime = ort::Runtime::open();
  if (!runtime) return complain(runtime.error().text());
  ort::Operations operations(*runtime);
  for (;;) {
    auto request = ort::read_message(ort::kChannelDescriptor);
    if (!request) return complain(request.error().text());
    if (!request->has_value()) break;
    if (auto sent = ort::write_message(ort::kChannelDescriptor, operations.answer(**request));
        !sent)
      return complain(sent.error().text());
  }
  // Vendors' libraries have been seen to crash while a process unloads them; there is nothing left
  // to save.
  std::fflush(nullptr);
  std::_Exit(0);
}
