#include "shared/domain/chip.h"

#include <doctest/doctest.h>

#include <string>

using namespace layerfarm::domain;

namespace {

constexpr const char* kExecutors = R"("executors": [{"name": "a", "evidence": "hardware"}])";

std::string refusal(const std::string& text) {
  const auto parsed = parse_chip(text, "chips/x.json");
  REQUIRE_FALSE(parsed.has_value());
  CHECK(parsed.error().code == layerfarm::base::ErrorCode::InvalidInput);
  return parsed.error().message;
}

/// A file that is right but for what stands inside its only executor.
std::string with_executor(const std::string& rest) {
  return R"({"toolchain": "iree", "executors": [{"name": "a", )" + rest + "}]}";
}

}  // namespace

TEST_CASE(
    "a chip file with only the required keys takes its name from the file and all else from "
    "defaults") {
  const auto chip =
      parse_chip(R"({"toolchain": "iree", "executors": [{"name": "a", "evidence": "emulator"}]})",
                 "chips/SM1.v2.json");
  REQUIRE(chip.has_value());
  CHECK(chip->name == "SM1.v2");
  CHECK(chip->target == "SM1.v2");
  CHECK(chip->toolchain == "iree");
  CHECK(chip->hw_type.empty());
  CHECK(chip->limits == Limits{});
  REQUIRE(chip->executors.size() == 1);
  CHECK(chip->executors[0].evidence == Evidence::Emulator);
  CHECK(chip->executors[0].tolerance == Tolerance{0.01, 0.01, 0.0});
  CHECK_FALSE(chip->executors[0].same_engine);
}

TEST_CASE("every key of a chip file is read, and its canonical JSON reads back to the same chip") {
  const auto chip = parse_chip(R"({
    "chip_name": "SL", "target": "sl-target", "toolchain": "torq", "runtime_hw_type": "sim", "notes": "why",
    "options": {"one": "1", "list": ["a b", "", "c"]},
    "limits": {"compile_timeout_ms": 1, "run_timeout_ms": 2, "memory_bytes": 3, "output_bytes": 4, "file_bytes": 5},
    "executors": [
      {"name": "nss", "evidence": "hardware", "tolerance": {"fp_avg_tol": 0.1, "fp_max_tol": 0.2, "fp_abs_tol_frac": 0.3},
       "options": {"one": "2"}, "by_hw_type": {"sim": {"evidence": "emulator"}, "fpga": {"tolerance": {"fp_max_tol": 0.5}}}},
      {"name": "host", "evidence": "stand-in", "same_engine": true}
    ]})",
                               "x.json");
  REQUIRE(chip.has_value());
  CHECK(chip->name == "SL");
  CHECK(chip->target == "sl-target");
  CHECK(chip->hw_type == "sim");
  CHECK(chip->notes == "why");
  CHECK(chip->limits == Limits{1, 2, 3, 4, 5});
  CHECK(option_list(chip->options, "list") == std::vector<std::string>{"a b", "", "c"});
  CHECK(option_list(chip->options, "absent").empty());
  CHECK(chip->executors[0].tolerance == Tolerance{0.1, 0.2, 0.3});
  CHECK(chip->executors[0].evidence == Evidence::Emulator);  // "sim" is in force
  CHECK(chip->executors[1].same_engine);
  const auto again = parse_chip(chip_json(*chip), "elsewhere.json");
  REQUIRE(again.has_value());
  CHECK(*again == *chip);
  CHECK(chip_json(*again) == chip_json(*chip));
}

TEST_CASE(
    "another hardware type brings its own tolerance and evidence, an unknown one changes nothing") {
  const auto chip = parse_chip(
      with_executor(
          R"("evidence": "emulator", "by_hw_type": {"board": {"evidence": "hardware", "tolerance": {"fp_max_tol": 0.5}}})"),
      "x.json");
  REQUIRE(chip.has_value());
  const ChipSpec board = with_hw_type(*chip, "board");
  CHECK(board.hw_type == "board");
  CHECK(board.executors[0].evidence == Evidence::Hardware);
  CHECK(board.executors[0].tolerance.fp_max_tol == 0.5);
  const ChipSpec other = with_hw_type(*chip, "other");
  CHECK(other.executors == chip->executors);
}

TEST_CASE("an executor's options win over the chip's") {
  ChipSpec chip;
  chip.options = {{"a", "chip"}, {"b", "chip"}};
  ExecutorSpec executor;
  executor.options = {{"b", "executor"}, {"c", "executor"}};
  CHECK(merged_options(chip, executor) ==
        Options{{"a", "chip"}, {"b", "executor"}, {"c", "executor"}});
}

TEST_CASE("an executor is found by its exact name") {
  ChipSpec chip;
  chip.executors.resize(2);
  chip.executors[1].name = "css";
  CHECK(chip.executor("css") == &chip.executors[1]);
  CHECK(chip.executor("CSS") == nullptr);
}

TEST_CASE("evidence words and values go both ways") {
  for (const Evidence evidence : {Evidence::Hardware, Evidence::Emulator, Evidence::StandIn}) {
    CHECK(evidence_from_name(evidence_name(evidence)) == evidence);
  }
  CHECK_FALSE(evidence_from_name("Hardware").has_value());
}

