#include "worker/toolchain/option_files.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "shared/base/files.h"
#include "worker/toolchain/describe.h"

using namespace layerfarm;
namespace fs = std::filesystem;
using worker::toolchain::option_files;

namespace {

struct Bench {
  base::ScratchFolder scratch = *base::ScratchFolder::make(fs::temp_directory_path(), "options");
  fs::path folder = scratch.path();

  fs::path file(const std::string& name, const std::string& content = "a") const {
    const fs::path path = folder / name;
    REQUIRE(base::write_file_atomically(path, content, base::Sync::No));
    return path;
  }
};

domain::ChipSpec chip_with(const std::string& key, const std::string& value) {
  domain::ChipSpec chip;
  chip.name = "c";
  chip.toolchain = "ort";
  chip.executors.push_back({.name = "cpu"});
  chip.options[key] = value;
  return chip;
}

}  // namespace

TEST_CASE("an option names a file as its whole value, or behind a sign that ends another word") {
  const Bench bench;
  const std::string a = bench.file("a.json").string();
  const std::string odd = bench.file("o,d=d.txt").string();
  const auto found = [](const std::string& value) {
    return option_files(chip_with("flags", value));
  };
  CHECK(found(a) == std::vector<fs::path>{a});
  CHECK(found("--flagfile=" + a) == std::vector<fs::path>{a});
  CHECK(found("--load=x:" + a + ",y") == std::vector<fs::path>{a});
  CHECK(found("@" + a) == std::vector<fs::path>{a});
  CHECK(found("--one=1\n--flagfile=" + odd + "\n--again=" + odd) == std::vector<fs::path>{odd});
  CHECK(found("--list=" + a + "," + odd) == std::vector<fs::path>{a, odd});
  CHECK(found("--flagfile=" + a + "x").empty());
  CHECK(found("--folder=" + bench.folder.string()).empty());  // a folder is none
  CHECK(found("-O3 host").empty());
}

TEST_CASE("options of executors count, and a file that two of them name counts once") {
  const Bench bench;
  const std::string a = bench.file("a.json").string();
  domain::ChipSpec chip = chip_with("x", "1");
  chip.executors.push_back({.name = "other", .options = {{"config", a}}});
  CHECK(option_files(chip) == std::vector<fs::path>{a});
  chip.options["config"] = a;
  CHECK(option_files(chip) == std::vector<fs::path>{a});
}

TEST_CASE("a tool is another one when a file that its options name holds something else") {
  const Bench bench;
  const std::string a = bench.file("a.txt", "one").string();
  const auto tool = [](const domain::ChipSpec& chip) {
    const protocol::Ability ability = worker::toolchain::ability_for(chip);
    REQUIRE(ability.found);
    return ability.identity.files;
  };
  const domain::ChipSpec chip = chip_with("session.config", a);
  const base::Digest plain = tool(chip_with("session.config", "none"));
  const base::Digest one = tool(chip);
  CHECK(one != plain);
  CHECK(tool(chip) == one);
  bench.file("a.txt", "two");
  CHECK(tool(chip) != one);
  bench.file("a.txt", "one");
  CHECK(tool(chip) == one);
  // None is like a chip that names none, as the tool says itself that it is missing.
  fs::remove(a);
  CHECK(tool(chip) == plain);
}

TEST_CASE("of a large file size and time count") {
  const Bench bench;
  const fs::path large = bench.file("large.bin");
  fs::resize_file(large, worker::toolchain::kMostOptionFile + 1);  // holes only
  const auto digest = [&] { return worker::toolchain::digest_of_option_files({large}); };
  const base::Digest before = digest();
  CHECK(digest() == before);
  fs::last_write_time(large, fs::last_write_time(large) + std::chrono::seconds(1));
  CHECK(digest() != before);
}
