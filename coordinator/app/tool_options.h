// Options of the user for the tools behind a chip (spec section 10). They become options of the
// chip itself, so that they are part of every job's key and reach the worker with the chip; what
// reads them there is the toolchain's adapter.
#pragma once

#include <string>
#include <vector>

#include "coordinator/report/json.h"
#include "shared/base/result.h"
#include "shared/domain/chip.h"

namespace layerfarm::coordinator::app {

/// What the key `gen_config.trace_buffers` of a config file asks the compiler for.
inline constexpr const char* kBufferOption = "--torq-enable-buffer-debug-info";

struct ToolOptions {
  std::vector<std::string> compiler;  ///< --compiler-option, as given
  std::vector<std::string> runtime;   ///< --runtime-option
  std::string hw_type;                ///< --torq-hw-type; empty: what the chip file says
  std::string dump_folder;            ///< --debug-ir; empty: no dumps
};

/// Whether the chip's compiler can write its intermediate forms out.
[[nodiscard]] bool can_dump_ir(const domain::ChipSpec& chip);

/// The chip as its tools shall be used: options appended to those of the chip file, `dump_ir` where
/// dumps are wanted and possible. The hardware type is not set here: what a file says for one holds
/// instead of its other words, so it is read again (ChipCatalog). InvalidInput names the chip and
/// the option that its toolchain does not take.
[[nodiscard]] base::Result<domain::ChipSpec> with_tool_options(domain::ChipSpec chip,
                                                               const ToolOptions& options);

/// What of them decides results, as keys of a report's `_settings`; nothing for what was not given.
void add_settings(const ToolOptions& options, report::json::Object& settings);

}  // namespace layerfarm::coordinator::app
