// The sidecar as a worker uses it: its operations, and that no request harms the next one.
#include <doctest/doctest.h>

#include <fstream>

#include "tests/system/toolchain/real_bench.h"

using namespace layerfarm;
using nlohmann::json;

namespace {

json array(const std::string& name, int dtype, const std::vector<std::int64_t>& dims,
           const std::filesystem::path& out) {
  return {{"name", name}, {"dtype", dtype}, {"dims", dims}, {"out", out.string()}};
}

}  // namespace

TEST_CASE("locations are where IREE's own importer puts the top-level operators") {
  test::RealBench bench;
  REQUIRE(bench.index.at("whole").size() == 2);
  for (const json& model : bench.index.at("whole")) {
    const json answer = bench.ask_sidecar({{"op", "locations"}, {"model", model.at("model")}});
    CHECK(answer.at("ok") == true);
    CHECK(answer.at("locations") == model.at("locations"));
    CHECK(answer.at("importer").get<std::string>().rfind("iree-base-compiler ", 0) == 0);
  }
}

TEST_CASE(
    "an operator that the importer expands is located at its call, and missing external data does "
    "not matter") {
  test::RealBench bench;
  for (const json& entry : bench.index.at("layers")) {
    if (entry.at("name") == "expanded") {
      const json answer = bench.ask_sidecar({{"op", "locations"}, {"model", entry.at("model")}});
      REQUIRE(answer.at("locations").size() == 1);
      CHECK(answer["locations"][0][2] == "MeanVarianceNormalization");
    }
    if (entry.at("name") == "large_constant") {
      const std::filesystem::path model = entry.at("model").get<std::string>();
      std::filesystem::remove(model.parent_path() / "w.bin");
      CHECK(bench.ask_sidecar({{"op", "locations"}, {"model", model.string()}})
                .at("locations")
                .size() == 1);
      const json import = bench.ask_sidecar({{"op", "import"},
                                             {"model", model.string()},
                                             {"out", (bench.folder.path() / "x.mlir").string()}});
      CHECK(import.at("ok") == false);
      CHECK(import.at("text").get<std::string>().find("cannot read the data of constant 'w'") !=
            std::string::npos);
    }
  }
}

TEST_CASE("a model of 10,000 operators is located in seconds") {
  test::RealBench bench;
  const json answer = bench.ask_sidecar({{"op", "locations"}, {"model", bench.index.at("long")}});
  CHECK(answer.at("locations").size() == 10000);
  CHECK(answer["locations"][9999][0].get<int>() - answer["locations"][0][0].get<int>() == 9999);
}

TEST_CASE("damaged, missing and hostile requests are refused one by one by the same process") {
  test::RealBench bench;
  const auto pid = bench.ask_sidecar({{"op", "hello"}}).at("pid");
  const std::string out = (bench.folder.path() / "x.mlir").string();
  const std::filesystem::path bad = bench.folder.path() / "bad.onnx";
  const auto refusal = [&bench](const json& request) {
    const json answer = bench.ask_sidecar(request);
    CHECK(answer.at("ok") == false);
    return answer.at("text").get<std::string>();
  };
  CHECK(refusal({{"op", "nothing"}}).find("unknown operation 'nothing'") != std::string::npos);
  CHECK(refusal({{"op", "import"}}).find("KeyError") != std::string::npos);
  CHECK(refusal({{"op", "import"}, {"model", "/no/such/file.onnx"}, {"out", out}}) ==
        "no such file: file.onnx");
  for (const std::string content : {"", "text", "\x08\x08\x3a\xff\xff\xff\xff\x0f"}) {
    std::ofstream(bad) << content;
    CHECK_FALSE(refusal({{"op", "import"}, {"model", bad.string()}, {"out", out}}).empty());
    CHECK_FALSE(refusal({{"op", "locations"}, {"model", bad.string()}}).empty());
  }
  CHECK(bench.helpers
            .sidecar("[1]", {.wall = std::chrono::seconds(20),
                             .memory_bytes = std::int64_t{8} << 30,
                             .output_bytes = 0,
                             .file_bytes = 0})
            .ending == domain::Ending::Refused);
  CHECK(bench.ask_sidecar({{"op", "hello"}}).at("pid") == pid);
}

