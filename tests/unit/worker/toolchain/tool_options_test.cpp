#include "worker/toolchain/tool_options.h"

#include <doctest/doctest.h>

using namespace layerfarm;
using namespace layerfarm::worker::toolchain;

TEST_CASE("option readers fall back to what is said") {
  const domain::Options options = {{"n", "5"},    {"big", "99"}, {"odd", "5x"},
                                   {"empty", ""}, {"p.a", "1"},  {"p.", "2"}};
  CHECK(number_option(options, "n", 1, 0, 10) == 5);
  CHECK(number_option(options, "big", 1, 0, 10) == 1);
  CHECK(number_option(options, "odd", 1, 0, 10) == 1);
  CHECK(number_option(options, "none", 1, 0, 10) == 1);
  CHECK(text_option(options, "n", "x") == "5");
  CHECK(text_option(options, "empty", "x") == "x");
  CHECK(text_option(options, "none", "x") == "x");
  CHECK(options_with_prefix(options, "p.") == domain::Options{{"a", "1"}});
}
