#include "coordinator/app/slips.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace layerfarm::coordinator::app;

namespace {

/// What is said of a command line that the parser refuses.
std::string said_of(std::vector<std::string> words) {
  CLI::App app("test", "layerfarm");
  std::string text;
  bool flag = false;
  CLI::App* edit = app.add_subcommand("edit");
  edit->add_option("--tolerance-max", text);
  edit->add_option("--tolerance-avg", text);
  edit->add_option("-v,--verbose", flag);
  CLI::App* cache = app.add_subcommand("cache");
  cache->add_subcommand("prune")->add_option("--max-size", text);
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  try {
    app.parse(words);
  } catch (const CLI::ParseError&) {
    return unknown_flag_lines(app);
  }
  return "no error";
}

}  // namespace

TEST_CASE("a misspelt flag is said with those that may be meant") {
  CHECK(said_of({"edit", "--tolerence-max", "0.1"}) ==
        "Error: `edit` has no flag --tolerence-max; did you mean --tolerance-max?\n");
  CHECK(said_of({"edit", "--tolerence-max=0.1"}) ==
        "Error: `edit` has no flag --tolerence-max; did you mean --tolerance-max?\n");
  CHECK(said_of({"edit", "--Verbos"}) ==
        "Error: `edit` has no flag --Verbos; did you mean --verbose?\n");
  CHECK(said_of({"cache", "prune", "--maxsize", "1"}) ==
        "Error: `cache prune` has no flag --maxsize; did you mean --max-size?\n");
  // A beginning.
  CHECK(said_of({"edit", "--toler"}) ==
        "Error: `edit` has no flag --toler; did you mean --tolerance-max or --tolerance-avg?\n");
}

TEST_CASE("a flag of another command is said to be that") {
  CHECK(said_of({"edit", "--max-size", "1"}) ==
        "Error: `edit` has no flag --max-size; it is one of cache prune\n");
}

TEST_CASE("what is like nothing gets no line beside the parser's own") {
  CHECK(said_of({"edit", "--quite-another"}).empty());
  CHECK(said_of({"edit", "word"}).empty());
  CHECK(said_of({"edit", "--verbose", "true"}) == "no error");
  CHECK(meant_text("x", {"abc", "abd"}).empty());
  CHECK(meant_text("discovr", {"discover", "run"}) == "; did you mean discover?");
}
