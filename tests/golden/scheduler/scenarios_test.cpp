// Each *.txt of this folder is a scenario: what it shows is written in it. scripts/bless (or
// LAYERFARM_BLESS=1) writes new outputs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/golden/scheduler/scenario.h"
#include "tests/support/paths.h"

namespace layerfarm::test {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> scenario_files() {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path folder = std::filesystem::path(kTestsFolder) / "golden/scheduler";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt" && entry.path().filename() != "CMakeLists.txt") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST_CASE("scheduler scenarios give the actions that their files hold") {
  const char* bless = std::getenv("LAYERFARM_BLESS");
  const std::vector<std::filesystem::path> files = scenario_files();
  CHECK(files.size() >= 10);
  for (const std::filesystem::path& file : files) {
    CAPTURE(file.filename().string());
    const std::string expected = read(file);
    const std::string actual = run_scenario(expected);
    CHECK(actual.find("BROKEN") == std::string::npos);
    CHECK(actual.find("bad command") == std::string::npos);
    if (bless != nullptr && *bless != '\0') {
      std::ofstream(file) << actual;
    } else {
      CHECK(actual == expected);
    }
  }
}

TEST_CASE("a scenario's output shows a change of behaviour") {
  const std::string scenario = "policy\njoin W1 can=0\njob E execute class=0\n----\n";
  CHECK(run_scenario(scenario) == scenario + "lease W1: a1=E\n");
  CHECK(run_scenario("nonsense\n----\n").find("bad command") != std::string::npos);
}

}  // namespace
}  // namespace layerfarm::test
