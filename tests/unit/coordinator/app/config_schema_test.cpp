// The schema of config files says what apply_config_files takes.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "shared/base/files.h"
#include "tests/support/paths.h"

using namespace layerfarm;
using nlohmann::json;

namespace {

struct Schema {
  json document =
      json::parse(base::read_file(std::filesystem::path(test::kTestsFolder).parent_path() /
                                  "configs" / "schemas" / "config.schema.json")
                      .value());
  valijson::Schema rules;
  Schema() {
    valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(document),
                                            rules);
  }
};

bool fits(const std::string& text) {
  static const Schema schema;
  const json value = json::parse(text);
  return valijson::Validator().validate(schema.rules,
                                        valijson::adapters::NlohmannJsonAdapter(value), nullptr);
}

}  // namespace

TEST_CASE("the schema of config files takes what the program takes") {
  CHECK(fits("{}"));
  CHECK(fits(
      R"({"model_path": "m.onnx", "work_dir": "out", "chip": "SL2610", "runtime_hw_type": "sim",
    "compiler_options": ["--a"], "runtime_options": null, "dump_ir": true, "timeout": 12.5,
    "convert_io_dtypes": ["all"], "remote": null, "function": null, "input_npy": [],
    "gen_config": {"skip_mode": true, "timing_runs": 5, "skip_ops": ["MaxPool", "Add"]}})"));
  CHECK(fits(R"({"results": {"x": 1}, "config": {"chip": "c"}})"));
}

TEST_CASE("the schema of config files refuses what the program refuses") {
  for (const char* text :
       {R"([1])", R"({"skip_mode": true})", R"({"chip": true})", R"({"gen_config": []})",
        R"({"remote": {"address": "user@board"}})", R"({"convert_io_dtypes": ["float32"]})",
        R"({"compile_tool": "x"})", R"({"compiler_options": [["--a"]]})",
        R"({"config": {"skip_mode": true}})", R"({"gen_config": {"skip_ops": {"a": 1}}})"}) {
    CHECK_MESSAGE(!fits(text), text);
  }
}
