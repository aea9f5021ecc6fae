#include "coordinator/app/command_tree.h"

#include <algorithm>
#include <sstream>

namespace layerfarm::coordinator::app {
namespace {

/// "{node,qdq}" at the end of a type's text: what CLI::IsMember adds.
std::vector<std::string> choices_in(const std::string& type) {
  const auto open = type.find('{');
  const auto close = type.rfind('}');
  std::vector<std::string> out;
  if (open == std::string::npos || close == std::string::npos || close < open) return out;
  std::stringstream list(type.substr(open + 1, close - open - 1));
  for (std::string word; std::getline(list, word, ',');) {
    if (!word.empty()) out.push_back(word);
  }
  return out;
}

/// "[DIR]", "[=exact]" and "UNIT:{node,qdq}" without what surrounds the name.
std::string plain_name(std::string type) {
  type = type.substr(0, type.find(':'));
  std::erase_if(type, [](char c) { return c == '[' || c == ']'; });
  return type.starts_with('=') ? type.substr(1) : type;
}

Offers offers_of(const std::string& value, const std::vector<std::string>& choices) {
  if (!choices.empty()) return Offers::Choices;
  if (value == "FILE") return Offers::Files;
  if (value == "REPORT") return Offers::Reports;
  if (value == "JSON") return Offers::ReportOrMaps;
  return value == "DIR" ? Offers::Folders : Offers::Nothing;
}

FlagView flag_view(const CLI::Option& option) {
  FlagView out;
  out.help = option.get_description();
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  const bool positional = out.names.empty();
  if (positional) out.names.push_back(option.get_name(/*positional=*/true));
  if (option.get_expected_max() == 0) return out;
  const std::string type = option.get_type_name();
  out.value = plain_name(type);
  if (out.value.empty()) out.value = "VALUE";
  out.value_optional = positional ? !option.get_required() : option.get_expected_min() == 0;
  out.repeatable = option.get_items_expected_max() > 1;
  out.choices = choices_in(type);
  out.offers = offers_of(out.value, out.choices);
  if (positional && out.offers == Offers::Nothing) out.offers = Offers::Files;
  return out;
}

}  // namespace

CommandView command_tree(const CLI::App& app) {
  CommandView out;
  out.name = app.get_name();
  out.help = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    const bool positional = option->get_lnames().empty() && option->get_snames().empty();
    (positional ? out.positionals : out.flags).push_back(flag_view(*option));
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    out.commands.push_back(command_tree(*sub));
  return out;
}

}  // namespace layerfarm::coordinator::app
