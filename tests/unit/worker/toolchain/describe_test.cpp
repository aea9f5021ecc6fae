#include "worker/toolchain/describe.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "shared/base/onnxruntime_library.h"
#include "worker/toolchain/programs.h"

using namespace layerfarm;
using namespace layerfarm::worker::toolchain;
using nlohmann::json;

namespace {
const std::string kNull =
    R"({"chip_name": "n", "toolchain": "null", "executors": [{"name": "e", "evidence": "stand-in"}]})";
const std::string kUnknown =
    R"({"chip_name": "u", "toolchain": "vendor", "executors": [{"name": "e", "evidence": "hardware"}]})";
}  // namespace

TEST_CASE(
    "a machine's description has one ability per chip, in order, and its processor and engines") {
  const auto text = describe("[" + kNull + "," + kUnknown + "]");
  REQUIRE(text.has_value());
  const json answer = json::parse(*text);
  CHECK(answer.at("software").get<std::string>().rfind("layerfarm-worker ", 0) == 0);
  CHECK_FALSE(answer.at("cpu_model").get<std::string>().empty());
  for (const char* engine : {"reader", "reference"}) {
    CHECK(base::Digest::from_hex(answer.at(engine).at("files").get<std::string>()).has_value());
  }
  REQUIRE(answer.at("abilities").size() == 2);
  CHECK(answer["abilities"][0].at("found") == true);
  CHECK(answer["abilities"][0].at("needs_compile") == false);
  const auto chip = domain::parse_chip(kNull, "x").value();
  CHECK(answer["abilities"][0].at("chip") == base::digest_of(domain::chip_json(chip)).hex());
  CHECK(answer["abilities"][1].at("found") == false);
  CHECK(answer["abilities"][1].at("missing") == "an adapter for the toolchain 'vendor'");
  CHECK(answer["abilities"][1].at("how_to_get").get<std::string>().find("null") !=
        std::string::npos);
}

TEST_CASE("a wrong question is refused with the number of the chip that is wrong") {
  CHECK_FALSE(describe("").has_value());
  CHECK_FALSE(describe("{}").has_value());
  CHECK(describe("[]").has_value());
  const auto wrong = describe("[" + kNull + R"(, {"toolchain": "x"}])");
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().text().find("number 1") != std::string::npos);
  CHECK(wrong.error().text().find("'executors' is missing") != std::string::npos);
}

TEST_CASE("identities are stable, and the reference's names its processor") {
  CHECK(reader_identity() == reader_identity());
  CHECK(reference_identity() == reference_identity());
  CHECK_FALSE(reference_identity().cpu.empty());
  CHECK(ability_for(domain::parse_chip(kNull, "x").value()).identity.version == "1");
}

TEST_CASE("programs are named by absolute paths, packages by their records") {
  for (const auto& path : {own_program("layerfarm-ort"), sidecar_script(), python_program(),
                           packages_of("iree"), base::onnxruntime_library()}) {
    CHECK(path.is_absolute());
  }
  CHECK(python_program().string().rfind(python_environment().string(), 0) == 0);
  CHECK(package_version("no_such_package").empty());
  CHECK(package_record("no_such_package").empty());
  CHECK(package_version("iree_base_compiler").empty() ==
        package_record("iree_base_compiler").empty());
}

TEST_CASE("a package belongs to the toolchain that brings it") {
  CHECK(toolchain_with("iree_base_runtime") == "iree");
  CHECK(toolchain_with("onnxruntime_qnn") == "qnn");
  CHECK(toolchain_with("onnxruntime") == "quantize");
  CHECK(toolchain_with("onnxruntime_q").empty());
  CHECK(toolchain_with("").empty());
  CHECK(toolchain_with("onnx").empty());  // part of the environment
  CHECK(how_to_install("qnn") == "run: layerfarm toolchains install qnn");
  CHECK(packages_of("qnn") != packages_of("iree"));
  CHECK(package_folder("onnxruntime_qnn") == packages_of("qnn") / "onnxruntime_qnn");
  CHECK(package_folder("no_such_package") ==
        python_environment() / "site-packages" / "no_such_package");
}
