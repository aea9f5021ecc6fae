#include "worker/toolchain/analyze_stage.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "shared/base/files.h"
#include "shared/protocol/codec.h"
#include "tests/support/worker/fake_process_runner.h"
#include "tests/support/worker/toy_format.h"

using namespace layerfarm;
using namespace layerfarm::worker;
using domain::Ending;

namespace {

/// Answers what it is told to, and remembers what it was asked.
class ScriptedHelpers final : public toolchain::Helpers {
 public:
  toolchain::HelperAnswer ort(const std::string& request, const process::Bounds&) override {
    ort_requests.push_back(request);
    return dies() ? toolchain::HelperAnswer{.ending = Ending::Crashed} : ort_answer;
  }
  toolchain::HelperAnswer sidecar(const std::string& request, const process::Bounds&) override {
    sidecar_requests.push_back(request);
    return dies() ? toolchain::HelperAnswer{.ending = Ending::Crashed} : sidecar_answer;
  }
  int deaths = 0;  ///< under the next requests
  toolchain::HelperAnswer ort_answer{
      .ending = Ending::Done, .json = R"({"ok":true,"values":[]})", .diagnostic = {}};
  toolchain::HelperAnswer sidecar_answer{
      .ending = Ending::Done,
      .json = R"({"ok":true,"locations":[[3,10,"Relu"]],"importer":"importer 1"})",
      .diagnostic = {}};
  std::vector<std::string> ort_requests;
  std::vector<std::string> sidecar_requests;

 private:
  bool dies() { return deaths > 0 && deaths-- > 0; }
};

std::string value_after(const std::vector<std::string>& argv, const std::string& flag) {
  const auto found = std::find(argv.begin(), argv.end(), flag);
  return found == argv.end() || found + 1 == argv.end() ? std::string() : *(found + 1);
}

/// A worker with a reader of models that is a function.
struct Bench {
  base::ScratchFolder folder =
      *base::ScratchFolder::make(std::filesystem::temp_directory_path(), "analyze-stage");
  test::FakeProcessRunner runner;
  ScriptedHelpers helpers;
  base::BlobFolder blobs{folder.path() / "blobs"};
  process::CancelToken cancel;
  domain::AnalyzeRequest request{.model_path = "/models/net.onnx", .dims = {{"batch", 2}}};
  toolchain::StepContext context{.runner = runner,
                                 .helpers = helpers,
                                 .blobs = blobs,
                                 .cancel = cancel,
                                 .scratch = folder.path(),
                                 .cores = {},
                                 .limits = {}};

  static domain::ModelAnalysis small_analysis() {
    domain::ModelAnalysis out;
    domain::Layer layer;
    layer.id = "Relu_y";
    layer.op_type = "Relu";
    layer.node_index = out.operators++;
    out.layers.push_back(layer);
    return out;
  }
  void reader(test::FakeProcessRunner::Program program) {
    runner.add("layerfarm-onnx", std::move(program));
  }
  void reader_that_works() {
    reader([](const process::Command& command) {
      CHECK(base::write_file_atomically(value_after(command.argv, "--result"),
                                        protocol::encode_analysis(small_analysis()),
                                        base::Sync::No));
      return test::FakeRun{};
    });
  }
  domain::Outcome run() { return toolchain::AnalyzeStage().run(request, context); }
  domain::ModelAnalysis analysis(const domain::Outcome& outcome) const {
    REQUIRE(outcome.analysis);
    auto bytes = blobs.get(*outcome.analysis);
    REQUIRE(bytes);
    auto decoded = protocol::decode_analysis(*bytes);
    REQUIRE(decoded);
    return *decoded;
  }
};

}  // namespace

