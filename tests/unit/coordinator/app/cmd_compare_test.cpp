#include "coordinator/app/cmd_compare.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>

#include "coordinator/report/json.h"
#include "shared/base/files.h"
#include "tests/support/paths.h"

using namespace layerfarm;
using namespace layerfarm::coordinator;
namespace fs = std::filesystem;

namespace {

struct Shown {
  int code = 0;
  std::string out;
  std::string err;
};

Shown compare(const app::CompareOptions& options) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = app::cmd_compare(options, out, err);
  return {code, out.str(), err.str()};
}

struct Folder {
  base::ScratchFolder scratch =
      *base::ScratchFolder::make(fs::temp_directory_path(), "layerfarm-test");
  std::string put(const std::string& name, const std::string& text) const {
    fs::create_directories((scratch.path() / name).parent_path());
    REQUIRE(base::write_file_atomically(scratch.path() / name, text, base::Sync::No));
    return (scratch.path() / name).string();
  }
  [[nodiscard]] std::string dir(const std::string& name = "") const {
    return (scratch.path() / name).string();
  }
};

std::string report_on(const std::string& status) {
  return R"({"ops": {"Conv_a": {"executors": {"nss": {"status": ")" + status +
         R"("}}}}, "model_name": "m"})";
}
const std::string kCompiler = R"({"op_assignments": {"1:1": {"executor": "nss"}}})";

const fs::path kGolden = fs::path(test::kTestsFolder) / "golden" / "report";

}  // namespace

TEST_CASE("compare ends with 0 for the same, 1 for a difference, 2 for what it cannot use") {
  const Folder folder;
  const std::string good = folder.put("good.json", report_on("success"));
  const std::string bad = folder.put("bad.json", report_on("error"));
  CHECK(compare({.a = good, .b = good}).code == 0);
  const Shown changed = compare({.a = good, .b = bad});
  CHECK(changed.code == 1);
  CHECK(changed.err.empty());
  CHECK(changed.out.find("Conv_a on NSS: success -> error\n") != std::string::npos);

  const Shown missing = compare({.a = good, .b = folder.dir("none.json")});
  CHECK(missing.code == 2);
  CHECK(missing.err == "Error: Config file not found: " + folder.dir("none.json") + "\n");
  CHECK(compare({.a = folder.put("broken.json", "{"), .b = good}).code == 2);
  const Shown neither = compare({.a = folder.put("other.json", "{}"), .b = good});
  CHECK(neither.code == 2);
  CHECK(neither.err.find("Error: " + folder.dir("other.json") + " is neither a report") == 0);
  const Shown mixed = compare({.a = good, .b = folder.put("c.json", kCompiler)});
  CHECK(mixed.code == 2);
  CHECK(mixed.err == "Error: A is a report and B a compiler file: name two files of one kind\n");
  CHECK(mixed.out.empty());
}

TEST_CASE("a comparison that cannot be written is none") {
  const Folder folder;
  const std::string good = folder.put("good.json", report_on("success"));
  std::ostringstream out;
  std::ostringstream err;
  out.setstate(std::ios::badbit);
  CHECK(app::cmd_compare({.a = good, .b = good}, out, err) == 2);
}

TEST_CASE("folders are asked for the model's report, of the chip that is named") {
  const Folder folder;
  folder.put("one/torq_gen_config_m.json", report_on("success"));
  folder.put("two/SM8550/torq_gen_config_m.json", report_on("error"));
  folder.put("two/SM8650/torq_gen_config_m.json", report_on("success"));
  app::CompareOptions options{.a = folder.dir("one"), .b = folder.dir("two"), .model = "m.onnx"};
  const Shown several = compare(options);
  CHECK(several.code == 2);
  CHECK(several.err.find("several reports fit m") != std::string::npos);
  options.chip = "SM8550";
  CHECK(compare(options).code == 1);
  options.chip = "SM8650";
  CHECK(compare(options).code == 0);
  options.model = "";
  CHECK(compare(options).err.find(
            "is a folder: name one of its files, or the model with --model") != std::string::npos);
}

TEST_CASE("folders that hold compiler files alone are compared by these") {
  const Folder folder;
  folder.put("one/torq_gen_config_m_compiler.json", kCompiler);
  folder.put("two/torq_gen_config_m_compiler.json",
             R"({"op_assignments": {"1:1": {"executor": "css"}}})");
  const Shown shown = compare({.a = folder.dir("one"), .b = folder.dir("two"), .model = "m.onnx"});
  CHECK(shown.code == 1);
  CHECK(shown.out.find("1:1: nss -> css\n") != std::string::npos);
}

TEST_CASE("--json gives one document") {
  const Folder folder;
  const Shown shown = compare({.a = folder.put("a.json", report_on("success")),
                               .b = folder.put("b.json", report_on("error")),
                               .json = true});
  const auto document = report::json::parse(shown.out, "out");
  REQUIRE(document);
  CHECK(document->get("same")->flag() == false);
  CHECK(document->get("verdicts")->array()->size() == 1);
}

TEST_CASE("the original's reports and compiler files are compared, before and after an edit") {
  const fs::path before = kGolden / "mlp_plain" / "01" / "torq_gen_config_mlp.json";
  CHECK(compare({.a = before.string(), .b = before.string()}).code == 0);
  const fs::path compiler = kGolden / "mlp_plain" / "01" / "torq_gen_config_mlp_compiler.json";
  CHECK(compare({.a = compiler.string(), .b = compiler.string()}).code == 0);
  CHECK(compare({.a = before.string(), .b = compiler.string()}).code == 2);
  CHECK(
      compare({.a = before.string(),
               .b = (kGolden / "mlp_plain" / "01" / "torq_gen_config_mlp_mac_debug.json").string()})
          .err.find("holds MAC counts: name the report beside it") != std::string::npos);
  const auto step = [](const char* number, const std::string& end) {
    return (kGolden / "cnn_subgraph" / number / ("torq_gen_config_cnn_repeat_subgraph_2_5" + end))
        .string();
  };
  const Shown report = compare({.a = step("01", ".json"), .b = step("04", ".json")});
  CHECK(report.code == 1);
  CHECK(report.out.find(
            "Recommendations that changed: 1\n  Conv_c1: nss -> host\n\n1 difference(s)") !=
        std::string::npos);
  const Shown map = compare({.a = step("01", "_compiler.json"), .b = step("04", "_compiler.json")});
  CHECK(map.code == 1);
  CHECK(map.out.find("Assignments that changed: 1\n  8:10: nss -> host\n") != std::string::npos);
}

TEST_CASE("comparing with a report of a run that goes on is noted") {
  const Folder folder;
  const std::string open = folder.put("open.json", R"({"ops": {}, "_chip": "SM8550"})");
  const Shown shown = compare({.a = open, .b = open});
  CHECK(shown.code == 0);
  CHECK(shown.err.find("Note: the run that wrote " + open) == 0);
}
