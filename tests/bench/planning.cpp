// What planning costs: time and bytes for a model of 10,000 layers on two executors (cold, and with
// everything known), and for a million cases; settling them one by one. Prints a JSON line per
// figure.
//
// Usage: bench_planning
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "coordinator/plan/case_book.h"
#include "tests/support/coordinator/planning.h"

namespace {

using namespace layerfarm;
using namespace layerfarm::coordinator::plan;

/// Of this process's CPU time: planning is one thread that waits for nothing, and the machine may
/// be busy.
struct Clock {
  using time_point = std::clock_t;
  static time_point now() { return std::clock(); }
};
double seconds_since(Clock::time_point begin) {
  return static_cast<double>(Clock::now() - begin) / CLOCKS_PER_SEC;
}

/// Everything is known, or nothing: answers by the kind of key that is asked.
class AllKnown final : public Known {
 public:
  explicit AllKnown(bool known) : known_(known) {}
  std::shared_ptr<const domain::Outcome> find(const base::Digest&) override {
    return known_ ? executed_ : nullptr;
  }

 private:
  bool known_;
  std::shared_ptr<const domain::Outcome> executed_ = test::executed(0.001);
};

std::shared_ptr<domain::ModelAnalysis> distinct_layers(int count) {
  std::vector<domain::Layer> layers;
  for (int i = 0; i < count; ++i) {
    layers.push_back(test::layer("Conv_" + std::to_string(i), "kind" + std::to_string(i)));
  }
  return test::model(std::move(layers));
}

void print(const char* name, double value, const char* unit, double limit) {
  std::printf(
      "{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"peer\": \"limit\", \"peer_value\": "
      "%.6g, \"ratio\": %.3f}\n",
      name, value, unit, limit, value / limit);
  std::fflush(stdout);
}

void fail(const char* what) {
  std::fprintf(stderr, "bench_planning: %s\n", what);
  std::_Exit(1);
}

}  // namespace

int main() {
  const auto model = distinct_layers(10'000);
  const auto chip = test::chip("c", {"npu", "host"});
  for (const bool known : {false, true}) {
    AllKnown store(known);
    CaseBook book(store);
    const Clock::time_point begin = Clock::now();
    const auto added = book.add(test::request(model, {chip}));
    const double took = seconds_since(begin);
    if (!added || added->turn.settled.size() != (known ? 20'000U : 0U)) fail("planned wrongly");
    print(known ? "planning 10,000 layers, all known" : "planning 10,000 layers, cold", took, "s",
          1.0);
  }
  {
    // Fifty chips of two executors, nothing in common but the layers.
    AllKnown store(false);
    CaseBook book(store);
    std::vector<std::shared_ptr<const PlanChip>> chips;
    for (int i = 0; i < 50; ++i)
      chips.push_back(test::chip("c" + std::to_string(i), {"npu", "host"}));
    Clock::time_point begin = Clock::now();
    const auto added = book.add(test::request(model, chips));
    if (!added) fail("not planned");
    const double cases = 1e6;
    print("planning a million cases", seconds_since(begin) / cases * 1e6, "us/case", 20);
    print("a million cases, 50 chips", static_cast<double>(book.memory_bytes()) / cases,
          "bytes/case", 120);
    const auto prepared = test::prepared();
    const auto compiled = test::compiled();
    const auto executed = test::executed(0.001);
    std::size_t settled = 0;
    begin = Clock::now();
    for (const PlannedJob& job : added->turn.jobs) {
      const auto& outcome = job.stage == domain::Stage::Prepare   ? prepared
                            : job.stage == domain::Stage::Compile ? compiled
                                                                  : executed;
      settled += book.on_settled(job.id, Answered{outcome}).settled.size();
    }
    if (settled != 1'000'000) fail("not all cases were settled");
    print("settling a million cases", seconds_since(begin) / cases * 1e6, "us/case", 20);
  }
  {
    // Nothing in common at all.
    AllKnown store(false);
    CaseBook book(store);
    const auto large = distinct_layers(200'000);
    const auto added = book.add(test::request(large, {chip}));
    if (!added) fail("not planned");
    print("cases that share nothing, 2 executors", static_cast<double>(book.memory_bytes()) / 4e5,
          "bytes/case", 150);
  }
}
