#include "coordinator/app/completion.h"

#include <fmt/format.h>

#include "coordinator/app/command_tree.h"
#include "shared/base/text.h"

namespace layerfarm::coordinator::app {
namespace {

constexpr const char* kProgram = "layerfarm";
constexpr const char* kOtherName = "torq-gen-config";

/// Ends of the names of JSON files that a report's reader has no use for.
std::string_view useless_ends(Offers offers) {
  return offers == Offers::Reports ? "mac_debug|compiler" : "mac_debug";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

std::vector<std::string> names_of(const std::vector<CommandView>& commands) {
  std::vector<std::string> out;
  for (const CommandView& command : commands) out.push_back(command.name);
  return out;
}

std::vector<std::string> names_of(const std::vector<FlagView>& flags) {
  std::vector<std::string> out;
  for (const FlagView& flag : flags) out.insert(out.end(), flag.names.begin(), flag.names.end());
  return out;
}

// ---- bash ----

/// What bash offers after a flag that takes a value.
std::string bash_value(const FlagView& flag) {
  switch (flag.offers) {
    case Offers::Files:
      return "kind=file";
    case Offers::Folders:
      return "kind=dir";
    case Offers::Choices:
      return "kind=words words='" + base::join(flag.choices, " ") + "'";
    case Offers::Reports:
    case Offers::ReportOrMaps:
      return fmt::format("kind=json without='{}'", useless_ends(flag.offers));
    case Offers::Nothing:
      return "kind=none";
  }
  return "kind=none";
}

/// A branch per command, `path` being the words that lead to it: "cache prune".
void bash_branches(const CommandView& command, const std::string& path, std::string& out) {
  std::vector<std::string> words = names_of(command.flags);
  const auto add = [&words](const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  add(names_of(command.commands));
  const FlagView* takes_files = nullptr;
  for (const FlagView& argument : command.positionals) {
    add(argument.choices);
    if (takes_files == nullptr && argument.choices.empty()) takes_files = &argument;
  }
  out += fmt::format("    '{}')\n      words='{}'\n", path, base::join(words, " "));
  // A word with dashes is a flag's name all the same.
  if (takes_files != nullptr)
    out += fmt::format("      if [[ $current != -* ]]; then {}; fi\n", bash_value(*takes_files));
  out += "      case $previous in\n";
  for (const FlagView& flag : command.flags) {
    if (flag.value.empty() || flag.value_optional) continue;
    out += fmt::format("        {}) {} ;;\n", base::join(flag.names, "|"), bash_value(flag));
  }
  out += "      esac\n";
  // A value that may be left out can only follow "=".
  out += "      case $assigned in\n";
  for (const FlagView& flag : command.flags) {
    if (flag.value.empty()) continue;
    out += fmt::format("        {}) {} ;;\n", base::join(flag.names, "|"), bash_value(flag));
  }
  out += "      esac\n      ;;\n";
  for (const CommandView& below : command.commands)
    bash_branches(below, path.empty() ? below.name : path + " " + below.name, out);
}

/// Names that lead to some command, each with the words before it.
void bash_paths(const CommandView& command, const std::string& path, std::string& out) {
  for (const CommandView& below : command.commands) {
    const std::string whole = path.empty() ? below.name : path + " " + below.name;
    out += (out.empty() ? "'" : "|'") + whole + "'";
    bash_paths(below, whole, out);
  }
}

std::string bash(const CommandView& root) {
  std::string paths;
  bash_paths(root, "", paths);
  std::string branches;
  bash_branches(root, "", branches);
  return fmt::format(R"(# bash completion, made by `{0} completion bash`
_{0}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} assigned=
  # Bash splits --flag=value at the sign.
  if [[ $current == = ]]; then assigned=$previous previous= current=
  elif [[ $previous == = ]]; then assigned=${{COMP_WORDS[COMP_CWORD-2]}} previous=; fi
  local path= word longer
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    longer=${{path:+$path }}$word
    case $longer in
      {1}) path=$longer ;;
    esac
  done
  local words= kind=words without= file
  case $path in
{2}  esac
  COMPREPLY=()
  case $kind in
    file) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    dir) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    json) compopt -o filenames
      while IFS= read -r file; do
        if [[ -d $file || ( $file == *.json && ! $file =~ _($without)\.json$ ) ]]; then COMPREPLY+=("$file"); fi
      done < <(compgen -f -- "$current") ;;
    words) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
  esac
}}
complete -F _{0} {0} {3}
)",
                     kProgram, paths, branches, kOtherName);
}

// ---- zsh ----

std::string zsh_quoted(std::string text) {
  for (const char* special : {"\\", "[", "]", ":"})
    text = replaced(std::move(text), special, std::string("\\") + special);
  return replaced(std::move(text), "'", "'\\''");
}

std::string zsh_action(const FlagView& flag) {
  switch (flag.offers) {
    case Offers::Files:
      return "_files";
    case Offers::Folders:
      return "_files -/";
    case Offers::Choices:
      return "(" + base::join(flag.choices, " ") + ")";
    case Offers::Reports:
    case Offers::ReportOrMaps:
      return fmt::format("_files -g \"*.json~*_({}).json\"", useless_ends(flag.offers));
    case Offers::Nothing:
      return " ";
  }
  return " ";
}

