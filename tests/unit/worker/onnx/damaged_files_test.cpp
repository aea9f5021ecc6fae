// Whatever the bytes are, reading them gives layers or one reason. LAYERFARM_SEED repeats a run.
#include <cstdio>
#include <cstdlib>
#include <random>

#include "tests/unit/worker/onnx/bench.h"

using namespace layerfarm;
using namespace layerfarm::test;

namespace {

std::vector<std::string> samples() {
  std::vector<std::string> out;
  for (const char* name : {"gen_odd.onnx", "macs.onnx"})
    out.push_back(read_model(name).SerializeAsString());
  out.push_back(
      graph_model(
          R"((float[2,3] x, int64 n, bool c, int64[2] k) => (float[2,3] y, float[m,2,3] trace) <float[3] scale = {1.5, 2.5, 3.5}> {
    s = Shape(x)
    r = Reshape(x, s)
    g = Gather<axis = 0>(r, k)
    z = Slice(g, k, s)
    p = Pad(z, s)
    y, trace = Loop(n, c, r) <body = body (int64 i, bool go, float[2,3] state) => (bool more, float[2,3] next, float[2,3] seen) {
      more = Identity(go) next = Add(state, x) seen = Mul(next, scale)
    }>
  })")
          .SerializeAsString());
  out.push_back(parse_model(R"(
    <ir_version: 8, opset_import: ["" : 17, "own" : 1]>
    agraph (float[2,3] x) => (float[2,3] y) <float[3] w = {1.0, 2.0, 3.0}> { y = own.twice<alpha = 0.5>(x, w) }
    <domain: "own", opset_import: ["" : 17]>
    twice <alpha> (a, b) => (z) { q = LeakyRelu<alpha: float = @alpha>(a)  z = Add(q, b) })")
                    .SerializeAsString());
  return out;
}

}  // namespace

TEST_CASE("cut and changed files never get further than a reason") {
  const char* fixed = std::getenv("LAYERFARM_SEED");
  const unsigned seed = fixed != nullptr ? static_cast<unsigned>(std::strtoul(fixed, nullptr, 10))
                                         : std::random_device{}();
  std::fprintf(stderr, "damaged files: seed %u\n", seed);  // before a crash could hide it
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  OnnxBench bench;
  int refused = 0;
  int read = 0;
  const auto check = [&](const std::string& bytes) {
    const auto answer = bench.try_analyze(bench.write(bytes));
    if (answer) {
      ++read;
      return;
    }
    ++refused;
    const std::string reason = answer.error().text();
    CHECK_FALSE(reason.empty());
    CHECK(reason.size() < 2000);
  };
  for (const std::string& whole : samples()) {
    for (std::size_t cut = 0; cut < whole.size(); cut += 1 + below(40)) check(whole.substr(0, cut));
    for (int round = 0; round < 400; ++round) {
      std::string bytes = whole;
      for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
        const std::size_t at = below(bytes.size());
        switch (below(4)) {
          case 0:
            bytes[at] ^= static_cast<char>(1 << below(8));
            break;
          case 1:
            bytes[at] = static_cast<char>(below(256));
            break;
          case 2:
            bytes.erase(at, 1 + below(8));
            break;
          default:
            bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(16)));
        }
        if (bytes.empty()) bytes = "x";
      }
      check(bytes);
    }
  }
  CHECK(refused > 100);
  CHECK(read > 100);
}