TEST_CASE("a wrong chip file is refused with its path, the key and the reason") {
  CHECK(refusal("{").rfind("chip file chips/x.json: not JSON: parse error at line 1, column 2",
                           0) == 0);
  CHECK(refusal("[]") == "chip file chips/x.json: must hold a JSON object");
  CHECK(refusal("{}") == "chip file chips/x.json: 'toolchain' is missing");
  const std::string start = R"({"toolchain": "iree", )";
  CHECK(refusal(R"({"toolchain": 3, )" + std::string(kExecutors) + "}")
            .find("key 'toolchain': must be a string of the form") != std::string::npos);
  CHECK(refusal(start + R"("tolchain": "x", )" + kExecutors + "}")
            .find("unknown key 'tolchain' (known: chip_name, ") != std::string::npos);
  CHECK(refusal(start + R"("executors": []})")
            .find("key 'executors': must be a list with at least one element, is []") !=
        std::string::npos);
  CHECK(refusal(start + R"("executors": {}})").find("key 'executors': must be a list") !=
        std::string::npos);
  CHECK(refusal(start + R"("executors": [{"name": "a"}]})")
            .find("key 'executors[0]': 'evidence' is missing") != std::string::npos);
  CHECK(refusal(start + R"("limits": {"memory_bytes": 1.5}, )" + kExecutors + "}")
            .find("key 'limits.memory_bytes': must be a whole number from 0 to") !=
        std::string::npos);
  CHECK(refusal(start + R"("options": {"k": 2}, )" + kExecutors + "}")
            .find("key 'options.k': must be a string or a list of strings, is 2") !=
        std::string::npos);
  CHECK(refusal(start + R"("options": {"k": ["a\nb"]}, )" + kExecutors + "}")
            .find("key 'options.k[0]': must be a string of the form") != std::string::npos);
}

TEST_CASE(
    "wrong executors are refused: evidence, tolerance out of range, unknown keys, the same name "
    "twice") {
  CHECK(refusal(with_executor(R"("evidence": "hardwar")"))
            .find("key 'executors[0].evidence': must be one of hardware, emulator, stand-in, is "
                  "\"hardwar\"") != std::string::npos);
  const auto tolerance = [](const std::string& inside) {
    return with_executor(R"("evidence": "hardware", "tolerance": {)" + inside + "}");
  };
  CHECK(
      refusal(tolerance(R"("fp_max_tol": 1.5)"))
          .find("key 'executors[0].tolerance.fp_max_tol': must be a number from 0 to 1, is 1.5") !=
      std::string::npos);
  CHECK(
      refusal(tolerance(R"("fp_avg_tol": -0.1)")).find("key 'executors[0].tolerance.fp_avg_tol'") !=
      std::string::npos);
  CHECK(refusal(tolerance(R"("fp_maxtol": 0.1)"))
            .find("key 'executors[0].tolerance': unknown key 'fp_maxtol'") != std::string::npos);
  CHECK(
      refusal(
          R"({"toolchain": "iree", "executors": [{"name": "a", "evidence": "hardware"}, {"name": "a", "evidence": "hardware"}]})")
          .find("key 'executors[1].name': executor 'a' is there twice") != std::string::npos);
}

TEST_CASE(
    "a key written twice, a huge string and deep nesting are refused before anything is made of "
    "them") {
  CHECK(refusal(R"({"toolchain": "a", "toolchain": "b", )" + std::string(kExecutors) + "}")
            .find("key 'toolchain' is written twice") != std::string::npos);
  CHECK(refusal(R"({"toolchain": ")" + std::string(200000, 'a') + "\", " + kExecutors + "}")
            .find("more than 1000 characters") != std::string::npos);
  CHECK(refusal(R"({"options": )" + std::string(100000, '[') + std::string(100000, ']') + "}")
            .find("nested too deeply") != std::string::npos);
}

TEST_CASE("executors may not be called what reports and commands call something else") {
  const auto named = [](const std::string& name) {
    return R"({"toolchain": "iree", "executors": [{"name": "a", "evidence": "hardware"}, {"name": ")" +
           name + R"(", "evidence": "hardware"}]})";
  };
  const std::string key = "chip file chips/x.json: key 'executors[1].name': ";
  CHECK(refusal(named("_evidence")) ==
        key + "'_evidence' begins with '_', as keys of the reports do; choose another name");
  for (const std::string name : {"status", "Status", "null", "executors", "final_report_text"}) {
    CHECK(refusal(named(name)) ==
          key + "'" + name + "' is a word of the reports and commands; choose another name");
  }
  CHECK(refusal(named("A")) == key + "executor 'A' is there twice");
  CHECK(parse_chip(named("status2"), "x.json").has_value());
  const std::string rest = R"("toolchain": "iree", )" + std::string(kExecutors) + "}";
  for (const std::string chip : {"all", "x.group"})
    CHECK(refusal(R"({"chip_name": ")" + chip + "\", " + rest).find("means several chips") !=
          std::string::npos);
}

TEST_CASE("a NUL, which would cut a command's argument, is refused wherever it stands") {
  const std::string start = R"({"toolchain": "iree", )";
  const std::string end = ", " + std::string(kExecutors) + "}";
  const std::string why =
      "holds a NUL character, at which a command would cut it; remove the \\u0000";
  for (const std::string option : {R"("a\u0000b")", R"(["x", "a\u0000b"])"})
    CHECK(refusal(start + R"("options": {"flags": )" + option + "}" + end) ==
          "chip file chips/x.json: key 'flags': " + why);
  CHECK(refusal(start + R"("target": "a\u0000")" + end).find("key 'target': holds a NUL") !=
        std::string::npos);
  CHECK(refusal(start + R"("options": {"fl\u0000ags": "x"})" + end)
            .find("key 'fl...': holds a NUL") != std::string::npos);
}
