#include "coordinator/report/assignment.h"

#include <doctest/doctest.h>

#include "shared/base/files.h"

using namespace layerfarm;
using namespace layerfarm::coordinator::report;

namespace {

json::Value parsed(const std::string& text) {
  auto value = json::parse(text, "test");
  REQUIRE(value);
  return *value;
}

const std::string kReport = R"({"ops": {
  "Conv_c": {"recommended_executor": "nss", "mlir_location": "5:10"},
  "Relu_r": {"recommended_executor": "host", "mlir_location": "6:10"},
  "Erf_e": {"recommended_executor": null, "mlir_location": "7:10"},
  "Old_o": {"recommended_executor": "nss", "_not_in_model": true}
}, "model_name": "m"})";
const std::string kCompiler =
    R"({"op_assignments": {"5:10": {"executor": "css"}, "9:10": {"executor": "nss"}, "x": {"executor": "nss"}}, "model_name": "m"})";

using Names = std::vector<std::string>;
const std::vector<OperatorPlace> kOperators = {
    {"Conv_c", "5:10"}, {"Relu_r", "6:10"}, {"Erf_e", "7:10"}};
const Names kExecutors = {"nss", "css", "host"};

struct Folder {
  base::ScratchFolder scratch =
      *base::ScratchFolder::make(std::filesystem::temp_directory_path(), "layerfarm-test");
  std::filesystem::path path = scratch.path();
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path / name).parent_path());
    REQUIRE(base::write_file_atomically(path / name, text, base::Sync::No));
  }
};

}  // namespace

TEST_CASE("a report says executors by layer, a compiler file by line and column") {
  const auto report = read_assignment(parsed(kReport), "r.json");
  REQUIRE(report);
  CHECK(report->by_layer ==
        std::map<std::string, std::string>{{"Conv_c", "nss"}, {"Relu_r", "host"}});
  CHECK(report->by_place.empty());
  const auto compiler = read_assignment(parsed(kCompiler), "c.json");
  REQUIRE(compiler);
  CHECK(compiler->by_place == std::map<std::string, std::string>{{"5:10", "css"}, {"9:10", "nss"}});
}

TEST_CASE("a file with both is read for both; one with neither is refused by name") {
  const auto both = read_assignment(
      parsed(
          R"({"ops": {"Conv_c": {"recommended_executor": "nss"}}, "op_assignments": {"6:10": {"executor": "host"}}})"),
      "b.json");
  REQUIRE(both);
  CHECK(assign(*both, kOperators, kExecutors).executors == Names{"nss", "host", ""});
  const auto neither = read_assignment(parsed(R"({"model_name": "m"})"), "n.json");
  REQUIRE_FALSE(neither);
  CHECK(neither.error().text().find("n.json has neither") == 0);
}

TEST_CASE("each operator gets its executor; what fits nothing is counted") {
  const auto report = assign(*read_assignment(parsed(kReport), "r"), kOperators, kExecutors);
  CHECK(report.executors == Names{"nss", "host", ""});
  CHECK(report.unassigned == 1);
  CHECK(report.unmatched_layers.empty());
  CHECK(report.unmatched_places.empty());
  const auto compiler = assign(*read_assignment(parsed(kCompiler), "c"), kOperators, kExecutors);
  CHECK(compiler.executors == Names{"css", "", ""});
  CHECK(compiler.unmatched_places == std::vector<std::string>{"9:10"});
  const auto other = assign(*read_assignment(parsed(kReport), "r"), kOperators, Names{"host"});
  CHECK(other.executors == Names{"", "host", ""});
  CHECK(other.unknown_executors == 1);
}

TEST_CASE("a layer's recommendation wins over a line that an older module had") {
  AssignmentFile file;
  file.by_layer = {{"Conv_c", "nss"}};
  file.by_place = {{"5:10", "host"}};
  CHECK(assign(file, kOperators, kExecutors).executors == Names{"nss", "", ""});
}

