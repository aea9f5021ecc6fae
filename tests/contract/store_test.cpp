// What every Store does, the real one and the tests' own.
#include "coordinator/store/store.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <functional>
#include <memory>

#include "coordinator/store/sqlite_store.h"
#include "shared/base/files.h"
#include "tests/support/coordinator/in_memory_store.h"
#include "tests/support/outcomes.h"

namespace {

using namespace layerfarm;
using namespace layerfarm::coordinator::store;
using test::key_of;

struct Kind {
  const char* name;
  std::function<std::unique_ptr<Store>(const std::filesystem::path&)> make;
};

const Kind kKinds[] = {
    {"InMemoryStore",
     [](const auto&) -> std::unique_ptr<Store> { return std::make_unique<test::InMemoryStore>(); }},
    {"SqliteStore",
     [](const auto& folder) -> std::unique_ptr<Store> {
       auto store = SqliteStore::open(folder);
       REQUIRE_MESSAGE(store.has_value(), store.error().text());
       return std::move(*store);
     }},
};

/// Runs `body` over each kind with a store of its own.
void with_each(const std::function<void(Store&)>& body) {
  for (const Kind& kind : kKinds) {
    CAPTURE(kind.name);
    auto folder = base::ScratchFolder::make(std::filesystem::temp_directory_path(), "store");
    REQUIRE(folder.has_value());
    const auto store = kind.make(folder->path());
    body(*store);
  }
}

RunId begin(Store& store) {
  const auto run = store.begin_run({.process = base::this_process(),
                                    .started_ms = 7,
                                    .command = {"layerfarm", "discover", "a b"}});
  REQUIRE(run.has_value());
  return *run;
}

/// Waits, with a bound, until the ticket is durable.
void settle(Store& store, Ticket ticket) {
  for (int i = 0; i < 100; ++i) {
    pollfd news{.fd = store.fd(), .events = POLLIN, .revents = 0};
    REQUIRE(::poll(&news, 1, 10'000) == 1);
    const News taken = store.take_news();
    CHECK_FALSE(taken.trouble.has_value());
    CHECK(taken.messages.empty());
    if (taken.durable >= ticket) return;
  }
  FAIL("not durable in time");
}

std::shared_ptr<const domain::Outcome> crashed() {
  return test::failed(domain::Stage::Execute, domain::Ending::Crashed, "SIGSEGV");
}

}  // namespace

TEST_CASE("what was appended is found once it is durable, equal in every part") {
  with_each([](Store& store) {
    const RunId run = begin(store);
    const auto outcome = test::executed(0.25);
    CHECK_FALSE(store.find(key_of("a")).has_value());
    settle(store, store.append({OutcomeFact{run, key_of("a"), outcome}}));
    const auto found = store.find(key_of("a"));
    REQUIRE(found.has_value());
    CHECK(found->outcome == *outcome);
    CHECK(found->key == key_of("a"));
    CHECK(found->run == run);
    CHECK_FALSE(store.find(key_of("b")).has_value());
  });
}

TEST_CASE("the latest outcome of a key is the one that counts") {
  with_each([](Store& store) {
    const RunId run = begin(store);
    settle(store, store.append({OutcomeFact{run, key_of("a"), test::executed(0.1)},
                                OutcomeFact{run, key_of("a"), test::executed(0.2)}}));
    CHECK(store.find(key_of("a"))->outcome == *test::executed(0.2));
    settle(store, store.append({OutcomeFact{run, key_of("a"), test::executed(0.3)}}));
    CHECK(store.find(key_of("a"))->outcome == *test::executed(0.3));
  });
}

TEST_CASE("refusals answer later runs, crashes do not and leave the earlier answer in place") {
  with_each([](Store& store) {
    const RunId run = begin(store);
    const auto refused =
        test::failed(domain::Stage::Compile, domain::Ending::Refused, "no such op");
    settle(store, store.append({OutcomeFact{run, key_of("r"), refused},
                                OutcomeFact{run, key_of("c"), crashed()},
                                OutcomeFact{run, key_of("d"), test::executed(0.1)},
                                OutcomeFact{run, key_of("d"), crashed()}}));
    CHECK(store.find(key_of("r"))->outcome == *refused);
    CHECK_FALSE(store.find(key_of("c")).has_value());
    CHECK(store.find(key_of("d"))->outcome == *test::executed(0.1));
  });
}

TEST_CASE("a run's outcomes are found by the run, those that answer nothing alone too") {
  with_each([](Store& store) {
    const RunId first = begin(store);
    const RunId second = begin(store);
    CHECK(first != second);
    settle(store, store.append({OutcomeFact{first, key_of("a"), test::executed(0.1)},
                                OutcomeFact{second, key_of("b"), crashed()},
                                OutcomeFact{first, key_of("c"), crashed()}}));
    const auto all = store.outcomes_of(first, Store::Which::All);
    REQUIRE(all.size() == 2);
    CHECK(all[0].key == key_of("a"));
    CHECK(all[1].key == key_of("c"));
    CHECK(all[0].sequence < all[1].sequence);
    const auto left = store.outcomes_of(first, Store::Which::NotAnswering);
    REQUIRE(left.size() == 1);
    CHECK(left[0].key == key_of("c"));
    CHECK(left[0].outcome == *crashed());
    CHECK(store.outcomes_of(second, Store::Which::All).size() == 1);
    CHECK(store.outcomes_of(RunId(99), Store::Which::All).empty());
  });
}

TEST_CASE("a run is open until its end is told, and keeps what its files need") {
  with_each([](Store& store) {
    const RunId run = begin(store);
    const RunId other = begin(store);
    RunFile file{.report_path = "/out/torq_gen_config_m.json",
                 .compiler_path = "/out/torq_gen_config_m_compiler.json",
                 .model_path = "/models/m \"x\".onnx",
                 .analysis = key_of("analysis"),
                 .chip_json = "{}",
                 .plan = "{\"skip_mode\":true}"};
    settle(store, store.append({RunFileFact{run, file}}));
    file.report_path = "/out/b.json";
    settle(store, store.append({RunFileFact{run, file}}));
    auto open = store.runs(/*only_open=*/true);
    REQUIRE(open.size() == 2);
    CHECK(open[0].id == run);
    CHECK(open[0].start.process == base::this_process());
    CHECK(open[0].start.started_ms == 7);
    CHECK(open[0].start.command == std::vector<std::string>{"layerfarm", "discover", "a b"});
    CHECK_FALSE(open[0].ended);
    REQUIRE(open[0].files.size() == 2);
    CHECK(open[0].files[1] == file);
    CHECK(open[1].files.empty());

    settle(store, store.append({RunEndedFact{run, 3}}));
    open = store.runs(/*only_open=*/true);
    REQUIRE(open.size() == 1);
    CHECK(open[0].id == other);
    const auto all = store.runs(/*only_open=*/false);
    REQUIRE(all.size() == 2);
    CHECK(all[0].ended);
    CHECK(all[0].exit_code == 3);
  });
}

TEST_CASE("tickets grow and become durable in order") {
  with_each([](Store& store) {
    const RunId run = begin(store);
    Ticket last{};
    for (int i = 0; i < 200; ++i) {
      const Ticket ticket =
          store.append({OutcomeFact{run, key_of(std::to_string(i)), test::executed(i)}});
      CHECK(ticket > last);
      last = ticket;
    }
    settle(store, last);
    for (int i = 0; i < 200; ++i)
      CHECK(store.find(key_of(std::to_string(i)))->outcome == *test::executed(i));
    CHECK(store.outcomes_of(run, Store::Which::All).size() == 200);
  });
}

TEST_CASE("typical times are means of what was done, by stage") {
  with_each([](Store& store) {
    const RunId run = begin(store);
    CHECK_FALSE(store.typical_times()[4].has_value());
    settle(store, store.append({OutcomeFact{run, key_of("a"), test::executed(0, 1000)},
                                OutcomeFact{run, key_of("b"), test::executed(0, 3000)},
                                OutcomeFact{run, key_of("c"), crashed()},
                                OutcomeFact{run, key_of("d"), test::prepared(50)}}));
    const TypicalTimes times = store.typical_times();
    CHECK(times[static_cast<std::size_t>(domain::Stage::Execute)] == 2000);
    CHECK(times[static_cast<std::size_t>(domain::Stage::Prepare)] == 50);
    CHECK_FALSE(times[static_cast<std::size_t>(domain::Stage::Compile)].has_value());
  });
}
