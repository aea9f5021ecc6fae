#include "coordinator/report/compiler_map.h"

#include <doctest/doctest.h>

using namespace layerfarm::coordinator::report;

namespace {
json::Value parsed(const std::string& text) { return *json::parse(text, "test"); }
}  // namespace

TEST_CASE("only ops with line:column and a recommendation enter the compiler file") {
  const json::Value report = parsed(R"({"model_name": "tiny", "ops": {
    "Conv_c1": {"mlir_location": "17:10", "recommended_executor": "nss"},
    "Loop_tail": {"mlir_location": "Loop", "recommended_executor": "host"},
    "Add_a": {"mlir_location": "18:10", "recommended_executor": null},
    "Add_b": {"mlir_location": "19:10", "recommended_executor": "null"},
    "Add_c": {"mlir_location": "20:10", "recommended_executor": ""},
    "Add_d": {"recommended_executor": "nss"},
    "Gone_e": {"mlir_location": "17:10", "recommended_executor": "css", "_not_in_model": true}}})");
  const CompilerMap map = compiler_map(report);
  CHECK(map.text ==
        "{\n  \"op_assignments\": {\n    \"17:10\": {\n      \"executor\": \"nss\"\n    }\n  },\n  "
        "\"model_name\": \"tiny\"\n}");
  CHECK(map.assignments == 1);
  CHECK(map.warnings.empty());
}

TEST_CASE("a report without ops or name gives an empty map") {
  CHECK(compiler_map(parsed("{}")).text == "{\n  \"op_assignments\": {}\n}");
}

TEST_CASE("two ops on one location: neither is written, one warning names both") {
  const std::vector<Assignment> ops = {
      {"A_a", "3:1", "nss", true}, {"B_b", "3:1", std::nullopt, true}, {"C_c", "4:1", "css", true}};
  const CompilerMap map = compiler_map(ops, "m");
  CHECK(map.assignments == 1);
  REQUIRE(map.warnings.size() == 1);
  CHECK(map.warnings.front() ==
        "location 3:1 belongs to 2 layers (A_a, B_b): none of them is in the compiler file");
}

TEST_CASE("a location is digits, a colon, digits") {
  for (const char* text : {"1:2", "17:10"}) CHECK(is_line_and_column(text));
  for (const char* text : {"", ":", "1:", ":2", "1", "a:1", "1:2:3", "1: 2", "-1:2", "Conv"})
    CHECK_FALSE(is_line_and_column(text));
}

TEST_CASE("a compiler file has assignments and no ops") {
  CHECK(is_compiler_file(parsed(R"({"op_assignments": {}})")));
  CHECK_FALSE(is_compiler_file(parsed(R"({"op_assignments": {}, "ops": {}})")));
  CHECK_FALSE(is_compiler_file(parsed("{}")));
}

TEST_CASE("the sidecar sorts by layer id and takes a broken breakdown for none") {
  CHECK(mac_sidecar({{"b", 2, "[{\"op_type\": \"Conv\"}]"}, {"a", 0, "nonsense"}}, "m") ==
        "{\n  \"ops\": {\n    \"a\": {\n      \"mac_count\": 0,\n      \"mac_breakdown\": []\n    "
        "},\n    \"b\": {\n      "
        "\"mac_count\": 2,\n      \"mac_breakdown\": [\n        {\n          \"op_type\": "
        "\"Conv\"\n        }\n      ]\n    }\n  },\n  "
        "\"model_name\": \"m\"\n}");
}
