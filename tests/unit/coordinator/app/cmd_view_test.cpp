#include "coordinator/app/cmd_view.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>

#include "shared/base/files.h"

using namespace layerfarm;
using namespace layerfarm::coordinator;
namespace fs = std::filesystem;

namespace {

struct Shown {
  int code = 0;
  std::string out;
  std::string err;
};

Shown view(const app::ViewOptions& options) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = app::cmd_view(options, out, err);
  return {code, out.str(), err.str()};
}

struct Folder {
  base::ScratchFolder scratch =
      *base::ScratchFolder::make(fs::temp_directory_path(), "layerfarm-test");
  std::string put(const std::string& name, const std::string& text) const {
    fs::create_directories((scratch.path() / name).parent_path());
    REQUIRE(base::write_file_atomically(scratch.path() / name, text, base::Sync::No));
    return (scratch.path() / name).string();
  }
  [[nodiscard]] std::string dir() const { return scratch.path().string(); }
};

const std::string kReport =
    R"({"ops": {"Conv_a": {"executors": {"nss": {"status": "success"}}}, "Relu_b": {}}, "model_name": "m", "discovery_report": {}})";
const std::string kCompiler =
    R"({"op_assignments": {"1:1": {"executor": "nss"}}, "model_name": "m"})";

}  // namespace

TEST_CASE("view shows a report, a layer, a compiler file") {
  const Folder folder;
  const std::string report = folder.put("r.json", kReport);
  CHECK(view({.config = report}).out.find("MODEL: m\n") != std::string::npos);
  CHECK(view({.config = report}).err.empty());
  CHECK(view({.config = report, .layer = "Conv_a"}).out.find("LAYER: Conv_a\n") !=
        std::string::npos);
  CHECK(
      view({.config = folder.put("c.json", kCompiler)}).out.find("MODEL: m  (compiler format)\n") !=
      std::string::npos);
  CHECK(view({.config = report, .colour = true}).out.find("\033[32msuccess") != std::string::npos);
}

TEST_CASE(
    "view builds the path from the model, and takes one positional that is no file as the layer") {
  const Folder folder;
  folder.put("torq_gen_config_m.json", kReport);
  CHECK(view({.model = "x/m.onnx", .output_dir = folder.dir()}).out.find("MODEL: m\n") !=
        std::string::npos);
  CHECK(view({.config = "Conv_a", .model = "x/m.onnx", .output_dir = folder.dir()})
            .out.find("LAYER: Conv_a\n") != std::string::npos);
}

TEST_CASE("view takes patterns and parts of ids where no layer has the very id") {
  const Folder folder;
  const std::string report = folder.put(
      "r.json",
      R"({"ops": {"Conv_a": {}, "Conv_ab": {}, "Relu_b\nc": {}}, "discovery_report": {}})");
  const auto layers = [&](const std::string& layer, bool compat = false) {
    const Shown shown = view({.config = report, .layer = layer, .compat = compat});
    std::string out;
    for (std::size_t at = shown.out.find("LAYER: "); at != std::string::npos;
         at = shown.out.find("LAYER: ", at + 1))
      out += shown.out.substr(at + 7, shown.out.find('\n', at) - at - 7) + " ";
    return out;
  };
  CHECK(layers("Conv_a") == "Conv_a ");
  CHECK(layers("conv_*") == "Conv_a Conv_ab ");
  CHECK(layers("_ab") == "Conv_ab ");
  CHECK(layers("Relu*") == "Relu_b\\nc ");
  CHECK(layers("ALL") == "Conv_a Conv_ab Relu_b\\nc ");
  CHECK(layers("conv_*", /*compat=*/true).empty());  // as the original has it
}

TEST_CASE("the MAC sidecar is no report, for view neither") {
  const Folder folder;
  const Shown shown =
      view({.config = folder.put("macs.json", R"({"ops": {"Conv_a": {"mac_breakdown": []}}})")});
  CHECK(shown.code == 1);
  CHECK(shown.out.empty());
  CHECK(shown.err.find("macs.json holds MAC counts: name the report beside it\n") !=
        std::string::npos);
}

TEST_CASE("view falls back to the compiler file") {
  const Folder folder;
  folder.put("torq_gen_config_m_compiler.json", kCompiler);
  folder.put("SM8550/torq_gen_config_n_compiler.json", kCompiler);
  CHECK(view({.model = "m.onnx", .output_dir = folder.dir()}).out.find("(compiler format)") !=
        std::string::npos);
  CHECK(view({.model = "n.onnx", .output_dir = folder.dir(), .chip = "SM8550"})
            .out.find("(compiler format)") != std::string::npos);
}

TEST_CASE("view says what is missing and ends with 1") {
  const Folder folder;
  CHECK(view({}).err == "Error: Either --model or a config path must be provided.\n");
  CHECK(view({}).code == 1);
  CHECK(view({.config = "none.json"}).err == "Error: Config file not found: none.json\n");
  const Shown missing = view({.model = "m.onnx", .output_dir = folder.dir()});
  CHECK(missing.code == 1);
  CHECK(missing.err ==
        "Error: Config file not found: " + folder.dir() + "/torq_gen_config_m.json\n");
}

TEST_CASE("a broken file or an unknown layer ends with 1, with --compat as the original has it") {
  const Folder folder;
  const std::string broken = folder.put("b.json", "{");
  const Shown refused = view({.config = broken});
  CHECK(refused.code == 1);
  CHECK(refused.err.find("Error: " + broken + " is not valid JSON: line 1") == 0);
  CHECK(refused.out.empty());
  const Shown compat = view({.config = broken, .compat = true});
  CHECK(compat.code == 0);
  CHECK(compat.out.find("MODEL: unknown\n") != std::string::npos);
  const std::string report = folder.put("r.json", kReport);
  const Shown unknown = view({.config = report, .layer = "Conv_z"});
  CHECK(unknown.code == 1);
  CHECK(unknown.out == "Layer 'Conv_z' not found.\nAvailable layers: Conv_a, Relu_b\n");
  CHECK(view({.config = report, .layer = "Conv_z", .compat = true}).code == 0);
}

TEST_CASE("view says that a run did not end, apart from the report") {
  const Folder folder;
  const Shown shown = view({.config = folder.put("r.json", R"({"ops": {}, "_chip": "SM8550"})")});
  CHECK(shown.code == 0);
  CHECK(shown.err.find("ended before its end") != std::string::npos);
}
