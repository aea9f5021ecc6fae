#include "shared/base/process_identity.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace layerfarm::base;

TEST_CASE("this process is alive, and another with its number is not it") {
  const ProcessIdentity self = this_process();
  CHECK(self.pid == ::getpid());
  CHECK(self.start_ticks > 0);
  CHECK(is_alive(self));
  ProcessIdentity other = self;
  ++other.start_ticks;
  CHECK_FALSE(is_alive(other));
  CHECK_FALSE(is_alive({self.host, 0, 0}));
}

TEST_CASE("a process that ended is not alive") {
  int gate[2];
  REQUIRE(::pipe(gate) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::close(gate[1]);
    ::_exit(::read(gate[0], &byte, 1) == 0 ? 0 : 1);
  }
  ::close(gate[0]);
  ProcessIdentity identity = this_process();
  identity.pid = child;
  ::close(gate[1]);
  ::waitpid(child, nullptr, 0);
  CHECK_FALSE(is_alive(identity));
}

TEST_CASE("processes that cannot be seen count as alive, those from before this boot do not") {
  ProcessIdentity far = this_process();
  far.host = "elsewhere/0000/pid:[1]";
  CHECK(is_alive(far));
  ProcessIdentity before = this_process();
  before.host = before.host.substr(0, before.host.find('/')) + "/another-boot/pid:[1]";
  CHECK_FALSE(is_alive(before));
  ProcessIdentity contained = this_process();
  contained.host = contained.host.substr(0, contained.host.rfind('/')) + "/pid:[1]";
  CHECK(is_alive(contained));
}

TEST_CASE("a tag gives its process back, and nothing else passes for one") {
  const ProcessIdentity self = this_process();
  CHECK(this_process_tag() == self.tag());
  CHECK(process_from_tag(self.tag()) == self);
  CHECK(process_from_tag(self.tag() + "-lease") == self);
  ProcessIdentity far = self;
  far.host = "elsewhere/0000/pid:[1]";
  CHECK_FALSE(process_from_tag(far.tag()).has_value());
  CHECK_FALSE(process_from_tag("").has_value());
  CHECK_FALSE(process_from_tag("123").has_value());
  CHECK_FALSE(process_from_tag("123.").has_value());
  CHECK_FALSE(process_from_tag("123.4").has_value());
  CHECK_FALSE(process_from_tag("123.4.").has_value());
  CHECK_FALSE(process_from_tag("x.1.2").has_value());
}

TEST_CASE("a forked child has a tag of its own") {
  const std::string mine = this_process_tag();
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const char other = this_process_tag() == mine ? 'n' : 'y';
    ::_exit(::write(ends[1], &other, 1) == 1 ? 0 : 1);
  }
  char answer = 0;
  CHECK(::read(ends[0], &answer, 1) == 1);
  CHECK(answer == 'y');
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}
