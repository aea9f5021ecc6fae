#include "coordinator/app/slips.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "coordinator/app/command_tree.h"
#include "shared/base/near_names.h"
#include "shared/base/text.h"

namespace layerfarm::coordinator::app {
namespace {

constexpr std::size_t kMostNamed = 3;
/// A shorter word begins too many others.
constexpr std::size_t kShortestBeginning = 5;

/// What the word is a slip of, else what it is the beginning of.
std::vector<std::string> meant(std::string_view word, const std::vector<std::string>& known) {
  std::vector<std::string> out = base::likely_meant(word, known);
  if (out.empty() && word.size() >= kShortestBeginning) {
    std::copy_if(known.begin(), known.end(), std::back_inserter(out),
                 [word](const std::string& one) { return one.starts_with(word); });
  }
  if (out.size() > kMostNamed) out.resize(kMostNamed);
  return out;
}

std::vector<std::string> long_flags(const CommandView& command) {
  std::vector<std::string> out;
  for (const FlagView& flag : command.flags) {
    for (const std::string& name : flag.names) {
      if (name.starts_with("--")) out.push_back(name);
    }
  }
  return out;
}

/// Commands that have the flag, each by all its words.
void find_flag(const CommandView& command, const std::string& path, std::string_view flag,
               std::vector<std::string>& out) {
  const std::vector<std::string> flags = long_flags(command);
  if (!path.empty() && std::find(flags.begin(), flags.end(), flag) != flags.end())
    out.push_back(path);
  for (const CommandView& sub : command.commands)
    find_flag(sub, path.empty() ? sub.name : path + " " + sub.name, flag, out);
}

}  // namespace

std::string meant_text(std::string_view word, const std::vector<std::string>& known) {
  const std::vector<std::string> names = meant(word, known);
  return names.empty() ? "" : "; did you mean " + base::join(names, " or ") + "?";
}

std::string unknown_flag_lines(const CLI::App& app) {
  // The command that was asked for, as far as the words went.
  const CLI::App* command = &app;
  std::string path;
  for (std::vector<CLI::App*> subs = app.get_subcommands(); !subs.empty();
       subs = command->get_subcommands()) {
    command = subs.front();
    path += (path.empty() ? "" : " ") + command->get_name();
  }
  const std::vector<std::string> known = long_flags(command_tree(*command));
  const CommandView all = command_tree(app);
  std::string out;
  for (const std::string& word : app.remaining(/*recurse=*/true)) {
    if (!word.starts_with("--") || word == "--") continue;
    const std::string flag = word.substr(0, word.find('='));
    std::string hint = meant_text(flag, known);
    std::vector<std::string> elsewhere;
    if (hint.empty()) find_flag(all, "", flag, elsewhere);
    if (!elsewhere.empty()) hint = "; it is one of " + base::join(elsewhere);
    if (hint.empty()) continue;
    out += "Error: " + (path.empty() ? "there is no flag " : "`" + path + "` has no flag ") +
           base::printable(flag) + hint + "\n";
  }
  return out;
}

}  // namespace layerfarm::coordinator::app
