#include "coordinator/app/command_tree.h"

#include <doctest/doctest.h>

#include "coordinator/app/completion.h"
#include "coordinator/app/man_page.h"

using namespace layerfarm::coordinator;

namespace {

struct Program {
  CLI::App app{"Does things.", "layerfarm"};
  std::string text;
  std::vector<std::string> list;
  bool flag = false;

  Program() {
    CLI::App* work = app.add_subcommand("work", "It's work: [hard]");
    work->add_option("--from-file", text, "A \\ file")->type_name("FILE");
    work->add_option("--into", list, "Folders")->type_name("DIR")->allow_extra_args(false);
    work->add_option("--how", text, "Way")->check(CLI::IsMember({"fast", "slow"}));
    work->add_option("--maybe", text, "Perhaps")->expected(0, 1)->type_name("[DIR]");
    work->add_option("--pair", text, "Two")->type_name("NAME=N");
    work->add_option("--mode", text, "One")->expected(0, 1)->type_name("[=exact]");
    work->add_flag("-v,--verbose", flag, ".More");
    work->add_option("input", text, "What")->required();
    CLI::App* look = app.add_subcommand("look", "Looks");
    look->add_option("report", text, "At")->type_name("REPORT");
    CLI::App* weigh = app.add_subcommand("weigh", "Weighs");
    weigh->add_option("file", text, "Of")->type_name("JSON");
    CLI::App* clean = app.add_subcommand("store", "Keeps")->add_subcommand("clean", "Cleans");
    clean->add_option("what", list, "Rooms")->check(CLI::IsMember({"attic", "cellar"}));
  }
};

const app::FlagView& named(const app::CommandView& command, const std::string& name) {
  for (const app::FlagView& flag : command.flags) {
    if (flag.names.front() == name) return flag;
  }
  FAIL("no flag " << name);
  return command.flags.front();
}

}  // namespace

TEST_CASE("the tree has every command and flag, and what their values are") {
  const Program program;
  const app::CommandView root = app::command_tree(program.app);
  REQUIRE(root.commands.size() == 4);
  const app::CommandView& work = root.commands[0];
  CHECK(work.name == "work");
  CHECK(work.help == "It's work: [hard]");
  CHECK(named(work, "--from-file").offers == app::Offers::Files);
  CHECK_FALSE(named(work, "--from-file").repeatable);
  CHECK(named(work, "--into").offers == app::Offers::Folders);
  CHECK(named(work, "--into").repeatable);
  CHECK(named(work, "--how").choices == std::vector<std::string>{"fast", "slow"});
  CHECK(named(work, "--maybe").value_optional);
  CHECK(named(work, "--maybe").value == "DIR");
  CHECK(named(work, "--pair").value == "NAME=N");
  CHECK(named(work, "--mode").value == "exact");
  CHECK(named(work, "--verbose").value.empty());
  CHECK(named(work, "--verbose").names == std::vector<std::string>{"--verbose", "-v"});
  REQUIRE(work.positionals.size() == 1);
  CHECK(work.positionals[0].names == std::vector<std::string>{"input"});
  CHECK(root.commands[3].commands[0].name == "clean");
}

TEST_CASE("a shell offers the words that an argument may be, and files where it may be anything") {
  const Program program;
  const app::CommandView root = app::command_tree(program.app);
  CHECK(root.commands[0].positionals[0].offers == app::Offers::Files);
  const app::FlagView& what = root.commands[3].commands[0].positionals.at(0);
  CHECK(what.choices == std::vector<std::string>{"attic", "cellar"});
  CHECK(what.offers == app::Offers::Choices);
  const auto text = [&](app::Shell shell) { return app::completion_text(program.app, shell); };
  CHECK(text(app::Shell::Bash).find("words='--help -h attic cellar'\n      case") !=
        std::string::npos);
  CHECK(text(app::Shell::Bash).find("'work')\n      words='--help -h") != std::string::npos);
  CHECK(text(app::Shell::Zsh).find("'*:what:(attic cellar)'") != std::string::npos);
  CHECK(text(app::Shell::Zsh).find("':input:_files'") != std::string::npos);
  CHECK(text(app::Shell::Fish)
            .find("-n '__fish_seen_subcommand_from clean' -f -a 'attic cellar' -d 'Rooms'") !=
        std::string::npos);
}

