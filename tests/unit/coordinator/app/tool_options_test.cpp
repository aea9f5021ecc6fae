#include "coordinator/app/tool_options.h"

#include <doctest/doctest.h>

using namespace layerfarm;
using namespace layerfarm::coordinator;
using app::ToolOptions;

namespace {

domain::ChipSpec chip_of(const std::string& toolchain) {
  domain::ChipSpec chip;
  chip.name = "c";
  chip.toolchain = toolchain;
  chip.executors.resize(2);
  chip.executors[0].name = "e0";
  chip.executors[1].name = "e1";
  return chip;
}

domain::ChipSpec changed(const domain::ChipSpec& chip, const ToolOptions& options) {
  const auto out = app::with_tool_options(chip, options);
  REQUIRE_MESSAGE(out, out.error().text());
  return *out;
}

std::string refusal(const domain::ChipSpec& chip, const ToolOptions& options) {
  const auto out = app::with_tool_options(chip, options);
  REQUIRE_FALSE(out);
  return out.error().text();
}

}  // namespace

TEST_CASE("options follow those of the chip file, in the order given") {
  domain::ChipSpec chip = chip_of("torq");
  chip.options["compiler_options"] = "--of-file";
  const auto out = changed(chip, {.compiler = {"--a", "--b=1"}, .runtime = {"--c"}});
  CHECK(domain::option_list(out.options, "compiler_options") ==
        std::vector<std::string>{"--of-file", "--a", "--b=1"});
  CHECK(domain::option_list(out.options, "runtime_options") == std::vector<std::string>{"--c"});
  CHECK(!out.options.contains("dump_ir"));
}

TEST_CASE("an executor with a list of its own gets them too, since it hides the chip's") {
  domain::ChipSpec chip = chip_of("iree");
  chip.executors[1].options["compile_flags"] = "--own";
  const auto out = changed(chip, {.compiler = {"--a"}, .runtime = {"--r"}});
  for (const domain::ExecutorSpec& executor : out.executors) {
    const auto flags = domain::option_list(domain::merged_options(out, executor), "compile_flags");
    CHECK(flags.back() == "--a");
  }
  CHECK(domain::option_list(domain::merged_options(out, out.executors[1]), "compile_flags") ==
        std::vector<std::string>{"--own", "--a"});
  CHECK(domain::option_list(out.options, "run_flags") == std::vector<std::string>{"--r"});
}

TEST_CASE("an execution provider gets pairs, per step") {
  const auto out = changed(chip_of("ort-ep"), {.compiler = {"vtcm_mb=4"}, .runtime = {"k=a=b"}});
  CHECK(out.options.at("provider_at_compile.vtcm_mb") == "4");
  CHECK(out.options.at("provider_at_run.k") == "a=b");
  CHECK(refusal(chip_of("ort-ep"), {.compiler = {"--flag"}}).find("'--flag' is not KEY=VALUE") !=
        std::string::npos);
  CHECK(refusal(chip_of("ort-ep"), {.runtime = {"=x"}}).find("--runtime-option: '=x'") == 0);
}

TEST_CASE("what the user says wins over an executor's own option") {
  domain::ChipSpec chip = chip_of("ort-ep");
  chip.executors[0].options["provider_at_run.k"] = "own";
  auto out = changed(chip, {.runtime = {"k=user"}});
  CHECK(domain::merged_options(out, out.executors[0]).at("provider_at_run.k") == "user");
  chip = chip_of("iree");
  chip.executors[0].options["dump_ir"] = "0";
  out = changed(chip, {.dump_folder = "tmp"});
  CHECK(domain::merged_options(out, out.executors[0]).at("dump_ir") == "1");
}

TEST_CASE("a toolchain that takes none says so") {
  CHECK(refusal(chip_of("ort"), {.compiler = {"a=b"}}) ==
        "--compiler-option: the toolchain ort of chip c takes no options");
  CHECK(refusal(chip_of("null"), {.runtime = {"a=b"}}) ==
        "--runtime-option: the toolchain null of chip c takes no options");
  CHECK(changed(chip_of("ort"), {}) == chip_of("ort"));
}

TEST_CASE("an option of several lines, or of none, would become another option") {
  CHECK(refusal(chip_of("torq"), {.compiler = {"--a\n--b"}}).find("one line") != std::string::npos);
  CHECK(refusal(chip_of("iree"), {.runtime = {""}}).find("--runtime-option") == 0);
}

TEST_CASE("dumps are asked of compilers that can write them") {
  CHECK(changed(chip_of("torq"), {.dump_folder = "tmp"}).options.at("dump_ir") == "1");
  CHECK(changed(chip_of("iree"), {.dump_folder = "tmp"}).options.at("dump_ir") == "1");
  CHECK(!changed(chip_of("ort-ep"), {.dump_folder = "tmp"}).options.contains("dump_ir"));
  CHECK(app::can_dump_ir(chip_of("torq")));
  CHECK(!app::can_dump_ir(chip_of("ort-ep")));
  CHECK(!app::can_dump_ir(chip_of("null")));
}

TEST_CASE("settings name what was given and decides results; where dumps go does not") {
  report::json::Object none;
  app::add_settings({.dump_folder = "tmp"}, none);
  CHECK(none.empty());
  report::json::Object some;
  app::add_settings({.compiler = {"--a", "--b"}, .runtime = {"--c"}, .hw_type = "aws_fpga"}, some);
  CHECK(report::json::python_text(some) ==
        "{'compiler_options': ['--a', '--b'], 'runtime_options': ['--c'], 'torq_hw_type': "
        "'aws_fpga'}");
}

TEST_CASE("where a chip takes no options, an error names the key of a config file that gave one") {
  const ToolOptions buffers{.compiler = {app::kBufferOption}};
  const std::string key = "--compiler-option, or key 'gen_config.trace_buffers' of a config file: ";
  CHECK(refusal(chip_of("ort"), buffers) == key + "the toolchain ort of chip c takes no options");
  CHECK(refusal(chip_of("ort-ep"), buffers)
            .starts_with(key + "'--torq-enable-buffer-debug-info' is not"));
  CHECK(refusal(chip_of("ort"), {.compiler = {"--x"}}).starts_with("--compiler-option: the"));
}
