#include "worker/toolchain/cpu.h"

#include <doctest/doctest.h>

using namespace layerfarm::worker::toolchain;

namespace {
const std::string kInfo =
    "processor\t: 0\nvendor_id\t: V\ncpu family\t: 6\nmodel\t\t: 5\nmodel name\t: The "
    "CPU\nflags\t\t: sse avx\n\nprocessor\t: 1\nmodel name\t: Other\n";
}

TEST_CASE(
    "the processor's name is read from the first processor, and is unknown when there is none") {
  CHECK(cpu_model_of(kInfo) == "The CPU");
  CHECK(cpu_model_of("") == "unknown");
  CHECK(cpu_model_of("model name\t:\n") == "unknown");
}

TEST_CASE("the processor's vendor is read, and is unknown when there is none") {
  CHECK(cpu_vendor_of(kInfo) == "V");
  CHECK(cpu_vendor_of("") == "unknown");
  CHECK_FALSE(cpu_vendor().empty());
}

TEST_CASE("the processor's identity changes with its features, not with their order or the clock") {
  const std::string identity = cpu_identity_of(kInfo);
  CHECK(identity.rfind("The CPU ", 0) == 0);
  const auto with = [](const std::string& from, const std::string& to) {
    std::string out = kInfo;
    return out.replace(out.find(from), from.size(), to);
  };
  CHECK(cpu_identity_of(with("sse avx", "avx sse")) == identity);
  CHECK(cpu_identity_of(with("sse avx", "sse avx fma")) != identity);
  CHECK(cpu_identity_of(with("model\t\t: 5", "model\t\t: 7")) != identity);
  CHECK(cpu_identity_of(kInfo + "cpu MHz\t: 3000\n") == identity);
}

TEST_CASE("this machine's processor has a name and an identity that begins with it") {
  CHECK_FALSE(cpu_model().empty());
  CHECK(cpu_identity().rfind(cpu_model(), 0) == 0);
}
