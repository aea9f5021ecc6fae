#include "coordinator/report/report_files.h"

#include <doctest/doctest.h>

#include "shared/base/files.h"

using namespace layerfarm;
using namespace layerfarm::coordinator::report;
namespace fs = std::filesystem;

namespace {

struct Folder {
  base::ScratchFolder scratch =
      *base::ScratchFolder::make(fs::temp_directory_path(), "layerfarm-test");
  [[nodiscard]] fs::path operator/(const std::string& name) const { return scratch.path() / name; }
  void put(const std::string& name, const std::string& text) const {
    fs::create_directories((*this / name).parent_path());
    REQUIRE(base::write_file_atomically(*this / name, text, base::Sync::No));
  }
};

}  // namespace

TEST_CASE("bounds that can be none are named with file, key and value") {
  const auto said = [](const std::string& text) {
    const json::Value report = *json::parse(text, "r.json");
    const auto fine = check_bounds(report.get("default_tolerance"), "r.json", "default_tolerance");
    return fine ? std::string() : fine.error().text();
  };
  CHECK(said("{}").empty());
  CHECK(said(R"({"default_tolerance": {"fp_avg_tol": 0, "fp_max_tol": 1e-3, "int_tol": 0}})")
            .empty());
  CHECK(said(R"({"default_tolerance": {"fp_max_tol": -1}})") ==
        "r.json: 'default_tolerance.fp_max_tol' is -1, and must be a number from 0 on; correct it "
        "there, or take it out and discover again");
  CHECK(said(R"({"default_tolerance": {"fp_avg_tol": NaN}})")
            .find("'default_tolerance.fp_avg_tol' is null, and") != std::string::npos);
  CHECK(said(R"({"default_tolerance": {"int_tol": 0.5}})").find("must be a whole number") !=
        std::string::npos);
  CHECK(said(R"({"default_tolerance": 0.01})").find("is 0.01, and must be an object") !=
        std::string::npos);
  const json::Value edited =
      *json::parse(R"({"ops": {"a": {}, "b": {"tolerance_used": {"fp_max_tol": "x"}}}})", "r.json");
  const auto refused = check_edited_bounds(edited, "r.json");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text().find("'ops.b.tolerance_used.fp_max_tol' is \"x\"") !=
        std::string::npos);
}

TEST_CASE("a model's name is its file name without the last extension") {
  CHECK(model_name_of("a/net1.0-12.onnx") == "net1.0-12");
  CHECK(model_name_of("m") == "m");
}

TEST_CASE("the three files of a report and of a subgraph") {
  const ReportPaths paths = report_paths("out", "m");
  CHECK(paths.report == "out/torq_gen_config_m.json");
  CHECK(paths.compiler == "out/torq_gen_config_m_compiler.json");
  CHECK(paths.macs == "out/torq_gen_config_m_mac_debug.json");
  CHECK(report_paths("", "m", "_subgraph_2_5").report == "torq_gen_config_m_subgraph_2_5.json");
  CHECK(compiler_path_of("x/r.json") == "x/r_compiler.json");
  CHECK(report_path_of("x/r_compiler.json") == "x/r.json");
  CHECK(report_path_of("x/map.json") == "x/map_report.json");
}

TEST_CASE("a name that fits is one that can be written, one byte more is refused") {
  const Folder folder;
  constexpr std::size_t kMost = 255 - 16 - 15 - 7;  // torq_gen_config_, _mac_debug.json, .XXXXXX
  const ReportPaths longest = report_paths(folder / "", std::string(kMost, 'm'));
  REQUIRE(check_names_fit(longest));
  for (const fs::path& path : {longest.report, longest.compiler, longest.macs})
    CHECK(base::write_file_atomically(path, "{}", base::Sync::No));
  const auto refused = check_names_fit(report_paths(folder / "", std::string(kMost + 1, 'm')));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text().find("1 byte(s) shorter") != std::string::npos);
}

TEST_CASE("a file is read only when it is a JSON object with objects in it") {
  const Folder folder;
  CHECK(load_config(folder / "none.json").error().code == base::ErrorCode::NotFound);
  const std::pair<const char*, const char*> bad[] = {
      {"[]", "is not a JSON object"},
      {"{", "is not valid JSON"},
      {R"({"ops": []})", "'ops' is not an object"},
      {R"({"op_assignments": 1})", "'op_assignments' is not an object"},
      {R"({"ops": {"Conv_a": 1}})", "'ops.Conv_a' is not an object"}};
  for (const auto& [text, words] : bad) {
    folder.put("r.json", text);
    const auto value = load_config(folder / "r.json");
    REQUIRE_FALSE(value);
    CHECK(value.error().code == base::ErrorCode::InvalidInput);
    CHECK(value.error().text().find(words) != std::string::npos);
    CHECK(value.error().text().find("r.json") != std::string::npos);
  }
  folder.put("r.json", R"({"ops": {"Conv_a": {}}, "x": NaN})");
  CHECK(load_config(folder / "r.json"));
}

TEST_CASE("a file's state changes with every rename into place") {
  const Folder folder;
  CHECK_FALSE(file_state(folder / "r.json"));
  folder.put("r.json", "a");
  const auto first = file_state(folder / "r.json");
  folder.put("r.json", "a");
  CHECK(first != file_state(folder / "r.json"));
  CHECK(file_state(folder / "r.json") == file_state(folder / "r.json"));
}

TEST_CASE(
    "a model's report is found by chip, in the folder, or in the one chip folder that has it") {
  const Folder folder;
  const auto find = [&](const std::string& chip) {
    return find_report(folder.scratch.path(), "m", chip);
  };
  const auto none = find("");
  REQUIRE_FALSE(none);
  CHECK(none.error().text() ==
        "Config file not found: " + (folder / "torq_gen_config_m.json").string());
  folder.put("SM8550/torq_gen_config_m.json", "{}");
  CHECK(*find("") == folder / "SM8550/torq_gen_config_m.json");
  folder.put("SM8750/torq_gen_config_m.json", "{}");
  const auto several = find("");
  REQUIRE_FALSE(several);
  CHECK(several.error().code == base::ErrorCode::InvalidInput);
  CHECK(several.error().text().find("SM8550") < several.error().text().find("SM8750"));
  CHECK(*find("SM8750") == folder / "SM8750/torq_gen_config_m.json");
  CHECK_FALSE(find("other"));
  folder.put("torq_gen_config_m.json", "{}");
  CHECK(*find("") == folder / "torq_gen_config_m.json");
  CHECK(*find("other") == folder / "torq_gen_config_m.json");
}

TEST_CASE("a report of another chip is moved into that chip's folder, once") {
  const Folder folder;
  folder.put("torq_gen_config_m.json", "{}");
  folder.put("torq_gen_config_m_compiler.json", "{}");
  const ReportPaths paths = report_paths(folder.scratch.path(), "m");
  const auto moves = moves_aside(paths, "SM8550");
  REQUIRE(moves);
  CHECK(moves->size() == 2);
  CHECK(fs::exists(folder / "torq_gen_config_m.json"));
  CHECK_FALSE(fs::exists(folder / "SM8550"));
  REQUIRE(carry_out(*moves));
  CHECK(fs::exists(folder / "SM8550/torq_gen_config_m_compiler.json"));
  CHECK_FALSE(fs::exists(folder / "torq_gen_config_m.json"));
  folder.put("torq_gen_config_m.json", "{}");
  const auto again = moves_aside(paths, "SM8550");
  REQUIRE_FALSE(again);
  CHECK(again.error().text().find("is there already") != std::string::npos);
  CHECK(fs::exists(folder / "torq_gen_config_m.json"));
}
