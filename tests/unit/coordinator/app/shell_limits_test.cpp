#include "coordinator/app/shell_limits.h"

#include <doctest/doctest.h>

using namespace layerfarm::coordinator::app;

TEST_CASE("a hard limit that is too small is named, with what is needed and what to type") {
  CHECK(shell_limit_problem({}, 2).empty());
  ShellLimits files;
  files.files = {.soft = 64, .hard = 64};
  CHECK(shell_limit_problem(files, 2).starts_with(
      "the shell's limit on open files (ulimit -n) is 64, at least 264 is needed; run `ulimit -n "
      "264`"));
  ShellLimits stack;
  stack.stack = {.soft = 64 << 10, .hard = 64 << 10};
  CHECK(shell_limit_problem(stack, 1).starts_with(
      "the shell's limit on the stack, in KiB, (ulimit -s) is 64, at least 4096 is needed"));
  ShellLimits memory;
  memory.memory = {.soft = 1 << 20, .hard = 1 << 20};
  CHECK(shell_limit_problem(memory, 1).find("(ulimit -v) is 1024") != std::string::npos);
}

TEST_CASE("a soft limit is no problem: it is raised; more workers need more files") {
  ShellLimits limits;
  limits.files = {.soft = 64, .hard = 300};
  limits.stack = {.soft = 64 << 10, .hard = 8 << 20};
  CHECK(shell_limit_problem(limits, 2).empty());
  CHECK_FALSE(shell_limit_problem(limits, 100).empty());
}
