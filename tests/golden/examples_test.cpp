// The example files of torq-gen-config's manual and of the specification (tests/golden/examples),
// their holes filled: what reads and writes files leaves every byte as it is.
#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>

#include "coordinator/app/cmd_compare.h"
#include "coordinator/app/cmd_edit.h"
#include "coordinator/app/cmd_view.h"
#include "coordinator/report/compiler_map.h"
#include "coordinator/report/report_files.h"
#include "coordinator/report/report_state.h"
#include "shared/base/files.h"
#include "tests/support/paths.h"

using namespace layerfarm;
using namespace layerfarm::coordinator;
namespace fs = std::filesystem;

namespace {

const fs::path kExamples = fs::path(test::kTestsFolder) / "golden" / "examples";

std::string text_of(const fs::path& path) {
  auto text = base::read_file(path);
  REQUIRE_MESSAGE(text, path.string());
  return *text;
}

/// An example in a folder of its own, where commands may write.
struct Copy {
  base::ScratchFolder scratch =
      *base::ScratchFolder::make(fs::temp_directory_path(), "layerfarm-test");
  fs::path path;
  explicit Copy(const std::string& name) : path(scratch.path() / name) {
    fs::copy_file(kExamples / name, path);
  }
};

struct Shown {
  int code = 0;
  std::string out;
  std::string err;
};

Shown edit(const app::EditOptions& options) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = app::cmd_edit(options, out, err);
  return {code, out.str(), err.str()};
}

Shown view(const app::ViewOptions& options) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = app::cmd_view(options, out, err);
  return {code, out.str(), err.str()};
}

}  // namespace

TEST_CASE("the example files go through load and save byte for byte, with keys of others") {
  std::size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(kExamples)) {
    INFO(entry.path().string());
    const auto value = report::load_config(entry.path());
    REQUIRE(value);
    CHECK(report::json::text_of(*value) == text_of(entry.path()));
    ++seen;
  }
  CHECK(seen == 4);
}

TEST_CASE("the compiler file of the specification's example has one entry") {
  const auto value = report::load_config(kExamples / "report.json");
  REQUIRE(value);
  const report::CompilerMap map = report::compiler_map(*value);
  CHECK(map.assignments == 1);
  CHECK(map.warnings.empty());
  CHECK(map.text ==
        "{\n  \"op_assignments\": {\n    \"17:10\": {\n      \"executor\": \"nss\"\n    }\n  },\n"
        "  \"model_name\": \"tiny\"\n}");
}

TEST_CASE("an edit changes what it says and leaves every other byte of an example") {
  const Copy copy("report.json");
  const Shown done = edit({.config = copy.path.string(), .layer = "Conv_c1", .executor = "host"});
  CHECK(done.code == 0);
  std::string wanted = text_of(kExamples / "report.json");
  const std::string before = "\"recommended_executor\": \"nss\",\n      \"note\": \"theirs\"";
  REQUIRE(wanted.find(before) != std::string::npos);
  wanted.replace(wanted.find(before), before.size(),
                 "\"recommended_executor\": \"host\",\n      \"note\": \"theirs\",\n      "
                 "\"_edited\": true");
  // The text for people is made anew; up to it nothing else may differ.
  const std::string found = text_of(copy.path);
  const std::size_t end = found.find("  \"final_report_text\"");
  REQUIRE(end != std::string::npos);
  CHECK(found.substr(0, end) == wanted.substr(0, end));
}

TEST_CASE("old reports of TFLite models can be viewed, edited and compared by their own ids") {
  const Copy copy("torq_gen_config_person.json");
  const std::string folder = copy.scratch.path().string();
  const Shown shown = view({.model = "person.tflite", .output_dir = folder});
  CHECK(shown.code == 0);
  CHECK(shown.out.find("  DEPTHWISE_CONV_2D_1  difference   -            success      host\n") !=
        std::string::npos);
  CHECK(view({.config = "CONV_2D_0", .model = "person.tflite", .output_dir = folder})
            .out.find("LAYER: CONV_2D_0\n") != std::string::npos);

  CHECK(
      edit(
          {.model = "person.tflite", .output_dir = folder, .layer = "conv_2d_0", .executor = "css"})
          .out.find("Updated recommended_executor for 'CONV_2D_0' to 'css'\n") == 0);
  CHECK(edit({.config = copy.path.string(), .list = "dequant"})
            .out.find("Total: 1 layer(s) (filtered from 3)\n") != std::string::npos);
  const auto compiler = report::load_config(report::compiler_path_of(copy.path));
  REQUIRE(compiler);
  CHECK(report::json::python_text(*compiler->get("op_assignments")) ==
        "{'7:11': {'executor': 'css'}, '9:11': {'executor': 'host'}}");

  std::ostringstream out;
  std::ostringstream err;
  CHECK(app::cmd_compare(
            {.a = (kExamples / "torq_gen_config_person.json").string(), .b = copy.path.string()},
            out, err) == 1);
  CHECK(out.str().find("CONV_2D_0: nss -> css") != std::string::npos);
}
