#include "worker/toolchain/resident_helpers.h"

#include <doctest/doctest.h>

#include <csignal>

#include "tests/support/worker/toolchain_bench.h"

using namespace layerfarm;
using namespace layerfarm::worker;
using namespace layerfarm::worker::toolchain;
using domain::Ending;

namespace {

struct HelpersBench : test::ToolBench {
  HelperKind kind(const std::string& name) {
    HelperKind out;
    out.name = name;
    out.argv = {name};
    out.most_jobs = 3;
    return out;
  }
  ResidentHelpers make() {
    return {runner, blobs, cancel, {1}, folder.path() / "helpers", kind("ort"), kind("sidecar")};
  }
  [[nodiscard]] std::size_t starts() const { return runner.commands().size(); }
};

const process::Bounds kBounds = {
    .wall = std::chrono::seconds(5), .memory_bytes = 1 << 20, .output_bytes = 0, .file_bytes = 0};

test::FakeAnswer good(const process::Command&, const std::string& request) {
  return {.reply = R"({"ok": true, "heard": )" + request + "}"};
}

}  // namespace

TEST_CASE("helpers start on first use, each for itself, and answer") {
  HelpersBench bench;
  bench.runner.add_resident("ort", good);
  bench.runner.add_resident("sidecar", good);
  ResidentHelpers helpers = bench.make();
  CHECK(bench.starts() == 0);
  const HelperAnswer answer = helpers.ort("{}", kBounds);
  CHECK(answer.ending == Ending::Done);
  CHECK(answer.json == R"({"ok": true, "heard": {}})");
  CHECK(helpers.ort("{}", kBounds).ending == Ending::Done);
  CHECK(bench.starts() == 1);
  CHECK(helpers.sidecar("{}", kBounds).ending == Ending::Done);
  CHECK(bench.starts() == 2);
  CHECK(bench.runner.commands()[0].cores == std::vector<int>{1});
  CHECK(bench.runner.commands()[0].bounds.memory_bytes == 1 << 20);
}

TEST_CASE("a helper is renewed after so many jobs, and when a job may take more memory") {
  HelpersBench bench;
  bench.runner.add_resident("ort", good);
  ResidentHelpers helpers = bench.make();
  for (int i = 0; i < 3; ++i) CHECK(helpers.ort("{}", kBounds).ending == Ending::Done);
  CHECK(bench.starts() == 1);
  CHECK(helpers.ort("{}", kBounds).ending == Ending::Done);
  CHECK(bench.starts() == 2);
  process::Bounds more = kBounds;
  more.memory_bytes *= 2;
  CHECK(helpers.ort("{}", more).ending == Ending::Done);
  CHECK(bench.starts() == 3);
}

TEST_CASE(
    "a helper that dies in hand is reported with its signal and what it printed, and the next job "
    "gets a fresh one") {
  HelpersBench bench;
  bool die = true;
  bench.runner.add_resident(
      "ort", [&die](const process::Command& command, const std::string& request) {
        if (!die) return good(command, request);
        return test::FakeAnswer{
            .reply = "", .run = {.signal = SIGSEGV, .errors = "last words"}, .dies = true};
      });
  ResidentHelpers helpers = bench.make();
  const HelperAnswer answer = helpers.ort(R"({"op": "x"})", kBounds);
  CHECK(answer.ending == Ending::Crashed);
  CHECK(answer.diagnostic.cause == "crashed: SIGSEGV");
  CHECK(answer.diagnostic.text == "last words");
  CHECK(bench.blobs.get(answer.diagnostic.raw).value().find(R"(request: {"op": "x"})") !=
        std::string::npos);
  die = false;
  CHECK(helpers.ort("{}", kBounds).ending == Ending::Done);
  CHECK(bench.starts() == 2);
}

TEST_CASE(
    "a helper that leaves in the middle of a request did not refuse it, with whatever exit code") {
  HelpersBench bench;
  bench.runner.add_resident("ort", [](const process::Command&, const std::string&) {
    return test::FakeAnswer{.reply = "", .run = {.exit_code = 0}, .dies = true};
  });
  ResidentHelpers helpers = bench.make();
  const HelperAnswer answer = helpers.ort("{}", kBounds);
  CHECK(answer.ending == Ending::Crashed);
  CHECK(answer.diagnostic.cause == "crashed: exit code 0");
}

TEST_CASE("a request that outlives its deadline is a time-out that names the limit") {
  HelpersBench bench;
  bench.runner.add_resident("sidecar", [](const process::Command&, const std::string&) {
    return test::FakeAnswer{.reply = "", .run = {.never_ends = true}};
  });
  ResidentHelpers helpers = bench.make();
  const HelperAnswer answer = helpers.sidecar("{}", kBounds);
  CHECK(answer.ending == Ending::TimedOut);
  CHECK(answer.diagnostic.cause == "timed out after 5 s");
}

TEST_CASE(
    "an answer that is not ok is a refusal with the helper's own place and text, and its JSON "
    "stays") {
  HelpersBench bench;
  bench.runner.add_resident("ort", [](const process::Command&, const std::string&) {
    return test::FakeAnswer{
        .reply =
            R"({"ok": false, "where": "compile", "text": "MEM_ALLOC, Code: 1002", "more": 1})"};
  });
  ResidentHelpers helpers = bench.make();
  const HelperAnswer answer = helpers.ort("{}", kBounds);
  CHECK(answer.ending == Ending::Refused);
  CHECK(answer.diagnostic.where == "compile");
  CHECK(answer.diagnostic.cause == "refused");
  CHECK(answer.diagnostic.text == "MEM_ALLOC, Code: 1002");
  CHECK(answer.json.find("more") != std::string::npos);
  CHECK(helpers.ort("{}", kBounds).ending == Ending::Refused);
  CHECK(bench.starts() == 1);  // a refusal is no reason to start anew
}

TEST_CASE("an answer that is no JSON object ends the helper") {
  HelpersBench bench;
  bench.runner.add_resident("ort", [](const process::Command&, const std::string&) {
    return test::FakeAnswer{.reply = "hello"};
  });
  ResidentHelpers helpers = bench.make();
  CHECK(helpers.ort("{}", kBounds).ending == Ending::Crashed);
  CHECK(helpers.ort("{}", kBounds).ending == Ending::Crashed);
  CHECK(bench.starts() == 2);
}

TEST_CASE(
    "a helper whose files are missing says which and how to get them; that is not the case's "
    "fault") {
  HelpersBench bench;
  HelperKind kind = bench.kind("sidecar");
  kind.needed = {"/nowhere/bin/python"};
  kind.how_to_get = "run scripts/setup";
  ResidentHelpers helpers(bench.runner, bench.blobs, bench.cancel, {},
                          bench.folder.path() / "helpers", bench.kind("ort"), kind);
  const HelperAnswer answer = helpers.sidecar("{}", kBounds);
  CHECK(answer.ending == Ending::Infrastructure);
  CHECK(answer.diagnostic.text == "sidecar cannot start: python is missing; run scripts/setup");
  CHECK(helpers.ort("{}", kBounds).ending ==
        Ending::Infrastructure);  // no such program in this test's world
}

TEST_CASE("the real helpers are found without PATH or activation") {
  for (const HelperKind& kind : {ResidentHelpers::ort_kind(), ResidentHelpers::sidecar_kind()}) {
    REQUIRE_FALSE(kind.argv.empty());
    CHECK(std::filesystem::path(kind.argv.front()).is_absolute());
    CHECK_FALSE(kind.needed.empty());
    CHECK_FALSE(kind.how_to_get.empty());
  }
}
