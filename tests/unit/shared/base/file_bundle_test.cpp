#include "shared/base/file_bundle.h"

#include <doctest/doctest.h>

using namespace layerfarm::base;

TEST_CASE("a bundle gives back the files that went in, in their order") {
  const std::vector<BundledFile> files = {
      {"phases/module.1.mlir", "one"}, {"a", ""}, {"debug/ir/é.mlir", std::string("\0\n\xff", 3)}};
  const auto back = decode_bundle(encode_bundle(files));
  REQUIRE(back);
  CHECK(*back == files);
  CHECK(decode_bundle("")->empty());
}

TEST_CASE("a bundle that ends early is damaged, at whatever byte") {
  const Bytes whole = encode_bundle({{"phases/a.mlir", "content"}});
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const auto back = decode_bundle(BytesView(whole).substr(0, size));
    REQUIRE_FALSE(back);
    CHECK(back.error().code == ErrorCode::Corrupt);
  }
  // Lengths beyond all memory are only numbers.
  CHECK_FALSE(decode_bundle(std::string("\x01\0\0\0", 4) + std::string(8, '\xff') + "a"));
}

TEST_CASE("a path that leaves the folder is refused") {
  for (const char* path : {"", "/etc/x", "../x", "a/../../x", "a/..", "./x", "a//../x", "a/"}) {
    CHECK_MESSAGE(!decode_bundle(encode_bundle({{path, "x"}})), path);
  }
  CHECK_FALSE(decode_bundle(encode_bundle({{std::string("a\0b", 3), "x"}})));
  CHECK(decode_bundle(encode_bundle({{"a/..b/c..", "x"}})));
}