TEST_CASE("the report comes before the compiler file, and names before contents") {
  Folder folder;
  const auto path = [&](const std::string& name) { return folder.path / name; };
  CHECK(find_assignment(folder.path, {"m", {}}, "").error().code == base::ErrorCode::NotFound);
  folder.write("torq_gen_config_other_compiler.json", kCompiler);
  CHECK(find_assignment(folder.path, {"m", {}}, "")->path ==
        path("torq_gen_config_other_compiler.json"));
  folder.write("torq_gen_config_m_compiler.json", kCompiler);
  auto found = find_assignment(folder.path, {"m", {}}, "");
  CHECK(found->path == path("torq_gen_config_m_compiler.json"));
  CHECK_FALSE(found->is_report);
  folder.write("torq_gen_config_zz_mac_debug.json", R"({"ops": {}, "model_name": "m"})");
  CHECK_FALSE(find_assignment(folder.path, {"m", {}}, "")->is_report);
  folder.write("torq_gen_config_renamed.json", kReport);
  CHECK(find_assignment(folder.path, {"m", {}}, "")->path == path("torq_gen_config_renamed.json"));
  folder.write("torq_gen_config_m.json", kReport);
  found = find_assignment(folder.path, {"m", {}}, "");
  CHECK(found->path == path("torq_gen_config_m.json"));
  CHECK(found->is_report);
  folder.write("c1/torq_gen_config_m.json", kReport);
  CHECK(find_assignment(folder.path, {"m", {}}, "c1")->path == path("c1/torq_gen_config_m.json"));
}

TEST_CASE("a report that cannot be read is not passed over") {
  Folder folder;
  folder.write("torq_gen_config_m_compiler.json", kCompiler);
  folder.write("torq_gen_config_m.json", "{");
  CHECK(find_assignment(folder.path, {"m", {}}, "").error().code == base::ErrorCode::InvalidInput);
}

TEST_CASE("a file of another part of the model never fits, whatever it is called") {
  Folder folder;
  const auto path = [&](const std::string& name) { return folder.path / name; };
  const auto find = [&](std::optional<domain::NodeRange> part) {
    return find_assignment(folder.path, {"m", part}, "");
  };
  const domain::NodeRange part{2, 5};
  const std::string marked = R"({"ops": {}, "model_name": "m", "_subgraph": [2, 5]})";
  // The whole model's, and that of another subgraph by its name alone, as old files have it.
  folder.write("torq_gen_config_m.json", kReport);
  folder.write("torq_gen_config_m_subgraph_0_1.json", kReport);
  folder.write("torq_gen_config_m_subgraph_0_1_compiler.json", kCompiler);
  CHECK(find(part).error().code == base::ErrorCode::NotFound);
  CHECK(find(domain::NodeRange{0, 1})->path == path("torq_gen_config_m_subgraph_0_1.json"));
  folder.write("torq_gen_config_m_subgraph_2_5_compiler.json", kCompiler);
  CHECK(find(part)->path == path("torq_gen_config_m_subgraph_2_5_compiler.json"));
  folder.write("torq_gen_config_renamed.json", marked);
  CHECK(find(part)->path == path("torq_gen_config_renamed.json"));
  folder.write("torq_gen_config_m_subgraph_2_5.json", kReport);
  CHECK(find(part)->path == path("torq_gen_config_m_subgraph_2_5.json"));
  // A whole model is found by content only where no part of it is meant.
  std::filesystem::remove(path("torq_gen_config_m.json"));
  CHECK(find(std::nullopt).error().code == base::ErrorCode::NotFound);
}

