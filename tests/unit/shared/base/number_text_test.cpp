#include "shared/base/number_text.h"

#include <doctest/doctest.h>

#include <limits>

using layerfarm::base::number_text;

TEST_CASE("a number is written as Python's repr writes it") {
  CHECK(number_text(0.01) == "0.01");
  CHECK(number_text(3) == "3.0");
  CHECK(number_text(-40) == "-40.0");
  CHECK(number_text(0.0) == "0.0");
  CHECK(number_text(-0.0) == "-0.0");
  CHECK(number_text(0.0001) == "0.0001");
  CHECK(number_text(0.00001) == "1e-05");
  CHECK(number_text(1.5e-7) == "1.5e-07");
  CHECK(number_text(1e15) == "1000000000000000.0");
  CHECK(number_text(1e16) == "1e+16");
  CHECK(number_text(1.25e100) == "1.25e+100");
  CHECK(number_text(123.456) == "123.456");
  CHECK(number_text(0.1 + 0.2) == "0.30000000000000004");
  CHECK(number_text(5e-324) == "5e-324");
}

TEST_CASE("what is no number has a name") {
  CHECK(number_text(std::numeric_limits<double>::quiet_NaN()) == "nan");
  CHECK(number_text(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(number_text(-std::numeric_limits<double>::infinity()) == "-inf");
}
