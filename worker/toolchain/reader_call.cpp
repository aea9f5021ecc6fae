#include "worker/toolchain/reader_call.h"

#include <algorithm>
#include <utility>

#include "worker/toolchain/programs.h"

namespace layerfarm::worker::toolchain {

ToolCall reader_call(std::string where, std::vector<std::string> arguments,
                     const std::filesystem::path& folder, const StepContext& context) {
  ToolCall out{.command = {}, .where = std::move(where), .tool = "layerfarm-onnx"};
  out.command.argv = std::move(arguments);
  out.command.argv.insert(out.command.argv.begin(), own_program("layerfarm-onnx").string());
  out.command.folder = folder;
  out.command.cores = context.cores;
  out.command.bounds = compile_bounds(context.limits);
  out.command.bounds.file_bytes = std::max(out.command.bounds.file_bytes, kLargestModelFile);
  return out;
}

}  // namespace layerfarm::worker::toolchain