TEST_CASE("a file that says it is of another part than its name is refused") {
  Folder folder;
  const std::string marked = R"({"ops": {}, "model_name": "m", "_subgraph": [2, 5]})";
  folder.write("torq_gen_config_m.json", marked);
  folder.write("torq_gen_config_m_subgraph_0_1.json", marked);
  for (const std::optional<domain::NodeRange>& part :
       {std::optional<domain::NodeRange>(), std::optional(domain::NodeRange{0, 1})}) {
    const auto found = find_assignment(folder.path, {"m", part}, "");
    REQUIRE_FALSE(found);
    CHECK(found.error().message.find("is of nodes 2 to 5 of m, not of ") != std::string::npos);
  }
}

TEST_CASE(
    "a model that is called as a part of another would be has files that are not that part's") {
  Folder folder;
  const std::string own = R"({"ops": {}, "model_name": "m_subgraph_2_5"})";
  const std::string part = R"({"ops": {}, "model_name": "m", "_subgraph": [2, 5]})";
  // The original does not say `_subgraph`.
  const std::string old_part = R"({"ops": {}, "model_name": "m"})";
  const ReportPaths paths = report_paths(folder.path, "m_subgraph_2_5");
  const Wanted whole{"m_subgraph_2_5", std::nullopt};
  const Wanted nodes{"m", domain::NodeRange{2, 5}};
  const auto owner = [&](const std::string& text, const Wanted& wanted) {
    return other_owner(parsed(text), paths.report, wanted);
  };
  CHECK(owner(own, whole).empty());
  CHECK(owner(own, nodes) == "the model m_subgraph_2_5");
  for (const std::string& text : {part, old_part}) {
    CHECK(owner(text, nodes).empty());
    CHECK(owner(text, whole) == "nodes 2 to 5 of m");
  }
  CHECK(check_owner(paths, whole).has_value());
  folder.write("torq_gen_config_m_subgraph_2_5.json", part);
  const auto refused = check_owner(paths, whole);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text() ==
        paths.report.string() +
            " is of nodes 2 to 5 of m, and m_subgraph_2_5 would write to the same name; rename or "
            "link the model, or give another --output-dir");
  CHECK_FALSE(find_assignment(folder.path, whole, ""));
  folder.write("torq_gen_config_m_subgraph_2_5.json", own);
  CHECK_FALSE(check_owner(paths, nodes));
  CHECK_FALSE(find_assignment(folder.path, nodes, ""));
  // Names can be made of the other files' too.
  folder.write("torq_gen_config_x_compiler.json", R"({"ops": {}, "default_tolerance": {}})");
  CHECK_FALSE(check_owner(report_paths(folder.path, "x"), {"x", std::nullopt}));
  folder.write("torq_gen_config_y_compiler.json", kCompiler);
  CHECK(check_owner(report_paths(folder.path, "y"), {"y", std::nullopt}).has_value());
  CHECK_FALSE(check_owner(report_paths(folder.path, "y_compiler"), {"y_compiler", std::nullopt}));
}

TEST_CASE("a file's part is read from it, else from its name") {
  const auto part = [](const std::string& text, const std::string& path) {
    return subgraph_of(parsed(text), path);
  };
  const std::string plain = R"({"model_name": "m"})";
  CHECK(part(R"({"_subgraph": [2, 5]})", "x.json") == domain::NodeRange{2, 5});
  CHECK(part(plain, "out/torq_gen_config_m_subgraph_12_345.json") == domain::NodeRange{12, 345});
  CHECK(part(plain, "torq_gen_config_m_subgraph_1_2_compiler.json") == domain::NodeRange{1, 2});
  for (const char* name :
       {"torq_gen_config_m.json", "torq_gen_config_m_subgraph_1.json",
        "torq_gen_config_m_subgraph_1_x.json", "torq_gen_config_n_subgraph_1_2.json",
        "torq_gen_config_m_subgraph_1_2_3.json", "torq_gen_config_m_subgraph__.json"})
    CHECK_FALSE(part(plain, name));
  // A model may be called so itself.
  CHECK_FALSE(part(R"({"model_name": "m_subgraph_1_2"})", "torq_gen_config_m_subgraph_1_2.json"));
}