TEST_CASE("where a report is wanted, no shell offers what lies beside reports") {
  const Program program;
  const app::CommandView root = app::command_tree(program.app);
  CHECK(root.commands[1].positionals[0].offers == app::Offers::Reports);
  CHECK(root.commands[2].positionals[0].offers == app::Offers::ReportOrMaps);
  const auto has = [&](app::Shell shell, const char* text) {
    return app::completion_text(program.app, shell).find(text) != std::string::npos;
  };
  CHECK(has(app::Shell::Bash, "then kind=json without='mac_debug|compiler'; fi"));
  CHECK(has(app::Shell::Bash, "then kind=json without='mac_debug'; fi"));
  CHECK(has(app::Shell::Zsh, R"(':report:_files -g "*.json~*_(mac_debug|compiler).json"')"));
  CHECK(has(app::Shell::Zsh, R"(':file:_files -g "*.json~*_(mac_debug).json"')"));
  CHECK(has(app::Shell::Fish,
            R"(string match -rv \'_(mac_debug|compiler)\\.json(\\t|$)\')' -d 'At')"));
}

TEST_CASE("zsh and fish texts escape what is special to them") {
  const Program program;
  const std::string zsh = app::completion_text(program.app, app::Shell::Zsh);
  CHECK(zsh.find("#compdef layerfarm torq-gen-config\n") == 0);
  CHECK(zsh.find(R"('work:It'\''s work\: \[hard\]')") != std::string::npos);
  CHECK(zsh.find(R"('--from-file=[A \\ file]:FILE:_files')") != std::string::npos);
  CHECK(zsh.find("'*--into=[Folders]:DIR:_files -/'") != std::string::npos);
  CHECK(zsh.find("'--maybe=-[Perhaps]::DIR:_files -/'") != std::string::npos);
  CHECK(zsh.find("(fast slow)'") != std::string::npos);
  const std::string fish = app::completion_text(program.app, app::Shell::Fish);
  CHECK(fish.find("complete -c torq-gen-config -w layerfarm\n") != std::string::npos);
  CHECK(fish.find(R"(-n '__fish_use_subcommand' -f -a work -d 'It\'s work: [hard]')") !=
        std::string::npos);
  CHECK(fish.find(R"(-l from-file -r -F -d 'A \\ file')") != std::string::npos);
  CHECK(fish.find("-l verbose -s v -d '.More'") != std::string::npos);
  CHECK(fish.find("-f -a 'fast slow'") != std::string::npos);
  CHECK(fish.find("-n '__fish_seen_subcommand_from store' -f -a clean") != std::string::npos);
}

TEST_CASE("the manual page has every flag, with roff's own signs escaped") {
  const Program program;
  const std::string page = app::man_page(program.app, "1.2.3");
  CHECK(page.find(".TH LAYERFARM 1 \"\" \"layerfarm 1.2.3\"") != std::string::npos);
  CHECK(page.find("\\fB\\-\\-from\\-file\\fR \\fIFILE\\fR\nA \\e file\n") != std::string::npos);
  CHECK(page.find("\\fB\\-\\-verbose\\fR, \\fB\\-v\\fR\n\\&.More\n") != std::string::npos);
  CHECK(page.find("\\fB\\-\\-how\\fR fast|slow\n") != std::string::npos);
  CHECK(page.find("\\fB\\-\\-maybe\\fR[=\\fIDIR\\fR]\n") != std::string::npos);
  CHECK(page.find(".SS \"layerfarm store clean [what]\"") != std::string::npos);
}
