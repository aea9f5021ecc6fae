// process: runs the command of the chip file once per case, with the pipes, session, limits and
// scratch folder of any other tool step. Exit code 0 is success; nothing is compared. For
// benchmarks, and for a quick check of a program of one's own over all layers (option
// `layer_argument`).
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include "shared/base/places.h"
#include "worker/cache/materialise.h"
#include "worker/toolchain/file_digests.h"
#include "worker/toolchain/programs.h"
#include "worker/toolchain/tool_results.h"
#include "worker/toolchain/tool_step.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {
namespace {
namespace fs = std::filesystem;

class ProcessToolchain final : public Toolchain {
 public:
  [[nodiscard]] std::string_view name() const override { return "process"; }
  [[nodiscard]] Needs needs(const domain::ChipSpec& /*chip*/) const override {
    return {.prepare = false, .compile = false, .batch = 1, .tiny = false};
  }

  [[nodiscard]] Probe probe(const domain::ChipSpec& chip) const override {
    Probe out;
    // A program that was changed, or a script among its arguments, is another tool.
    std::vector<fs::path> files;
    for (const domain::ExecutorSpec& executor : chip.executors) {
      const auto command = domain::option_list(domain::merged_options(chip, executor), "command");
      if (command.empty()) {
        out.missing = "option 'command' of chip " + chip.name + " or its executor " + executor.name;
        out.how_to_get =
            "add \"options\": {\"command\": [\"program\", \"argument\"]} to the chip file";
        return out;
      }
      const fs::path program = find_program(command.front());
      if (program.empty()) {
        out.missing = "program " + command.front();
        out.how_to_get = "install it, or correct option 'command' of chip " + chip.name;
        return out;
      }
      const auto add = [&files](const fs::path& file) {
        if (std::find(files.begin(), files.end(), file) != files.end()) return false;
        files.push_back(file);
        return true;
      };
      if (add(program))
        out.identity.version += (out.identity.version.empty() ? "" : ", ") + command.front();
      std::error_code error;
      for (const std::string& word : command) {
        if (fs::is_regular_file(word, error)) add(word);
      }
    }
    out.found = true;
    FileDigests digests;
    out.identity.files = digests.of_all(files);
    return out;
  }

  std::vector<domain::Outcome> compile(const domain::ChipSpec& /*chip*/,
                                       const domain::ExecutorSpec& /*executor*/,
                                       std::span<const CompileJob> jobs,
                                       StepContext& /*context*/) override {
    return nothing_to_compile(jobs.size());
  }

  RunResult run(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor,
                const RunJob& job, StepContext& context) override {
    const domain::Options options = domain::merged_options(chip, executor);
    ToolCall call = run_call("process", domain::option_list(options, "command"), context);
    if (call.command.argv.empty()) {
      return {.diagnostic =
                  diagnostic("run", "not started",
                             "chip " + chip.name + " has no option 'command' for the executor " +
                                 executor.name)};
    }
    call.command.argv.front() = program(call.command.argv.front());
    if (const auto wanted = options.find("layer_argument");
        wanted != options.end() && wanted->second == "1" && job.layer != nullptr) {
      const cache::Placed placed =
          cache::place_module(context.blobs, job.layer->module, context.scratch, "layer");
      if (!placed.ok()) return not_placed(placed);
      call.command.argv.push_back(placed.module.string());
    }
    const ToolEnd end = run_tool(call, context);
    RunResult out = run_result(end);
    // Whoever wrote the program knows what its codes mean; other tools only know yes and no.
    if (out.ending == domain::Ending::Refused)
      out.diagnostic.cause = "exit code " + std::to_string(end.result.exit_code);
    return out;
  }

  TimeResult time(const domain::ChipSpec& chip, const domain::ExecutorSpec& executor,
                  const RunJob& job, int runs, StepContext& context) override {
    return time_runs("process", runs, [&] { return run(chip, executor, job, context); });
  }

 private:
  /// The path of a program. A step of a millisecond would spend a good part of it on a long PATH,
  /// so it is searched once; the name as it stands where nothing is found, as the runner says that
  /// best.
  std::string program(const std::string& name) {
    if (const auto known = programs_.find(name); known != programs_.end()) return known->second;
    const fs::path found = find_program(name);
    if (found.empty()) return name;
    return programs_.emplace(name, fs::absolute(found).string()).first->second;
  }

  std::map<std::string, std::string> programs_;
};

}  // namespace

std::unique_ptr<Toolchain> make_process_toolchain() { return std::make_unique<ProcessToolchain>(); }

}  // namespace layerfarm::worker::toolchain