TEST_CASE("a model becomes a stored analysis with the importer's locations") {
  Bench bench;
  bench.reader_that_works();
  const domain::Outcome outcome = bench.run();
  REQUIRE(outcome.ending == Ending::Done);
  CHECK(outcome.stage == domain::Stage::Analyze);
  const domain::ModelAnalysis analysis = bench.analysis(outcome);
  REQUIRE(analysis.layers.size() == 1);
  CHECK(analysis.format == "onnx");
  CHECK(analysis.locations == std::vector<domain::SourceLocation>{{3, 10, "Relu"}});
  CHECK(analysis.importer_version == "importer 1");
  CHECK(analysis.notes.empty());
  REQUIRE(bench.helpers.sidecar_requests.size() == 1);
  CHECK(bench.helpers.sidecar_requests[0].find(R"("dims":{"batch":2})") != std::string::npos);
  CHECK(bench.helpers.ort_requests.empty());
}

TEST_CASE(
    "shapes that only a run shows are asked for once, and the model is read again with the "
    "answer") {
  Bench bench;
  int reads = 0;
  bench.reader([&](const process::Command& command) {
    ++reads;
    if (const std::string ask = value_after(command.argv, "--shapes-request"); !ask.empty()) {
      CHECK(base::write_file_atomically(ask, R"({"op":"shapes"})", base::Sync::No));
    } else {
      CHECK(base::read_file(value_after(command.argv, "--shapes")).value() ==
            R"({"ok":true,"values":[]})");
      CHECK(base::write_file_atomically(value_after(command.argv, "--result"),
                                        protocol::encode_analysis(Bench::small_analysis()),
                                        base::Sync::No));
    }
    return test::FakeRun{};
  });
  CHECK(bench.run().ending == Ending::Done);
  CHECK(reads == 2);
  CHECK(bench.helpers.ort_requests == std::vector<std::string>{R"({"op":"shapes"})"});
}

TEST_CASE(
    "a helper that dies once over the locations or the shapes leaves no trace in the analysis") {
  Bench bench;
  bench.reader_that_works();
  bench.helpers.deaths = 1;
  const domain::ModelAnalysis analysis = bench.analysis(bench.run());
  CHECK(analysis.location_problem.empty());
  CHECK(analysis.locations.size() == 1);
  CHECK(bench.helpers.sidecar_requests.size() == 2);

  bench.helpers.deaths = 2;
  CHECK(bench.analysis(bench.run()).location_problem.find("the importer") == 0);

  std::string shapes;
  bench.reader([&](const process::Command& command) {
    if (const std::string ask = value_after(command.argv, "--shapes-request"); !ask.empty()) {
      CHECK(base::write_file_atomically(ask, "{}", base::Sync::No));
    } else {
      shapes = base::read_file(value_after(command.argv, "--shapes")).value();
      CHECK(base::write_file_atomically(value_after(command.argv, "--result"),
                                        protocol::encode_analysis(Bench::small_analysis()),
                                        base::Sync::No));
    }
    return test::FakeRun{};
  });
  bench.helpers.deaths = 1;
  CHECK(bench.run().ending == Ending::Done);
  CHECK(shapes == R"({"ok":true,"values":[]})");
}

TEST_CASE("a helper that dies over the shapes leaves them open and does not lose the model") {
  Bench bench;
  bench.helpers.ort_answer = {.ending = Ending::Crashed,
                              .json = {},
                              .diagnostic = {.where = "run", .cause = "crashed: SIGSEGV"}};
  bench.reader([&](const process::Command& command) {
    if (const std::string ask = value_after(command.argv, "--shapes-request"); !ask.empty()) {
      CHECK(base::write_file_atomically(ask, "{}", base::Sync::No));
    } else {
      CHECK(
          base::read_file(value_after(command.argv, "--shapes")).value().find("crashed: SIGSEGV") !=
          std::string::npos);
      CHECK(base::write_file_atomically(value_after(command.argv, "--result"),
                                        protocol::encode_analysis(Bench::small_analysis()),
                                        base::Sync::No));
    }
    return test::FakeRun{};
  });
  CHECK(bench.run().ending == Ending::Done);
}

