#include "coordinator/app/quantize_options.h"

#include <doctest/doctest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "coordinator/app/cmd_quantize.h"
#include "coordinator/report/ops.h"
#include "shared/base/files.h"

using namespace layerfarm;
using namespace layerfarm::coordinator::app;
namespace json = coordinator::report::json;

namespace {

/// What these flags come to; an empty text, or what the parser says of them.
std::string parse(std::vector<std::string> flags, QuantizeOptions& options,
                  bool with_switch = true) {
  CLI::App app;
  add_quantize_flags(app, options, with_switch);
  std::reverse(flags.begin(), flags.end());
  try {
    app.parse(flags);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return {};
}

domain::Layer layer(const std::string& id, std::optional<bool> quantized, bool placed,
                    std::string note = {}) {
  domain::Layer out;
  out.id = id;
  out.op_type = id.substr(0, id.find('_'));
  out.quantized = quantized;
  out.quantize_note = std::move(note);
  if (placed) out.node_index = 0;
  return out;
}

}  // namespace

TEST_CASE("nothing is quantized unless it is asked for, and then as the original's defaults say") {
  QuantizeOptions options;
  CHECK(parse({}, options).empty());
  CHECK_FALSE(quantization_of(options));
  CHECK(parse({"--quantize"}, options).empty());
  const auto plain = quantization_of(options);
  REQUIRE(plain);
  CHECK(*plain == domain::Quantization{});
  CHECK(plain->format == domain::QuantFormat::Qdq);
  CHECK(plain->samples == 20);
}

TEST_CASE("the flags say how") {
  QuantizeOptions options;
  CHECK(parse({"--quantize", "--per-channel", "--full-integer", "--quant-format", "hybrid",
               "--quant-dtype", "A8W8"},
              options)
            .empty());
  const auto asked = quantization_of(options);
  REQUIRE(asked);
  CHECK(asked->per_channel);
  CHECK(asked->full_integer);
  CHECK(asked->format == domain::QuantFormat::Hybrid);
}

TEST_CASE("formats and types are case sensitive, and only A8W8 is there") {
  QuantizeOptions options;
  CHECK_FALSE(parse({"--quant-format", "QDQ"}, options).empty());
  CHECK_FALSE(parse({"--quant-dtype", "a8w8"}, options).empty());
  CHECK_FALSE(parse({"--quant-dtype", "A16W8"}, options).empty());
  CHECK_FALSE(parse({"--quantize"}, options, /*with_switch=*/false).empty());
}

TEST_CASE("flags that say how are idle without --quantize, and a line says so") {
  QuantizeOptions options;
  CHECK(idle_quantize_flags(options).empty());
  options.per_channel = true;
  options.format = "hybrid";
  CHECK(idle_quantize_flags(options) ==
        "[Quantize] without --quantize nothing follows from --per-channel, --quant-format");
  options.enabled = true;
  CHECK(idle_quantize_flags(options).empty());
}

TEST_CASE("settings hold what changes the results, and only where something is quantized") {
  QuantizeOptions options;
  json::Object settings;
  add_quantize_settings(options, settings);
  CHECK(settings.empty());
  CHECK_FALSE(coordinator::report::pooling_is_fused(json::Value(settings), /*is_subgraph=*/false));
  options.enabled = options.full_integer = true;
  add_quantize_settings(options, settings);
  CHECK(json::text_of(json::Value(settings)) == json::text_of(json::Value([] {
          json::Object how;
          how.set("format", "qdq");
          how.set("per_channel", false);
          how.set("full_integer", true);
          json::Object out;
          out.set("quantize", std::move(how));
          return out;
        }())));
  CHECK(coordinator::report::pooling_is_fused(json::Value(settings), /*is_subgraph=*/false));
  CHECK_FALSE(coordinator::report::pooling_is_fused(json::Value(settings), /*is_subgraph=*/true));
}

TEST_CASE("other samples are another calibration") {
  const auto folder = std::move(
      *base::ScratchFolder::make(std::filesystem::temp_directory_path(), "layerfarm-test"));
  const auto dir = folder.path() / "samples";
  const auto digest = [&] {
    QuantizeOptions options;
    options.enabled = true;
    options.calibration = dir.string();
    const auto found = find_calibration(options);
    REQUIRE_MESSAGE(found, found.error().text());
    CHECK(quantization_of(options)->calibration_path == dir.string());
    json::Object settings;
    add_quantize_settings(options, settings);
    CHECK(settings.find("quantize")->get_text("calibration") == options.calibration_digest.hex());
    return options.calibration_digest;
  };
  const auto refusal = [&] {
    QuantizeOptions options;
    options.calibration = dir.string();
    const auto found = find_calibration(options);
    REQUIRE_FALSE(found);
    return found.error().text();
  };
  CHECK(refusal() == "--calibration: no folder " + dir.string());
  std::filesystem::create_directories(dir / "0");
  CHECK(refusal() == "--calibration: " + dir.string() + " holds no .npz, .npy or .pb file");
  const auto write = [&](const std::string& name, const std::string& content) {
    REQUIRE(base::write_file_atomically(dir / name, content, base::Sync::No));
  };
  write("0.npz", "a");
  write("notes.txt", "a");
  const base::Digest first = digest();
  write("notes.txt", "b");
  CHECK(digest() == first);
  write("0/x.pb", "b");
  const base::Digest second = digest();
  CHECK(second != first);
  write("0/x.pb", "c");
  CHECK(digest() != second);
}

TEST_CASE("a report counts what is quantized, in float and fused, and a line names the reasons") {
  domain::ModelAnalysis model;
  model.layers = {layer("Conv_a", true, true), layer("Relu_b", false, false, "left in float"),
                  layer("Relu_c", false, false, "left in float"),
                  layer("Loop_d", false, true, "refused")};
  CHECK(json::python_text(quantization_counts(model)) ==
        "{'quantized': 1, 'float': 3, 'fused': 2}");
  CHECK(quantization_line(model) ==
        "1 of 4 layers are quantized\n"
        "  2 stay in float: left in float (Relu_b, Relu_c)\n"
        "  1 stays in float: refused (Loop_d)");
  model.locations = {{1, 1, "Relu"}, {2, 1, "Relu"}};
  CHECK(json::python_text(quantization_counts(model)) ==
        "{'quantized': 1, 'float': 3, 'fused': 0, 'moved': 2}");
  model.location_problem = "no import";
  CHECK(json::python_text(quantization_counts(model)) ==
        "{'quantized': 1, 'float': 3, 'fused': 0}");
  model.layers = {layer("Conv_a", std::nullopt, true)};
  CHECK(quantization_counts(model).is_null());
  CHECK(quantization_line(model).empty());
}

TEST_CASE("a quantized model goes beside its model unless something else is said") {
  CHECK(default_quantized_path("/a/net1.0-12.onnx") == "/a/net1.0-12.int8.onnx");
  CHECK(default_quantized_path("net") == "net.int8.onnx");
}
