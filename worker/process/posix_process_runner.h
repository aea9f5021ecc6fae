// PosixProcessRunner: ProcessRunner by way of the launcher. Job thread.
#pragma once

#include <memory>
#include <string>

#include "worker/process/launcher.h"
#include "worker/process/process_runner.h"

namespace layerfarm::worker::process {

class PosixProcessRunner final : public ProcessRunner {
 public:
  /// The launcher must outlive this and every resident.
  explicit PosixProcessRunner(Launcher& launcher) : launcher_(launcher) {}

  ProcessResult run(const Command& command, const CancelToken& cancel) override;
  base::Result<std::unique_ptr<Resident>> start(const Command& command) override;

 private:
  Launcher& launcher_;
};

/// Where a command's program is: a name without slash is looked up in PATH. NotFound says where was
/// looked.
[[nodiscard]] base::Result<std::string> find_program(const Command& command);

}  // namespace layerfarm::worker::process
