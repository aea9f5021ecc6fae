#include "coordinator/app/cmd_edit.h"

#include <doctest/doctest.h>

#include <sstream>

#include "coordinator/report/report_files.h"
#include "shared/base/files.h"

using namespace layerfarm;
using namespace layerfarm::coordinator;
namespace fs = std::filesystem;

namespace {

struct Done {
  int code = 0;
  std::string out;
  std::string err;
};

Done edit(const app::EditOptions& options) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = app::cmd_edit(options, out, err);
  return {code, out.str(), err.str()};
}

struct Folder {
  base::ScratchFolder scratch =
      *base::ScratchFolder::make(fs::temp_directory_path(), "layerfarm-test");
  std::string put(const std::string& name, const std::string& text) const {
    REQUIRE(base::write_file_atomically(scratch.path() / name, text, base::Sync::No));
    return (scratch.path() / name).string();
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    return *base::read_file(scratch.path() / name);
  }
};

const std::string kReport = R"({"ops": {
  "Conv_1": {"executors": {"nss": {"status": "success"}}, "mlir_location": "3:1", "recommended_executor": "nss"},
  "Conv_12": {"executors": {"nss": {"status": "success"}}, "mlir_location": "3:1", "recommended_executor": "nss"},
  "Relu_r": {"executors": {}, "mlir_location": "5:1", "recommended_executor": null}}, "model_name": "m"})";

}  // namespace

TEST_CASE("edit changes one layer and renews the compiler file") {
  const Folder folder;
  const std::string path = folder.put("torq_gen_config_m.json", kReport);
  const std::string compiler = (folder.scratch.path() / "torq_gen_config_m_compiler.json").string();
  const Done done = edit({.model = "a/m.onnx",
                          .output_dir = folder.scratch.path().string(),
                          .layer = "relu_r",
                          .executor = "css"});
  CHECK(done.code == 0);
  CHECK(done.out == "Updated recommended_executor for 'Relu_r' to 'css'\nUpdated compiler JSON: " +
                        compiler + "\n");
  CHECK(folder.read("torq_gen_config_m_compiler.json").find("\"5:1\"") != std::string::npos);
  // Two ops are on one line: told on standard error.
  CHECK(done.err.find("location 3:1 belongs to 2 layers (Conv_1, Conv_12)") != std::string::npos);
}

TEST_CASE("a layer without a place in the compiler file is said, and that nothing changed there") {
  const Folder folder;
  const std::string path = folder.put("r.json", R"({"ops": {
    "Conv_1": {"executors": {"nss": {"status": "success"}}, "mlir_location": "3:1", "recommended_executor": "nss"},
    "Relu_f": {"executors": {}, "mlir_location": "Relu", "_fused": true},
    "Relu_m": {"executors": {}, "mlir_location": "Relu", "_moved": true},
    "Relu_g": {"executors": {}, "mlir_location": "7:1", "_not_in_model": true},
    "Relu_n": {"executors": {}, "mlir_location": "Relu"}}, "model_name": "m"})");
  const std::string compiler = (folder.scratch.path() / "r_compiler.json").string();
  // Not there before, so it is made whatever is in it.
  CHECK(edit({.config = path, .layer = "Relu_f", .executor = "nss"}).out.find("Updated compiler") !=
        std::string::npos);
  const std::string made = folder.read("r_compiler.json");
  const Done fused = edit({.config = path, .layer = "Relu_f", .executor = "css"});
  CHECK(fused.code == 0);
  CHECK(fused.out == "Updated recommended_executor for 'Relu_f' to 'css'\nUpdated compiler JSON: " +
                         compiler + "\n");
  CHECK(fused.err ==
        "Note: the compiler JSON holds what it held before\n"
        "Note: 1 layer(s) fused into their neighbours in the quantized model, so they have no "
        "place there; the compiler JSON does not name them: Relu_f\n");
  const Done all = edit({.config = path, .layer = "relu", .executor = "css"});
  for (const char* line :
       {"in the quantized model cannot be told; the compiler JSON does not name "
        "them: Relu_m\n",
        "not in the model any more; the compiler JSON does not name them: Relu_g",
        "without a line in the imported module; the compiler JSON does not name "
        "them: Relu_n\n"})
    CHECK_MESSAGE(all.err.find(line) != std::string::npos, all.err);
  CHECK(folder.read("r_compiler.json") == made);
  const Done placed = edit({.config = path, .layer = "Conv_1", .executor = "css"});
  CHECK(placed.err.empty());
  CHECK(placed.out.find("\nUpdated compiler JSON: ") != std::string::npos);
  // A tolerance is nothing that a compiler reads.
  const Done tolerance = edit({.config = path, .layer = "Relu_f", .tolerance_max = 0.5});
  CHECK(tolerance.err.empty());
  CHECK(tolerance.out.find("\nUpdated compiler JSON: ") != std::string::npos);
}

TEST_CASE("numbers that are NaN become null, and edit says how many") {
  const Folder folder;
  const std::string path = folder.put("r.json", R"({"ops": {"Conv_1": {"executors": {"nss": {
    "status": "success", "timing": {"runtime_ms": NaN, "all": [1.5, -Infinity]}}}, "mlir_location": "3:1"}}})");
  const Done done = edit({.config = path, .layer = "Conv_1", .executor = "nss"});
  CHECK(done.err ==
        "Note: 2 number(s) of the report are NaN or infinite, which JSON has not: they are null "
        "now\n");
  CHECK(folder.read("r.json").find("\"runtime_ms\": null") != std::string::npos);
  CHECK(edit({.config = path, .layer = "Conv_1", .executor = "css"}).err.empty());
}

