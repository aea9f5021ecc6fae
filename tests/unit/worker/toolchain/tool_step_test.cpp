#include "worker/toolchain/tool_step.h"

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>

#include "shared/base/files.h"
#include "tests/support/worker/toolchain_bench.h"

using namespace layerfarm;
using namespace layerfarm::worker;
using namespace layerfarm::worker::toolchain;
using domain::Ending;
using process::Ended;
using process::ProcessResult;

namespace {

ProcessResult ended(Ended how) {
  ProcessResult out;
  out.ended = how;
  return out;
}

ProcessResult exited(int code, const std::string& errors = "") {
  ProcessResult out = ended(Ended::Exited);
  out.exit_code = code;
  out.errors.text = errors;
  return out;
}

ProcessResult signalled(int signal) {
  ProcessResult out = ended(Ended::Signalled);
  out.signal = signal;
  return out;
}

const process::Bounds kBounds = {.wall = std::chrono::seconds(240),
                                 .memory_bytes = 512 << 20,
                                 .output_bytes = 1000,
                                 .file_bytes = 3 << 20};

}  // namespace

TEST_CASE("each way a child ends has its ending and a cause for people") {
  const auto check = [](const ProcessResult& result, Ending ending, const std::string& cause) {
    CHECK(ending_of(result) == ending);
    CHECK(cause_of(result, kBounds) == cause);
  };
  check(exited(0), Ending::Done, "");
  check(exited(3), Ending::Refused, "refused");
  check(exited(1, "x: No space left on device"), Ending::Infrastructure, "disk full");
  check(exited(126), Ending::Infrastructure, "cannot start here");
  check(exited(127, "sh: 1: torq-sim: not found"), Ending::Infrastructure, "cannot start here");
  check(exited(1, "t: error while loading shared libraries: libx.so.1: cannot open"),
        Ending::Infrastructure, "cannot start here");
  check(exited(1, "t: /lib/libc.so.6: version `GLIBC_2.38' not found (required by t)"),
        Ending::Infrastructure, "cannot start here");
  check(exited(125), Ending::Refused, "refused");
  check(signalled(SIGSEGV), Ending::Crashed, "crashed: SIGSEGV");
  check(signalled(SIGXFSZ), Ending::OverOutput, "wrote a file larger than 3 MiB");
  check(ended(Ended::TimedOut), Ending::TimedOut, "timed out after 240 s");
  check(ended(Ended::OverMemory), Ending::OverMemory, "used more than 512 MiB of memory");
  check(ended(Ended::OverOutput), Ending::OverOutput, "printed more than 1000 bytes");
  check(ended(Ended::OverFile), Ending::OverOutput, "wrote a file larger than 3 MiB");
  check(ended(Ended::Cancelled), Ending::Cancelled, "cancelled");
  check(ended(Ended::NotStarted), Ending::Infrastructure, "not started");
}

TEST_CASE("a success is never called a full disk, whatever it prints") {
  CHECK(ending_of(exited(0, "No space left on device")) == Ending::Done);
}

TEST_CASE(
    "bounds come from the limits; a batch has n times the time of one and no more of anything "
    "else") {
  const domain::Limits limits{.compile_timeout_ms = 1500,
                              .run_timeout_ms = 700,
                              .memory_bytes = 11,
                              .output_bytes = 12,
                              .file_bytes = 13};
  const auto batch = compile_bounds(limits, 4);
  CHECK(batch.wall == std::chrono::milliseconds(6000));
  CHECK(batch.memory_bytes == 11);
  CHECK(batch.output_bytes == 12);
  CHECK(batch.file_bytes == 13);
  CHECK(compile_bounds(limits).wall == std::chrono::milliseconds(1500));
  CHECK(run_bounds(limits).wall == std::chrono::milliseconds(700));
  ProcessResult late = ended(Ended::TimedOut);
  CHECK(cause_of(late, run_bounds(limits)) == "timed out after 700 ms");
}

TEST_CASE(
    "a failed tool leaves a diagnostic for people and a raw report with command, versions and all "
    "it printed") {
  test::ToolBench bench;
  bench.runner.add("tool", [](const process::Command&) {
    return test::FakeRun{
        .exit_code = 2, .output = "out text", .errors = "/tmp/a/b.mlir: bad thing"};
  });
  ToolCall call{.command = {}, .where = "compile", .tool = "tool 1.2"};
  call.command.argv = {"/opt/tool", "--flag", "a b"};
  const ToolEnd end = run_tool(call, bench.context());
  CHECK(end.ending == Ending::Refused);
  CHECK(end.diagnostic.where == "compile");
  CHECK(end.diagnostic.cause == "refused");
  CHECK(end.diagnostic.text.find("bad thing") != std::string::npos);
  CHECK(end.diagnostic.text.find("/tmp/a") == std::string::npos);
  const auto raw = bench.blobs.get(end.diagnostic.raw);
  REQUIRE(raw.has_value());
  for (const char* part : {"tool 1.2", R"(["/opt/tool","--flag","a b"])", "out text",
                           "/tmp/a/b.mlir: bad thing", "exit code 2"}) {
    CHECK_MESSAGE(raw->find(part) != std::string::npos, part);
  }
}

TEST_CASE(
    "a tool that fails without a word is told by its exit code, one that speaks on standard output "
    "is heard") {
  test::ToolBench bench;
  bench.runner.add("mute", [](const process::Command&) { return test::FakeRun{.exit_code = 9}; });
  bench.runner.add("wrong", [](const process::Command&) {
    return test::FakeRun{.exit_code = 1, .output = "it is broken"};
  });
  ToolCall call{
      .command = {.argv = {"mute"}, .environment = {}, .folder = {}, .cores = {}, .bounds = {}},
      .where = "run",
      .tool = "t"};
  CHECK(run_tool(call, bench.context()).diagnostic.text == "exit code 9");
  call.command.argv = {"wrong"};
  CHECK(run_tool(call, bench.context()).diagnostic.text == "it is broken");
}

TEST_CASE("a program that is not there is not the case's fault") {
  test::ToolBench bench;
  ToolCall call{
      .command = {.argv = {"absent"}, .environment = {}, .folder = {}, .cores = {}, .bounds = {}},
      .where = "run",
      .tool = "t"};
  const ToolEnd end = run_tool(call, bench.context());
  CHECK(end.ending == Ending::Infrastructure);
  CHECK(end.diagnostic.cause == "not started");
  CHECK_FALSE(end.diagnostic.text.empty());
}

TEST_CASE("an error of our own is an infrastructure diagnostic with its text") {
  const auto why = infrastructure(
      "compile", {.code = base::ErrorCode::Internal, .message = "disk gone", .context = {}});
  CHECK(why.where == "compile");
  CHECK(why.text.find("disk gone") != std::string::npos);
  CHECK(diagnostic("a", "b", "c") ==
        domain::Diagnostic{.where = "a", .cause = "b", .text = "c", .raw = {}});
}
