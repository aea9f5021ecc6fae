#include "coordinator/app/child_call.h"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <chrono>
#include <string>

using namespace layerfarm;
using namespace std::chrono_literals;
using coordinator::app::call_child;
using coordinator::app::Take;

namespace {

base::Result<coordinator::app::ChildAnswer> shell(const std::string& script, Take take,
                                                  const std::string& input = "",
                                                  base::Duration patience = 20s) {
  return call_child({"/bin/sh", "-c", script}, input, take, patience);
}

}  // namespace

TEST_CASE("a child gets its input whole and its output is taken whole") {
  const std::string input(300'000, 'x');
  const auto answer = shell("cat; exit 3", Take::Output, input);
  REQUIRE(answer);
  CHECK(answer->text == input);
  CHECK(WEXITSTATUS(answer->status) == 3);
}

TEST_CASE("of a child's errors nothing else is mixed in, and one that reads nothing does no harm") {
  const auto answer =
      shell("echo result; echo reason >&2", Take::Errors, std::string(300'000, 'x'));
  REQUIRE(answer);
  CHECK(answer->text == "reason\n");
  CHECK(answer->status == 0);
}

TEST_CASE("a child that is not there or takes too long is said by its name") {
  const auto missing = call_child({"/nowhere/program"}, "", Take::Output, 20s);
  REQUIRE(!missing);
  CHECK(missing.error().code == base::ErrorCode::Unavailable);
  CHECK(missing.error().message.find("/nowhere/program") != std::string::npos);
  const auto slow = shell("exec sleep 30", Take::Output, "", 100ms);
  REQUIRE(!slow);
  CHECK(slow.error().message == "/bin/sh gave no answer in time");
}