TEST_CASE("arrays of a user are taken by input name from npy, npz and pb files") {
  test::RealBench bench;
  const auto at = [&bench](const std::string& name) { return bench.folder.path() / name; };
  const json answer =
      bench.ask_sidecar({{"op", "read_inputs"},
                         {"folder", bench.index.at("arrays")},
                         {"inputs",
                          {array("plain", 1, {2, 3}, at("0")), array("a/b:0", 7, {2}, at("1")),
                           array("in/one", 10, {2}, at("2")), array("two", 11, {}, at("3")),
                           array("flag", 9, {2}, at("4")), array("stem", 6, {1}, at("5")),
                           array("half", 16, {2}, at("6"))}}});
  REQUIRE_MESSAGE(answer.at("ok") == true, answer.dump());
  CHECK(answer.at("files") == json({"plain.npy", "a_b_0.npy", "many.npz", "many.npz", "input_0.pb",
                                    "stem.pb", "half.npy"}));
  CHECK(base::read_file(at("0")).value().size() == 24);
  CHECK(base::read_file(at("2")).value() == std::string("\x00\x3c\x00\x3c", 4));
  CHECK(base::read_file(at("4")).value() == std::string("\x01\x00", 2));
  CHECK(base::read_file(at("6")).value() == std::string("\x80\x3f\x00\x40", 4));
}

TEST_CASE("a missing array, another type and another shape are refused with both sides named") {
  test::RealBench bench;
  const auto refusal = [&bench](const json& wanted, const std::string& folder) {
    const json answer = bench.ask_sidecar(
        {{"op", "read_inputs"}, {"folder", folder}, {"inputs", json::array({wanted})}});
    CHECK(answer.at("ok") == false);
    CHECK(answer.at("where") == "inputs");
    return answer.at("text").get<std::string>();
  };
  const std::string arrays = bench.index.at("arrays").get<std::string>();
  const auto out = bench.folder.path() / "x";
  CHECK(refusal(array("absent", 1, {2}, out), arrays)
            .rfind("no array for input 'absent' in arrays (there: a_b_0, flag, half, in/one, "
                   "plain, stem, two)",
                   0) == 0);
  CHECK(refusal(array("plain", 11, {2, 3}, out), arrays) ==
        "input 'plain' in plain.npy is float32, must be float64");
  CHECK(refusal(array("plain", 1, {3, 2}, out), arrays) ==
        "input 'plain' in plain.npy has shape [2, 3], must be [3, 2]");
  CHECK(refusal(array("plain", 1, {3, 2}, out), arrays + "/none").find("is not a folder") !=
        std::string::npos);
  std::ofstream(arrays + "/broken.npy") << "no array";
  CHECK(refusal(array("plain", 1, {2, 3}, out), arrays).find("cannot read broken.npy") !=
        std::string::npos);
}

TEST_CASE("dims that a model leaves open become what was asked, else 1") {
  test::RealBench bench;
  const auto path = bench.folder.path() / "open.py";
  const auto model = bench.folder.path() / "open.onnx";
  std::ofstream(path)
      << "import onnx, sys\nfrom onnx import helper as h, TensorProto as T\n"
         "g=h.make_graph([h.make_node('Relu',['x'],['y'])],'g',[h.make_tensor_value_info('x',T."
         "FLOAT,['n','m',3])],[h.make_tensor_value_info('y',T.FLOAT,['a','b',3])])\n"
         "onnx.save(h.make_model(g,opset_imports=[h.make_opsetid('',17)],ir_version=8),sys.argv[1])"
         "\n";
  worker::process::Command command;
  command.argv = {worker::toolchain::python_program().string(), "-I", path.string(),
                  model.string()};
  command.folder = bench.folder.path();
  command.bounds.wall = std::chrono::seconds(60);
  REQUIRE(bench.runner.run(command, bench.cancel).ok());
  const auto out = bench.folder.path() / "open.mlir";
  const json answer = bench.ask_sidecar({{"op", "import"},
                                         {"model", model.string()},
                                         {"out", out.string()},
                                         {"function", "f"},
                                         {"dims", {{"m", 5}}}});
  REQUIRE(answer.at("ok") == true);
  const auto text = base::read_file(out).value();
  CHECK(text.find("@f(%arg0: !torch.vtensor<[1,5,3],f32>)") != std::string::npos);
}
