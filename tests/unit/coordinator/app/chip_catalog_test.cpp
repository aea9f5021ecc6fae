#include "coordinator/app/chip_catalog.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>

#include "shared/base/files.h"
#include "tests/support/environment_change.h"

using namespace layerfarm;
using coordinator::app::ChipCatalog;

namespace {

struct Folder {
  base::ScratchFolder scratch =
      *base::ScratchFolder::make(std::filesystem::temp_directory_path(), "layerfarm-test");
  void write(const std::string& name, const std::string& text) {
    std::ofstream(scratch.path() / name) << text;
  }
  void chip(const std::string& name, const std::string& evidence = "emulator") {
    write(name + ".json", R"({"toolchain": "null", "executors": [{"name": "e0", "evidence": ")" +
                              evidence + R"("}]})");
  }
  [[nodiscard]] ChipCatalog catalog() const { return ChipCatalog({scratch.path()}); }
};

std::vector<std::string> names(const coordinator::app::ChipSelection& selection) {
  std::vector<std::string> out;
  for (const auto& chip : selection.chips) out.push_back(chip.spec.name);
  return out;
}

}  // namespace

TEST_CASE("a comma list is sorted and each chip comes once") {
  Folder folder;
  folder.chip("b");
  folder.chip("a");
  const auto selection = folder.catalog().select(" b, a,b ");
  REQUIRE(selection.has_value());
  CHECK(names(*selection) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a group file lists one chip a line, comments and empty lines aside") {
  Folder folder;
  folder.chip("a");
  folder.chip("b");
  folder.write("two.group", "# both\n\nb # the first one\na#\n  # \n");
  CHECK(names(*folder.catalog().select("two.group")) == std::vector<std::string>{"a", "b"});
  const auto missing = folder.catalog().select("three.group");
  REQUIRE(!missing.has_value());
  CHECK(missing.error().text().find("three.group") != std::string::npos);
}

TEST_CASE("all means the latest ones, and every chip where none is called so") {
  Folder folder;
  folder.chip("a");
  folder.chip("b");
  const auto every = folder.catalog().select("all");
  CHECK(names(*every) == std::vector<std::string>{"a", "b"});
  CHECK(every->only_found);
  folder.chip("b_latest");
  const auto latest = folder.catalog().select("all");
  CHECK(names(*latest) == std::vector<std::string>{"b_latest"});
  CHECK(!latest->only_found);
}

TEST_CASE("a chip that tests nothing is used where it is named, and is none of all") {
  Folder folder;
  folder.chip("a");
  folder.chip("nothing", "stand-in");
  folder.write("mixed.json", R"({"toolchain": "null", "executors": [
    {"name": "e0", "evidence": "stand-in"}, {"name": "e1", "evidence": "hardware"}]})");
  CHECK(names(*folder.catalog().select("all")) == std::vector<std::string>{"a", "mixed"});
  CHECK(names(*folder.catalog().select("nothing")) == std::vector<std::string>{"nothing"});
  folder.write("wrong.json", "{ not json");
  const auto wrong = folder.catalog().select("all");
  REQUIRE(!wrong.has_value());
  CHECK(wrong.error().text().find("wrong.json") != std::string::npos);
}

TEST_CASE(
    "a name that no file describes is a torq target as it stands, and the nearest names can be "
    "told") {
  Folder folder;
  folder.chip("SM8550");
  folder.chip("host-cpu");
  const auto selection = folder.catalog().select("SM8551");
  REQUIRE(selection.has_value());
  CHECK(!selection->chips[0].known);
  CHECK(selection->chips[0].spec.toolchain == "torq");
  CHECK(selection->chips[0].spec.target == "SM8551");
  CHECK(folder.catalog().nearest("SM8551", 1) == std::vector<std::string>{"SM8550"});
}

TEST_CASE("default is SL2610 unless the environment names another chip") {
  Folder folder;
  folder.chip("mine");
  const tests::EnvironmentChange none("LAYERFARM_CHIP", {});
  CHECK(names(*folder.catalog().select("default")) == std::vector<std::string>{"SL2610"});
  CHECK(names(*folder.catalog().select("default.group")) == std::vector<std::string>{"SL2610"});
  CHECK(coordinator::app::is_unnamed("default"));
  CHECK(!coordinator::app::is_unnamed("SL2610"));
  const tests::EnvironmentChange mine("LAYERFARM_CHIP", "mine");
  CHECK(names(*folder.catalog().select("default")) == std::vector<std::string>{"mine"});
  CHECK(!coordinator::app::is_unnamed("default"));
}

TEST_CASE("an earlier folder wins, and a wrong file is named") {
  Folder first;
  Folder second;
  second.chip("a");
  first.write("a.json", "{ not json");
  const auto selection = ChipCatalog({first.scratch.path(), second.scratch.path()}).select("a");
  REQUIRE(!selection.has_value());
  CHECK(selection.error().text().find((first.scratch.path() / "a.json").string()) !=
        std::string::npos);
  CHECK(ChipCatalog({second.scratch.path()}).select("a").has_value());
}

TEST_CASE("names that walk through folders and empty requests are refused") {
  Folder folder;
  CHECK(!folder.catalog().select("../a").has_value());
  CHECK(!folder.catalog().select("../a.group").has_value());
  CHECK(!folder.catalog().select(" , ").has_value());
}

TEST_CASE(
    "another hardware type takes the place of the file's, and of all that holds for that one") {
  Folder folder;
  folder.write("board.json", R"({"toolchain": "torq", "runtime_hw_type": "sim", "executors": [
    {"name": "nss", "evidence": "hardware",
     "by_hw_type": {"sim": {"evidence": "emulator", "tolerance": {"fp_max_tol": 0.5}}}}]})");
  const auto evidence_on = [&folder](const std::string& hw_type) {
    const auto selection = ChipCatalog({folder.scratch.path()}, hw_type).select("board");
    REQUIRE_MESSAGE(selection, selection.error().text());
    return selection->chips[0].spec;
  };
  CHECK(evidence_on("").hw_type == "sim");
  CHECK(evidence_on("sim").executors[0].evidence == domain::Evidence::Emulator);
  const domain::ChipSpec board = evidence_on("aws_fpga");
  CHECK(board.hw_type == "aws_fpga");
  CHECK(board.executors[0].evidence == domain::Evidence::Hardware);
  CHECK(board.executors[0].tolerance.fp_max_tol == doctest::Approx(0.01));
}

TEST_CASE("a hardware type is refused where there are none, and reaches targets without a file") {
  Folder folder;
  folder.chip("a");
  const ChipCatalog catalog({folder.scratch.path()}, "aws_fpga");
  const auto refused = catalog.select("a");
  REQUIRE(!refused.has_value());
  CHECK(refused.error().text() ==
        "--torq-hw-type: chip a has no run-time hardware types (toolchain null)");
  const auto target = catalog.select("SL9999");
  REQUIRE(target.has_value());
  CHECK(target->chips[0].spec.hw_type == "aws_fpga");
  CHECK(target->chips[0].spec.executors[0].evidence == domain::Evidence::Hardware);
}
