#include "worker/onnx/segment_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

using namespace layerfarm;
using worker::onnx::order_parts;
using worker::onnx::Part;
using worker::onnx::unite;

namespace {

using Needs = std::vector<std::vector<std::size_t>>;

/// The fewest parts of any order: every executor is tried at every step.
std::size_t fewest(const Needs& needs, const std::vector<std::size_t>& executor_of,
                   const std::set<std::size_t>& done, std::size_t last) {
  if (done.size() == needs.size()) return 0;
  std::size_t best = needs.size() + 1;
  for (std::size_t e = 0; e < 3; ++e) {
    if (e == last) continue;
    std::set<std::size_t> now = done;
    for (std::size_t i = 0; i < needs.size(); ++i) {
      const bool able = std::all_of(needs[i].begin(), needs[i].end(),
                                    [&](std::size_t need) { return now.contains(need); });
      if (executor_of[i] == e && able) now.insert(i);
    }
    if (now.size() > done.size()) best = std::min(best, 1 + fewest(needs, executor_of, now, e));
  }
  return best;
}

}  // namespace

TEST_CASE("a chain is cut where its executor changes") {
  const auto parts = order_parts({{}, {0}, {1}, {2}}, {0, 0, 1, 0});
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].items == std::vector<std::size_t>{0, 1});
  CHECK(parts[1].executor == 1);
  CHECK(parts[2].items == std::vector<std::size_t>{3});
}

TEST_CASE("branches wait for one another where that saves a switch") {
  // 0 -> 1 -> 2 on a b a; 3 -> 4 on b a. Begun with b, three parts are enough for all.
  const auto parts = order_parts({{}, {0}, {1}, {}, {3}}, {0, 1, 0, 1, 0});
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].items == std::vector<std::size_t>{0});
  CHECK(parts[1].items == std::vector<std::size_t>{1, 3});
  CHECK(parts[2].items == std::vector<std::size_t>{2, 4});
  // The first executor that is tried is not always the best one.
  CHECK(order_parts({{}, {}, {1}}, {0, 1, 0}).size() == 2);
}

TEST_CASE("no items, no parts") { CHECK(order_parts({}, {}).empty()); }

TEST_CASE("every order can run, holds each item once, and with two executors is the shortest") {
  constexpr unsigned kSeed = 20261130;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 300; ++round) {
    const std::size_t executors = 1 + random() % 3;
    Needs needs(1 + random() % 9);
    std::vector<std::size_t> executor_of;
    for (std::size_t i = 0; i < needs.size(); ++i) {
      executor_of.push_back(random() % executors);
      for (std::size_t j = 0; j < i; ++j) {
        if (random() % 3 == 0) needs[i].push_back(j);
      }
    }
    const auto parts = order_parts(needs, executor_of);
    std::set<std::size_t> done;
    for (const Part& part : parts) {
      for (const std::size_t item : part.items) {
        CHECK(executor_of[item] == part.executor);
        for (const std::size_t need : needs[item]) CHECK(done.contains(need));
        CHECK(done.insert(item).second);
      }
    }
    CHECK(done.size() == needs.size());
    for (std::size_t i = 1; i < parts.size(); ++i)
      CHECK(parts[i].executor != parts[i - 1].executor);
    const std::size_t least = fewest(needs, executor_of, {}, 3);
    CAPTURE(round);
    if (executors < 3) {
      CHECK(parts.size() == least);
    } else {
      CHECK(parts.size() <= least + 2);
    }
  }
}

TEST_CASE("what is united holds all that lies between, and comes after all that it needs") {
  // 0 -> 1 -> 2 -> 3 and 0 -> 4: 1 and 3 belong together, and with them 2.
  const Needs chain = {{}, {0}, {1}, {2}, {0}};
  CHECK(unite(chain, {{1, 3}}) == Needs{{0}, {1, 2, 3}, {4}});
  CHECK(unite(chain, {}) == Needs{{0}, {1}, {2}, {3}, {4}});
  // Two groups that need one another are one: 0 -> 2, 1 -> 3.
  CHECK(unite({{}, {}, {0}, {1}}, {{0, 3}, {1, 2}}) == Needs{{0, 1, 2, 3}});
  constexpr unsigned kSeed = 20261201;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 300; ++round) {
    Needs needs(1 + random() % 12);
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t i = 0; i < needs.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (random() % 4 == 0) needs[i].push_back(j);
        if (random() % 12 == 0) pairs.emplace_back(j, i);
      }
    }
    CAPTURE(round);
    const Needs groups = unite(needs, pairs);
    std::vector<std::size_t> group_of(needs.size(), needs.size());
    for (std::size_t group = 0; group < groups.size(); ++group) {
      CHECK(std::is_sorted(groups[group].begin(), groups[group].end()));
      for (const std::size_t item : groups[group]) {
        CHECK(group_of[item] == needs.size());
        group_of[item] = group;
      }
    }
    for (std::size_t i = 0; i < needs.size(); ++i) {
      for (const std::size_t need : needs[i]) CHECK(group_of[need] <= group_of[i]);
    }
    for (const auto& [a, b] : pairs) CHECK(group_of[a] == group_of[b]);
    if (pairs.empty()) CHECK(groups.size() == needs.size());
  }
}
