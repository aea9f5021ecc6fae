#include "worker/ort/channel.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

using namespace layerfarm;
using namespace layerfarm::worker::ort;

namespace {

struct Wire {
  int ends[2] = {-1, -1};
  Wire() { REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0); }
  ~Wire() {
    ::close(ends[0]);
    if (ends[1] >= 0) ::close(ends[1]);
  }
  void send(const std::string& raw) const {
    REQUIRE(::write(ends[1], raw.data(), raw.size()) == static_cast<ssize_t>(raw.size()));
  }
  void hang_up() {
    ::close(ends[1]);
    ends[1] = -1;
  }
};

}  // namespace

TEST_CASE("a message arrives as it was sent, also an empty one") {
  const Wire wire;
  for (const std::string& message :
       {std::string("{\"op\":1}"), std::string(), std::string(5000, 'x')}) {
    REQUIRE(write_message(wire.ends[1], message));
    const auto got = read_message(wire.ends[0]);
    REQUIRE(got);
    CHECK(*got == message);
  }
}

TEST_CASE("the length is little endian") {
  const Wire wire;
  wire.send(std::string("\x02\x00\x00\x00hi", 6));
  CHECK(read_message(wire.ends[0])->value() == "hi");
}

TEST_CASE("closing between two messages is the end, closing inside one is an error") {
  Wire clean;
  clean.hang_up();
  const auto end = read_message(clean.ends[0]);
  REQUIRE(end);
  CHECK(!end->has_value());
  for (const std::string& part :
       {std::string("\x02\x00", 2), std::string("\x05\x00\x00\x00hi", 6)}) {
    Wire cut;
    cut.send(part);
    cut.hang_up();
    const auto got = read_message(cut.ends[0]);
    REQUIRE(!got);
    CHECK(got.error().code == base::ErrorCode::Corrupt);
  }
}

TEST_CASE("a length that nobody of ours sends is refused before anything is allocated") {
  const Wire wire;
  wire.send("\xff\xff\xff\xff");
  const auto got = read_message(wire.ends[0]);
  REQUIRE(!got);
  CHECK(got.error().code == base::ErrorCode::InvalidInput);
}

TEST_CASE("an answer to nobody is an error, not a signal") {
  Wire wire;
  wire.hang_up();
  CHECK(!write_message(wire.ends[0], "hello"));
  CHECK(!read_message(-1));
}