TEST_CASE("a batch lists its layers first") {
  const Folder folder;
  const std::string path = folder.put("r.json", kReport);
  const Done done = edit({.config = path, .layer = "conv", .tolerance_max = 0.25});
  CHECK(done.code == 0);
  CHECK(done.out ==
        "Batch edit: 2 layer(s) match 'conv'\n  - Conv_1\n  - Conv_12\nUpdated tolerance for 2 "
        "layer(s)\nUpdated compiler JSON: " +
            (folder.scratch.path() / "r_compiler.json").string() + "\n");
}

TEST_CASE("no option changes nothing, not even the file") {
  const Folder folder;
  const std::string path = folder.put("r.json", kReport);
  const Done done = edit({.config = path, .layer = "Conv_1"});
  CHECK(done.code == 0);
  CHECK(done.out.find("No changes made") == 0);
  CHECK(folder.read("r.json") == kReport);
  CHECK_FALSE(fs::exists(folder.scratch.path() / "r_compiler.json"));
}

TEST_CASE("wrong input ends with 1 and a text that helps, and changes nothing") {
  const Folder folder;
  const std::string path = folder.put("r.json", kReport);
  CHECK(edit({}).err == "Error: Either --model or a config path must be provided.\n");
  CHECK(edit({.config = "none.json"}).err == "Error: Config file not found: none.json\n");
  CHECK(edit({.config = path}).err.find("Error: --layer is required") == 0);
  const Done none = edit({.config = path, .layer = "zzz", .executor = "nss"});
  CHECK(none.code == 1);
  CHECK(none.err == "Error: No layers match 'zzz'.\nAvailable layers: Conv_1, Conv_12, Relu_r\n");
  const Done misspelt = edit({.config = path, .layer = "Conv_1", .executor = "nsss"});
  CHECK(misspelt.code == 1);
  CHECK(misspelt.err.find("choose one of nss, css, host") != std::string::npos);
  CHECK(edit({.config = path, .layer = "Conv_1", .tolerance_avg = -1.0}).code == 1);
  CHECK(edit({.config = folder.put("b.json", "{"), .layer = "Conv_1"})
            .err.find("is not valid JSON") != std::string::npos);
  CHECK(folder.read("r.json") == kReport);
}

TEST_CASE("a compiler file is refused, with the report's expected name") {
  const Folder folder;
  const std::string path =
      folder.put("torq_gen_config_m_compiler.json", R"({"op_assignments": {}})");
  const Done done = edit({.config = path, .layer = "a", .executor = "nss"});
  CHECK(done.code == 1);
  for (const char* words : {"compiler JSON", "report JSON", "torq_gen_config_m.json",
                            "torq_gen_config_m_compiler.json"}) {
    CHECK(done.err.find(words) != std::string::npos);
  }
  CHECK(edit({.config = folder.put("map.json", R"({"op_assignments": {}})"), .list = ""})
            .err.find("map_report.json") != std::string::npos);
}

TEST_CASE("the MAC sidecar is refused, naming the report, and stays as it is") {
  const Folder folder;
  const std::string text = R"({"ops": {"Conv_1": {"mac_count": 1, "mac_breakdown": []}}})";
  const std::string path = folder.put("torq_gen_config_m_mac_debug.json", text);
  for (const app::EditOptions& options :
       {app::EditOptions{.config = path, .layer = "Conv_1", .executor = "null"},
        app::EditOptions{.config = path, .list = ""}}) {
    const Done done = edit(options);
    CHECK(done.code == 1);
    CHECK(done.err == "Error: " + path + " holds MAC counts: name the report beside it, " +
                          (folder.scratch.path() / "torq_gen_config_m.json").string() + "\n");
  }
  CHECK(folder.read("torq_gen_config_m_mac_debug.json") == text);
  CHECK_FALSE(fs::exists(folder.scratch.path() / "torq_gen_config_m_mac_debug_compiler.json"));
}

TEST_CASE("list shows the layers and changes nothing") {
  const Folder folder;
  const std::string path = folder.put("r.json", kReport);
  const Done all = edit({.config = path, .list = ""});
  CHECK(all.code == 0);
  CHECK(all.out.find("Total: 3 layer(s)\n") != std::string::npos);
  CHECK(edit({.config = path, .list = "relu"}).out.find("Total: 1 layer(s) (filtered from 3)\n") !=
        std::string::npos);
}

TEST_CASE("an interrupted run is brought up to date before the change, and its failure stops it") {
  const Folder folder;
  const std::string path = folder.put("r.json", R"({"ops": {"Conv_1": {"executors": {}}}})");
  app::EditOptions options{.config = path, .layer = "Conv_9", .executor = "host"};
  options.recover = [&](const fs::path& report) -> base::Result<void> {
    CHECK(report == path);
    folder.put("r.json", R"({"ops": {"Conv_9": {"executors": {}}}})");
    return {};
  };
  CHECK(edit(options).code == 0);
  CHECK(folder.read("r.json").find("\"recommended_executor\": \"host\"") != std::string::npos);
  options.recover = [](const fs::path&) -> base::Result<void> {
    return base::fail(base::ErrorCode::Unavailable, "store is busy");
  };
  const Done failed = edit(options);
  CHECK(failed.code == 1);
  CHECK(failed.err == "Error: store is busy\n");
}
