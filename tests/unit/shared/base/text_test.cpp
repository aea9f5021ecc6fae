#include "shared/base/text.h"

#include <doctest/doctest.h>

using namespace layerfarm::base;

TEST_CASE("words are joined, and compared without minding capitals") {
  CHECK(join({}) == "");
  CHECK(join({"a"}) == "a");
  CHECK(join({"a", "b", "c"}) == "a, b, c");
  CHECK(join({"a", "b"}, " or ") == "a or b");
  CHECK(equal_any_case("Host", "hOST"));
  CHECK_FALSE(equal_any_case("host", "hosts"));
}

TEST_CASE("control codes do not reach a terminal; lines, tabs, colours and other letters do") {
  CHECK(printable("") == "");
  CHECK(printable("a\tb\nc") == "a\tb\nc");
  CHECK(printable("\033[32msuccess\033[0m \033[1;31mx") == "\033[32msuccess\033[0m \033[1;31mx");
  CHECK(printable("a\033[2Jb\033]0;title\007c\rd\x7f") == "a?[2Jb?]0;title?c?d?");
  CHECK(printable("\033[32") == "?[32");
  CHECK(printable(std::string_view("\0x", 2)) == "?x");
  CHECK(printable("\u00e4\u20ac \u009b2J \u0085") == "\u00e4\u20ac ?2J ?");
  CHECK(printable("\xc2") == "\xc2");
}