std::string zsh_flag(const FlagView& flag) {
  std::string out;
  for (const std::string& name : flag.names) {
    const bool is_long = name.starts_with("--");
    out += std::string("      '") + (flag.repeatable ? "*" : "") + name;
    if (!flag.value.empty() && is_long) out += flag.value_optional ? "=-" : "=";
    out += "[" + zsh_quoted(flag.help) + "]";
    if (!flag.value.empty())
      out += (flag.value_optional ? "::" : ":") + zsh_quoted(flag.value) + ":" + zsh_action(flag);
    out += "' \\\n";
  }
  return out;
}

void zsh_function(const CommandView& command, const std::string& function, std::string& out) {
  for (const CommandView& below : command.commands)
    zsh_function(below, function + "_" + below.name, out);
  out += function + "() {\n";
  if (command.commands.empty()) {
    out += "  _arguments \\\n";
    for (const FlagView& flag : command.flags) out += zsh_flag(flag);
    for (const FlagView& argument : command.positionals)
      out += std::string("      '") + (argument.repeatable ? "*:" : ":") +
             zsh_quoted(argument.names.front()) + ":" + zsh_action(argument) + "' \\\n";
    out += "      && return\n}\n";
    return;
  }
  out += "  local state line\n  local -a commands\n  commands=(\n";
  for (const CommandView& below : command.commands)
    out += "    '" + zsh_quoted(below.name) + ":" + zsh_quoted(below.help) + "'\n";
  out += "  )\n  _arguments -C \\\n";
  for (const FlagView& flag : command.flags) out += zsh_flag(flag);
  out += "      '1:command:->command' '*::argument:->argument' && return\n";
  out += "  case $state in\n    command) _describe command commands ;;\n    argument)\n";
  out += "      case $line[1] in\n";
  for (const CommandView& below : command.commands)
    out += fmt::format("        {0}) {1}_{0} ;;\n", below.name, function);
  out += "      esac ;;\n  esac\n}\n";
}

std::string zsh(const CommandView& root) {
  std::string out = fmt::format(
      "#compdef {0} {1}\n# zsh completion, made by `{0} completion zsh`\n", kProgram, kOtherName);
  const std::string function = std::string("_") + kProgram;
  zsh_function(root, function, out);
  // As a file of $fpath it is called by its name, sourced it registers itself.
  return out + fmt::format(
                   "if [[ $funcstack[1] == {0} ]]; then {0} \"$@\"; else compdef {0} {1} {2}; fi\n",
                   function, kProgram, kOtherName);
}

// ---- fish ----

std::string fish_quoted(std::string text) {
  text = replaced(std::move(text), "\\", "\\\\");
  return "'" + replaced(std::move(text), "'", "\\'") + "'";
}

std::string fish_value(const FlagView& flag) {
  if (flag.value.empty()) return "";
  // -r: a value has to follow; without it "--flag=" may still be given one.
  const std::string must = flag.value_optional ? "" : " -r";
  switch (flag.offers) {
    case Offers::Files:
      return must + " -F";
    case Offers::Folders:
      return must + " -f -a '(__fish_complete_directories)'";
    case Offers::Choices:
      return must + " -f -a " + fish_quoted(base::join(flag.choices, " "));
    case Offers::Reports:
    case Offers::ReportOrMaps:
      return must + " -f -a " +
             fish_quoted(fmt::format("(__fish_complete_suffix .json | string match -rv "
                                     "'_({})\\.json(\\t|$)')",
                                     useless_ends(flag.offers)));
    case Offers::Nothing:
      return must + " -f";
  }
  return must;
}

void fish_command(const CommandView& command, const std::string& condition, std::string& out) {
  const std::string start = fmt::format("complete -c {} -n {}", kProgram, fish_quoted(condition));
  for (const FlagView& flag : command.flags) {
    out += start;
    for (const std::string& name : flag.names)
      out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    out += fish_value(flag) + " -d " + fish_quoted(flag.help) + "\n";
  }
  for (const FlagView& argument : command.positionals) {
    if (argument.offers == Offers::Files) continue;  // as fish does of itself
    FlagView words = argument;
    words.value_optional = true;  // no flag that a value has to follow
    out += start + fish_value(words) + " -d " + fish_quoted(argument.help) + "\n";
  }
  for (const CommandView& below : command.commands) {
    out += fmt::format("{} -f -a {} -d {}\n", start, below.name, fish_quoted(below.help));
    fish_command(below, "__fish_seen_subcommand_from " + below.name, out);
  }
}

std::string fish(const CommandView& root) {
  std::string out =
      fmt::format("# fish completion, made by `{0} completion fish`\ncomplete -c {1} -w {0}\n",
                  kProgram, kOtherName);
  fish_command(root, "__fish_use_subcommand", out);
  return out;
}

}  // namespace

std::string_view shell_name(Shell shell) {
  switch (shell) {
    case Shell::Bash:
      return "bash";
    case Shell::Zsh:
      return "zsh";
    case Shell::Fish:
      return "fish";
  }
  return "";
}

std::string completion_text(const CLI::App& app, Shell shell) {
  const CommandView root = command_tree(app);
  switch (shell) {
    case Shell::Bash:
      return bash(root);
    case Shell::Zsh:
      return zsh(root);
    case Shell::Fish:
      return fish(root);
  }
  return "";
}

}  // namespace layerfarm::coordinator::app
