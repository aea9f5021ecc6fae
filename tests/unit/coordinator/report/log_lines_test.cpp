#include "coordinator/report/log_lines.h"

#include <doctest/doctest.h>

using namespace layerfarm;
using namespace layerfarm::coordinator::report;

namespace {
const CaseLine kLine = {"Conv_a", "nss", "", "", ""};
}

TEST_CASE("a finished case says layer, executor, status and what belongs to it") {
  CaseResult result;
  result.status = domain::Status::Success;
  CHECK(case_lines(kLine, result, Colour::No) == "\nLayer Conv_a: NSS = success");
  result.timing = Timing{4.125, 4, 4, 0, 3, ""};
  result.copied_from = "Conv_0";
  CHECK(case_lines(kLine, result, Colour::No) ==
        "\nLayer Conv_a: NSS = success (4.125ms) (copied from Conv_0)");
  CHECK(case_lines(kLine, CaseResult{.status = domain::Status::Success}, Colour::Yes) ==
        "\nLayer Conv_a: NSS = \033[32msuccess\033[0m");
  CHECK(case_lines({"Conv_a", "htp", "SM8550", "emulator", ""},
                   CaseResult{.status = domain::Status::Success, .note = "raised to opset 17"},
                   Colour::No) ==
        "\nLayer Conv_a: SM8550 HTP = success (emulator) (raised to opset 17)");
}

TEST_CASE("a difference has its summary below, a failed run its class and first line") {
  CaseResult result;
  result.status = domain::Status::Difference;
  result.max_rel_diff = 0.5;
  CHECK(case_lines(kLine, result, Colour::Yes) ==
        "\nLayer Conv_a: NSS = \033[33mdifference\033[0m\n  Max relative difference: 0.5\n  Max "
        "absolute difference: n/a\n  Number of "
        "differences: 0 out of 0 [0.00%]");
  const domain::Diagnostic run{"run", "timed out after 2 s", "killed\nmore", {}};
  CHECK(case_lines(kLine, case_result(run, {}), Colour::No) ==
        "\nLayer Conv_a: NSS = error\n  (timed out after 2 s: killed)");
  const domain::Diagnostic setup{"compile", "crashed: SIGSEGV", "", {}};
  CHECK(case_lines(kLine, case_result(setup, {}), Colour::Yes) ==
        "\nLayer Conv_a: NSS = \033[31merror\033[0m (setup: crashed: SIGSEGV)");
}

TEST_CASE("with several models each line names its own") {
  const CaseLine line = {"Conv_a", "nss", "", "", "net"};
  CHECK(case_lines(line, CaseResult{.status = domain::Status::Success}, Colour::No) ==
        "\nLayer Conv_a (net): NSS = success");
  CHECK(case_lines({"Conv_a", "htp", "SM8550", "emulator", "net"},
                   CaseResult{.status = domain::Status::Success},
                   Colour::No) == "\nLayer Conv_a (net): SM8550 HTP = success (emulator)");
  CHECK(unsettled_lines(line, "worker lost") ==
        "\nLayer Conv_a (net): NSS = unsettled (worker lost)");
}

TEST_CASE("an unsettled case gives its reason") {
  CHECK(unsettled_lines(kLine, "worker lost\nx") ==
        "\nLayer Conv_a: NSS = unsettled (worker lost)");
}

TEST_CASE("progress is rounded down and padded") {
  CHECK(progress_line(2, 12) == "[progress] 2/12 [ 16%]");
  CHECK(progress_line(0, 12) == "[progress] 0/12 [  0%]");
  CHECK(progress_line(12, 12) == "[progress] 12/12 [100%]");
  CHECK(progress_line(0, 0) == "[progress] 0/0 [100%]");
}

TEST_CASE("other lines of a run") {
  CHECK(chip_line("default", "SL2610") == "[Chip] chip=default target=SL2610");
  CHECK(saved_line("out/r.json") == "Detailed report saved to: out/r.json");
  CHECK(failing_line(0).empty());
  CHECK(failing_line(4) == "Discovery finished with 4 failing case(s)");
  CHECK(case_label("mlp", "Sigmoid", 3, "nss") == "mlp_layer_Sigmoid_3_nss");
  CHECK(details_head("mlp_layer_Sigmoid_3_nss", true) ==
        "[mlp_layer_Sigmoid_3_nss] setup error details:");
  CHECK(details_head("l", false) == "[l] run error details:");
}
