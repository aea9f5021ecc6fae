#include "coordinator/app/progress.h"

#include <doctest/doctest.h>

using namespace layerfarm;
using namespace std::chrono_literals;
using coordinator::app::clock_text;
using coordinator::app::Progress;

TEST_CASE("the line tells what is done, the rate of what was done now, and the time left") {
  Progress progress;
  progress.add_total(100);
  progress.add_known(40);
  for (int i = 0; i < 8; ++i) progress.settled(domain::Status::Success);
  progress.settled(domain::Status::Difference);
  progress.settled(domain::Status::Error);
  progress.activity("w1", "compile");
  progress.activity("w0", "run");
  CHECK(progress.line(5s) == "50/100  ok 8  diff 1  err 1  2.0/s  0:25 left  w0:run  w1:compile");
  progress.activity("w1", "");
  progress.settled_without_verdict();
  CHECK(progress.done() == 51);
  CHECK(progress.line(5s).find("w1") == std::string::npos);
}

TEST_CASE("nothing done means no rate and no promise") {
  Progress progress;
  progress.add_total(3);
  CHECK(progress.line(5s) == "0/3  ok 0  diff 0  err 0");
}

TEST_CASE("durations read as clocks") {
  CHECK(clock_text(65s) == "1:05");
  CHECK(clock_text(0s) == "0:00");
  CHECK(clock_text(7384s) == "2:03:04");
}
