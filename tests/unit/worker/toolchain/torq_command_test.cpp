#include "worker/toolchain/torq_command.h"

#include <doctest/doctest.h>

namespace layerfarm::worker::toolchain {
namespace {

using Words = std::vector<std::string>;

domain::ExecutorSpec executor(const std::string& name) {
  domain::ExecutorSpec out;
  out.name = name;
  return out;
}

domain::ChipSpec sl2610() {
  domain::ChipSpec chip;
  chip.name = "SL2610";
  chip.target = "SL2610";
  chip.toolchain = "torq";
  chip.hw_type = "sim";
  chip.executors = {executor("nss"), executor("css"), executor("host")};
  return chip;
}

TorqTarget target_of(const domain::ChipSpec& chip, const std::string& name) {
  const auto target = torq_target(chip, executor(name));
  REQUIRE(target.has_value());
  return *target;
}

// The order is that of a recorded command line of torq-gen-config.
TEST_CASE("a layer is compiled with the words of torq-gen-config, in its order") {
  domain::ChipSpec chip = sl2610();
  chip.options["compiler_options"] = "--mine=1\n--other";
  const TorqCompileFiles files{.module = "m.mlir", .artifact = "m.vmfb", .map = "map.json"};
  CHECK(torq_compile_arguments(target_of(chip, "nss"), files) ==
        Words{"m.mlir", "-o", "m.vmfb", "--torq-hw=SL2610", "--dump-compilation-phases-to=phases",
              "--torq-target-host-triple=native", "--torq-executor-map=map.json",
              "--torq-disable-css", "--torq-disable-host", "--mine=1", "--other",
              "--torq-debug-info=debug"});
}

TEST_CASE("a whole model is compiled with its map last, and no executor is disabled") {
  domain::ChipSpec chip = sl2610();
  chip.options["compiler_options"] = "--mine=1";
  const TorqCompileFiles files{
      .module = "m.mlir", .artifact = "m.vmfb", .map = "map.json", .whole = true};
  CHECK(torq_compile_arguments(target_of(chip, "nss"), files) ==
        Words{"m.mlir", "-o", "m.vmfb", "--torq-hw=SL2610", "--dump-compilation-phases-to=phases",
              "--torq-target-host-triple=native", "--mine=1", "--torq-executor-map=map.json",
              "--torq-debug-info=debug"});
}

TEST_CASE("an executor is chosen by disabling the others") {
  const auto flags = [](const std::string& name) { return target_of(sl2610(), name).disable; };
  CHECK(flags("nss") == Words{"--torq-disable-css", "--torq-disable-host"});
  CHECK(flags("css") == Words{"--torq-disable-slices", "--torq-disable-host"});
  CHECK(flags("host") == Words{"--torq-disable-slices", "--torq-disable-css"});
  CHECK(flags("other").empty());
  domain::ExecutorSpec own = executor("nss");
  own.options["disable"] = "--only-nss";
  CHECK(torq_target(sl2610(), own)->disable == Words{"--only-nss"});
}

TEST_CASE("IR is dumped only when asked") {
  domain::ChipSpec chip = sl2610();
  chip.options["dump_ir"] = "1";
  const auto words = torq_compile_arguments(target_of(chip, "host"), {"m.mlir", "m.vmfb", ""});
  CHECK(words == Words{"m.mlir", "-o", "m.vmfb", "--torq-hw=SL2610", "--mlir-print-ir-after-all",
                       "--mlir-print-ir-tree-dir=debug/ir",
                       "--mlir-elide-elementsattrs-if-larger=50",
                       "--dump-compilation-phases-to=phases", "--torq-target-host-triple=native",
                       "--torq-disable-slices", "--torq-disable-css", "--torq-debug-info=debug"});
}

TEST_CASE("a board is not compiled for this machine, and the run tool is told of it") {
  domain::ChipSpec chip = sl2610();
  for (const auto& [hw_type, native] : std::vector<std::pair<std::string, bool>>{
           {"sim", true}, {"aws_fpga", true}, {"soc", false}}) {
    chip.hw_type = hw_type;
    const TorqTarget target = target_of(chip, "css");
    const auto compile = torq_compile_arguments(target, {"m", "o", "map"});
    CHECK((std::find(compile.begin(), compile.end(), "--torq-target-host-triple=native") !=
           compile.end()) == native);
    const auto run = torq_run_arguments(target, {"o", "main", {"out.bin"}, {"2xf32=@in.bin"}});
    CHECK(run == Words{"--module=o", "--function=main", "--output=@out.bin",
                       "--torq_hw_type=" + hw_type, "--input=2xf32=@in.bin"});
  }
}

TEST_CASE("run options of the user come between the hardware type and the inputs") {
  domain::ChipSpec chip = sl2610();
  chip.options["runtime_options"] = "--trace";
  const auto run = torq_run_arguments(target_of(chip, "nss"),
                                      {"o", "main", {"a.bin", "b.bin"}, {"1xf32=@x", "2xi32=@y"}});
  CHECK(run == Words{"--module=o", "--function=main", "--output=@a.bin", "--output=@b.bin",
                     "--torq_hw_type=sim", "--trace", "--input=1xf32=@x", "--input=2xi32=@y"});
}

TEST_CASE("an executor's options win over the chip's") {
  domain::ChipSpec chip = sl2610();
  chip.options = {{"compiler_options", "--chip"}, {"runtime_options", "--chip"}};
  domain::ExecutorSpec own = executor("nss");
  own.options = {{"compiler_options", "--own"}, {"dump_ir", "1"}};
  const auto target = torq_target(chip, own);
  REQUIRE(target.has_value());
  CHECK(target->compiler_options == Words{"--own"});
  CHECK(target->runtime_options == Words{"--chip"});
  CHECK(target->dump_ir);
  chip.target = "custom";
  own.options = {{"hw_id", "7"},
                 {"lram_size", "4096"},
                 {"slice_count", "2"},
                 {"css_features", "none"},
                 {"nss_features", "all"}};
  CHECK(torq_target(chip, own)->hw == "7:4096:2:none:all:8:1.0:native:host:host");
}

TEST_CASE("a custom target is spelt out of the chip file, or says what it lacks") {
  domain::ChipSpec chip = sl2610();
  chip.target = "custom";
  const auto missing = torq_target(chip, executor("nss"));
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().text().find("hw_id") != std::string::npos);
  chip.options = {{"hw_id", "7"},           {"lram_size", "4096"},   {"slice_count", "2"},
                  {"css_features", "none"}, {"nss_features", "all"}, {"dma_factor", "0.5"}};
  CHECK(target_of(chip, "nss").hw == "7:4096:2:none:all:8:0.5:native:host:host");
}

TEST_CASE("the map of a whole model names an executor by place") {
  CHECK(torq_model_map({{"5:10", "nss"}, {"12:10", "host"}}) ==
        R"({"op_assignments":{"5:10":{"executor":"nss"},"12:10":{"executor":"host"}}})");
  CHECK(torq_model_map({}) == R"({"op_assignments":{}})");
}

TEST_CASE("the map names one executor for the layer") {
  CHECK(torq_layer_map("Conv_o0", "nss") == R"({"op_assignments":{"Conv_o0":{"executor":"nss"}}})");
}

}  // namespace
}  // namespace layerfarm::worker::toolchain
