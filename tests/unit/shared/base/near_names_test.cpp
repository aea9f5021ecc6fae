#include "shared/base/near_names.h"

#include <doctest/doctest.h>

using namespace layerfarm::base;
using Names = std::vector<std::string>;

TEST_CASE("a name is found whatever its capitals, unless several are meant") {
  CHECK(find_any_case({"cpu", "htp"}, "HTP") == "htp");
  CHECK(find_any_case({"HTP", "htp"}, "htp") == "htp");
  CHECK(!find_any_case({"HTP", "htp"}, "Htp"));
  CHECK(!find_any_case({"Htp", "HTp", "hTP"}, "htp"));
  CHECK(!find_any_case({"htp"}, "ht"));
}

TEST_CASE("the nearest names come first, and a slip is told from another name") {
  const Names chips = {"SL2610", "SM8550", "SM8650", "null"};
  CHECK(nearest("SM8551", chips, 2) == Names{"SM8550", "SM8650"});
  CHECK(nearest("x", {}, 2).empty());
  CHECK(likely_meant("sm8550", chips) == Names{"SM8550"});
  CHECK(likely_meant("SM8x50", chips) == Names{"SM8550", "SM8650"});
  CHECK(likely_meant("zz", chips).empty());
  CHECK(likely_meant("llama", chips).empty());
}
