#include "coordinator/app/man_page.h"

#include <fmt/format.h>

#include "coordinator/app/command_tree.h"

namespace layerfarm::coordinator::app {
namespace {

constexpr const char* kProgram = "layerfarm";

/// Text as roff takes it: its own signs mean themselves, a hyphen is the one of flags.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return !out.empty() && (out.front() == '.' || out.front() == '\'') ? "\\&" + out : out;
}

std::string value_of(const FlagView& flag) {
  if (flag.value.empty()) return "";
  std::string value = flag.choices.empty() ? "\\fI" + roff(flag.value) + "\\fR" : "";
  for (const std::string& choice : flag.choices) value += (value.empty() ? "" : "|") + roff(choice);
  return flag.value_optional ? "[=" + value + "]" : " " + value;
}

std::string flag_entry(const FlagView& flag) {
  std::string names;
  for (const std::string& name : flag.names)
    names += (names.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  return ".TP\n" + names + value_of(flag) + (flag.repeatable ? " ..." : "") + "\n" +
         roff(flag.help) + "\n";
}

void command_section(const CommandView& command, const std::string& path, std::string& out) {
  std::string arguments;
  for (const FlagView& argument : command.positionals) {
    const std::string& name = argument.names.front();
    arguments += argument.value_optional ? " [" + name + "]" : " " + name;
  }
  if (!command.commands.empty()) arguments += " COMMAND";
  const std::string options = command.flags.size() > 1 ? " [OPTIONS]" : "";  // beside --help
  out +=
      fmt::format(".SS \"{}{}{}\"\n{}\n", roff(path), options, roff(arguments), roff(command.help));
  for (const FlagView& argument : command.positionals) {
    out += ".TP\n\\fI" + roff(argument.names.front()) + "\\fR\n" + roff(argument.help) + "\n";
  }
  for (const FlagView& flag : command.flags) {
    if (flag.names.front() != "--help") out += flag_entry(flag);
  }
  for (const CommandView& below : command.commands)
    command_section(below, path + " " + below.name, out);
}

constexpr const char* kEnd = R"(.SH EXIT STATUS
.TP
0
All went well. discover: every case is a success, skipped or copied.
.TP
1
An error, or (discover) some case is a difference or an error; \fB\-\-fail\-on\fR moves this line. compare: the files differ.
.TP
2
The command line cannot be used. compare: a file cannot be used.
.TP
3
Some case has no verdict for reasons of the machine; running the same command again goes on there.
.SH ENVIRONMENT
.TP
LAYERFARM_CACHE_DIR, TORQ_GEN_CONFIG_CACHE_DIR
Folder of the store (default: ~/.cache/layerfarm).
.TP
LAYERFARM_DEPS_DIR
Folder of the installed toolchains (default: ~/.cache/layerfarm\-deps).
.TP
ONNXRUNTIME_ROOT
An unpacked release of ONNX Runtime, to be used instead of the installed one.
.TP
LAYERFARM_CHIP
What the chip "default" means (otherwise SL2610).
.TP
LAYERFARM_CHIPS
Folder with chip files of your own.
.TP
TORQ_COMPILE, TORQ_RUN_MODULE, TORQ_TOOL_PATH
The torq tools, or their folder.
.TP
IREE_COMPILE, IREE_RUN_MODULE
IREE's programs, where others than the installed ones shall be used.
.SH FILES
.TP
torq_gen_config_MODEL.json
The report.
.TP
torq_gen_config_MODEL_compiler.json
The assignment that a compiler pass reads.
.TP
torq_gen_config_MODEL_mac_debug.json
MAC counts.
)";

}  // namespace

std::string man_page(const CLI::App& app, const std::string& version) {
  const CommandView root = command_tree(app);
  std::string out = fmt::format(
      ".\\\" made by `{0} man`\n.TH LAYERFARM 1 \"\" \"{0} {1}\" \"User Commands\"\n"
      ".SH NAME\n{0}, torq\\-gen\\-config \\- find the executor that runs each layer of a model\n"
      ".SH SYNOPSIS\n\\fB{0}\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
      ".SH DESCRIPTION\n{2}\n.SH OPTIONS\n",
      kProgram, roff(version), roff(root.help));
  for (const FlagView& flag : root.flags) out += flag_entry(flag);
  out += ".SH COMMANDS\n";
  for (const CommandView& command : root.commands)
    command_section(command, std::string(kProgram) + " " + command.name, out);
  return out + kEnd;
}

}  // namespace layerfarm::coordinator::app
