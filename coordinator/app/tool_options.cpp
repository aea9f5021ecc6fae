#include "coordinator/app/tool_options.h"

#include <utility>

namespace layerfarm::coordinator::app {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using domain::ChipSpec;

/// What a toolchain does with the user's options.
struct Takes {
  const char* toolchain;
  const char* compiler;  ///< chip option that gets them, a line each; with `pairs` its prefix
  const char* runtime;
  bool pairs;  ///< KEY=VALUE, an option of the execution provider
  bool dumps;
};
constexpr Takes kTakes[] = {
    {"torq", "compiler_options", "runtime_options", false, true},
    {"iree", "compile_flags", "run_flags", false, true},
    {"ort-ep", "provider_at_compile.", "provider_at_run.", true, false},
};

const Takes* takes_of(const std::string& toolchain) {
  for (const Takes& takes : kTakes) {
    if (toolchain == takes.toolchain) return &takes;
  }
  return nullptr;
}

void append_line(domain::Options& options, const char* key, const std::string& line) {
  std::string& lines = options[key];
  lines += (lines.empty() ? "" : "\n") + line;
}

/// An executor that has the list for itself does not see the chip's (merged_options).
void append_line(ChipSpec& chip, const char* key, const std::string& line) {
  append_line(chip.options, key, line);
  for (domain::ExecutorSpec& executor : chip.executors) {
    if (executor.options.contains(key)) append_line(executor.options, key, line);
  }
}

/// What the user says for the run wins over what an executor has for itself.
void set_option(ChipSpec& chip, const std::string& key, const std::string& value) {
  chip.options[key] = value;
  for (domain::ExecutorSpec& executor : chip.executors) executor.options.erase(key);
}

/// Where the user said it, for errors.
std::string said_as(const char* flag, const std::string& option) {
  return option == kBufferOption
             ? std::string(flag) + ", or key 'gen_config.trace_buffers' of a config file"
             : std::string(flag);
}

Result<void> add_options(ChipSpec& chip, const char* flag, const char* key, bool pairs,
                         const std::vector<std::string>& options) {
  for (const std::string& option : options) {
    if (option.empty() || option.find('\n') != std::string::npos)
      return fail(ErrorCode::InvalidInput,
                  std::string(flag) + ": an option is one line that is not empty");
    if (!pairs) {
      append_line(chip, key, option);
      continue;
    }
    const auto equals = option.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return fail(ErrorCode::InvalidInput, said_as(flag, option) + ": '" + option +
                                               "' is not KEY=VALUE; chip " + chip.name +
                                               " takes options of its execution provider");
    }
    set_option(chip, key + option.substr(0, equals), option.substr(equals + 1));
  }
  return {};
}

report::json::Array array_of(const std::vector<std::string>& texts) {
  report::json::Array out;
  for (const std::string& text : texts) out.emplace_back(text);
  return out;
}

}  // namespace

bool can_dump_ir(const ChipSpec& chip) {
  const Takes* takes = takes_of(chip.toolchain);
  return takes != nullptr && takes->dumps;
}

Result<ChipSpec> with_tool_options(ChipSpec chip, const ToolOptions& options) {
  const Takes* takes = takes_of(chip.toolchain);
  if (takes == nullptr && !(options.compiler.empty() && options.runtime.empty())) {
    return fail(
        ErrorCode::InvalidInput,
        (options.compiler.empty() ? std::string("--runtime-option")
                                  : said_as("--compiler-option", options.compiler.front())) +
            ": the toolchain " + chip.toolchain + " of chip " + chip.name + " takes no options");
  }
  if (takes == nullptr) return chip;
  if (auto added =
          add_options(chip, "--compiler-option", takes->compiler, takes->pairs, options.compiler);
      !added)
    return fail(added.error());
  if (auto added =
          add_options(chip, "--runtime-option", takes->runtime, takes->pairs, options.runtime);
      !added)
    return fail(added.error());
  if (!options.dump_folder.empty() && takes->dumps) set_option(chip, "dump_ir", "1");
  return chip;
}

void add_settings(const ToolOptions& options, report::json::Object& settings) {
  if (!options.compiler.empty()) settings.set("compiler_options", array_of(options.compiler));
  if (!options.runtime.empty()) settings.set("runtime_options", array_of(options.runtime));
  if (!options.hw_type.empty()) settings.set("torq_hw_type", options.hw_type);
}

}  // namespace layerfarm::coordinator::app