TEST_CASE("the reader's reason reaches the report with the file's name and without its folder") {
  Bench bench;
  bench.request.model_path = "/some folder/näh: net.onnx";
  bench.reader([](const process::Command&) {
    return test::FakeRun{.exit_code = 1, .errors = "/some folder/näh: net.onnx: is empty\n"};
  });
  const domain::Outcome outcome = bench.run();
  CHECK(outcome.ending == Ending::Refused);
  CHECK(outcome.diagnostic.where == "import");
  CHECK(outcome.diagnostic.text == "näh: net.onnx: is empty");
  CHECK_FALSE(outcome.analysis);
  CHECK(bench.helpers.sidecar_requests.empty());
}

TEST_CASE("a file that kills or fills the reader is one clear error") {
  Bench bench;
  bench.reader([](const process::Command&) { return test::FakeRun{.signal = SIGSEGV}; });
  domain::Outcome outcome = bench.run();
  CHECK(outcome.ending == Ending::Crashed);
  CHECK(outcome.diagnostic.cause == "crashed: SIGSEGV");
  CHECK(outcome.diagnostic.text == "net.onnx: the model reader crashed: SIGSEGV");

  bench.context.limits.memory_bytes = 1 << 20;
  bench.reader([](const process::Command&) { return test::FakeRun{.memory_bytes = 2 << 20}; });
  outcome = bench.run();
  CHECK(outcome.ending == Ending::OverMemory);
  CHECK(outcome.diagnostic.text == "net.onnx: the model reader used more than 1 MiB of memory");
}

TEST_CASE(
    "a model that cannot be imported as a whole keeps its layers and says why it has no "
    "locations") {
  Bench bench;
  bench.reader_that_works();
  bench.helpers.sidecar_answer.json =
      R"({"ok":false,"where":"import","text":"no such operator\nat line 3"})";
  const domain::ModelAnalysis analysis = bench.analysis(bench.run());
  CHECK(analysis.layers.size() == 1);
  CHECK(analysis.locations.empty());
  CHECK(analysis.location_problem == "the model cannot be imported as a whole: no such operator");
}

TEST_CASE("operators that do not pair up with the layers are pointed out") {
  Bench bench;
  bench.reader_that_works();
  bench.helpers.sidecar_answer.json =
      R"({"ok":true,"locations":[[3,10,"Add"],[4,10,"Relu"]],"importer":"importer 1"})";
  const domain::ModelAnalysis analysis = bench.analysis(bench.run());
  REQUIRE(analysis.notes.size() == 2);
  CHECK(analysis.notes[0] == "the importer sees 2 operators, the model has 1");
  CHECK(analysis.notes[1] == "operator 0 is 'Add' to the importer and 'Relu' in the model");
}

TEST_CASE("a cancelled analysis has no verdict, whichever step is cancelled") {
  Bench bench;
  bench.reader_that_works();
  bench.helpers.sidecar_answer = {.ending = Ending::Cancelled, .json = {}, .diagnostic = {}};
  CHECK(bench.run().ending == Ending::Cancelled);
  bench.cancel.cancel();
  bench.reader([](const process::Command&) { return test::FakeRun{.never_ends = true}; });
  CHECK(bench.run().ending == Ending::Cancelled);
}

TEST_CASE("another format goes the same way without a change to the stage") {
  Bench bench;
  toolchain::ModelFormats formats;
  formats.push_back(std::make_unique<test::ToyFormat>());
  toolchain::AnalyzeStage stage(std::move(formats));
  bench.request.model_path = (bench.folder.path() / "net.toy").string();
  REQUIRE(base::write_file_atomically(bench.request.model_path, "Relu b a\nRelu c b\nAdd d b c\n",
                                      base::Sync::No));
  const domain::ModelAnalysis analysis = bench.analysis(stage.run(bench.request, bench.context));
  CHECK(analysis.format == "toy");
  REQUIRE(analysis.layers.size() == 3);
  CHECK(analysis.layers[0].signature == analysis.layers[1].signature);
  CHECK(analysis.locations.size() == 3);
  CHECK(analysis.notes.empty());

  bench.request.model_path = "/models/net.tflite";
  const domain::Outcome outcome = stage.run(bench.request, bench.context);
  CHECK(outcome.ending == Ending::Refused);
  CHECK(outcome.diagnostic.text == "net.tflite: no reader for this kind of file (known: toy)");
}
