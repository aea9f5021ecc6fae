#include "coordinator/report/report_writer.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "coordinator/report/edit.h"
#include "coordinator/report/folder_lock.h"

using namespace layerfarm;
using namespace layerfarm::coordinator::report;
namespace fs = std::filesystem;

namespace {

ReportPlan plan_of(std::size_t layers, const std::string& chip = "SM8550") {
  ReportPlan plan;
  plan.model_name = "m";
  plan.chip.name = chip;
  plan.chip.executors = {{.name = "htp"}, {.name = "host"}};
  for (std::size_t i = 0; i < layers; ++i) {
    LayerFacts facts;
    facts.id = "Conv_" + std::to_string(i);
    facts.orig_index = static_cast<std::uint32_t>(i);
    facts.location = std::to_string(i + 1) + ":1";
    plan.layers.push_back(facts);
  }
  return plan;
}

CaseResult success() { return {.status = domain::Status::Success}; }

struct Run {
  Run(const fs::path& folder, std::size_t layers, const std::string& chip = "SM8550")
      : state(plan_of(layers, chip)), writer(state, report_paths(folder, "m"), base::Sync::No) {}
  ReportState state;
  ReportWriter writer;
};

struct Folder {
  base::ScratchFolder scratch =
      *base::ScratchFolder::make(fs::temp_directory_path(), "layerfarm-test");
  [[nodiscard]] fs::path path() const { return scratch.path(); }
  [[nodiscard]] std::string text(const std::string& end) const {
    return *base::read_file(path() / ("torq_gen_config_m" + end));
  }
  [[nodiscard]] json::Value report() const {
    auto value = load_config(path() / "torq_gen_config_m.json");
    REQUIRE_MESSAGE(value, value.error().text());
    return *value;
  }
  /// What `edit` does to the file.
  void edit(const std::string& layer, const Edit& change) const {
    const auto lock = FolderLock::take(path());
    REQUIRE(lock);
    json::Value file = report();
    apply_edit(file, {layer}, change);
    REQUIRE(base::write_file_atomically(path() / "torq_gen_config_m.json", json::text_of(file),
                                        base::Sync::No));
  }
};

}  // namespace

TEST_CASE("all three files are written, and only when something changed") {
  const Folder folder;
  Run run(folder.path(), 2);
  CHECK(run.writer.is_due(Phase::Running));
  run.state.settle(0, 0, success());
  auto written = run.writer.write(Phase::Running);
  REQUIRE(written);
  CHECK(written->changed);
  CHECK(folder.report().get("discovery_report") == nullptr);
  CHECK(folder.text("_compiler.json").find("1:1") != std::string::npos);
  CHECK(folder.text("_mac_debug.json").find("Conv_1") != std::string::npos);
  CHECK_FALSE(run.writer.is_due(Phase::Running));
  CHECK_FALSE(run.writer.write(Phase::Running)->changed);
  CHECK(run.writer.write(Phase::Finished)->changed);
  CHECK(folder.report().get("discovery_report") != nullptr);
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 3);
  CHECK(run.writer.paths().report == folder.path() / "torq_gen_config_m.json");
}

TEST_CASE("an edit made while a run goes on is kept, and a new tolerance is told") {
  const Folder folder;
  Run run(folder.path(), 2);
  run.state.settle(0, 0, success());
  REQUIRE(run.writer.write(Phase::Running));
  folder.edit("Conv_0", {.executor = "host", .fp_max_tol = 0.5});
  run.state.settle(0, 1, success());
  const auto written = run.writer.write(Phase::Running);
  REQUIRE(written);
  CHECK(written->taken_over.edited == std::vector<std::string>{"Conv_0"});
  CHECK(written->taken_over.tolerances == std::vector<std::size_t>{0});
  const json::Value report = folder.report();
  const json::Value& entry = *report.get("ops")->get("Conv_0");
  CHECK(json::python_text(*entry.get("tolerance_used")) == "{'fp_max_tol': 0.5}");
  CHECK(run.state.tolerance(0, 0).fp_max_tol == 0.5);
  CHECK(entry.get("executors")->object()->size() == 2);
  CHECK(recommendation_in(entry) == "host");
  CHECK(folder.text("_compiler.json").find("host") != std::string::npos);
}

TEST_CASE("edits in a loop beside a writing run are never lost") {
  const Folder folder;
  constexpr std::size_t kLayers = 40;
  Run run(folder.path(), kLayers);
  for (std::size_t i = 0; i < kLayers; ++i) run.state.settle(i, 0, success());
  REQUIRE(run.writer.write(Phase::Running));
  std::atomic<bool> done = false;
  std::thread editor([&] {
    for (std::size_t i = 0; i < kLayers; ++i)
      folder.edit("Conv_" + std::to_string(i), {.executor = "host"});
    done = true;
  });
  std::size_t place = 0;
  while (!done) {
    run.state.settle(place++ % kLayers, 1,
                     CaseResult{.status = domain::Status::Success, .note = std::to_string(place)});
    // On a machine on its knees a write may have to be left for the next time.
    if (const auto written = run.writer.write(Phase::Running); !written)
      CHECK(written.error().code == base::ErrorCode::Unavailable);
    // A run writes at most once a second: it does not starve whoever waits for the lock.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  editor.join();
  REQUIRE(run.writer.write(Phase::Finished));
  const json::Value report = folder.report();
  for (std::size_t i = 0; i < kLayers; ++i) {
    CHECK(recommendation_in(*report.get("ops")->get("Conv_" + std::to_string(i))) == "host");
  }
}

TEST_CASE("two runs into one folder end with the same bytes as one") {
  const Folder alone;
  const Folder shared;
  Run reference(alone.path(), 6);
  Run first(shared.path(), 6);
  Run second(shared.path(), 6);
  for (std::size_t i = 0; i < 6; ++i) {
    reference.state.settle(i, 0, success());
    first.state.settle(i, 0, success());
    REQUIRE(first.writer.write(Phase::Running));
    second.state.settle(5 - i, 0, success());
    REQUIRE(second.writer.write(Phase::Running));
    // Nobody's results are lost on the way.
    CHECK(shared.report().get("ops")->object()->size() == std::min<std::size_t>(6, 2 * (i + 1)));
  }
  REQUIRE(first.writer.write(Phase::Finished));
  REQUIRE(second.writer.write(Phase::Finished));
  REQUIRE(reference.writer.write(Phase::Finished));
  CHECK(shared.text(".json") == alone.text(".json"));
  CHECK(shared.text("_compiler.json") == alone.text("_compiler.json"));
  // And they do not keep each other writing.
  CHECK_FALSE(first.writer.write(Phase::Finished)->changed);
  CHECK_FALSE(second.writer.write(Phase::Finished)->changed);
}

TEST_CASE("runs of two chips into one folder at once lose nothing, whoever moved and wrote when") {
  const auto chip_at = [](const fs::path& path) {
    const auto report = load_config(path / "torq_gen_config_m.json");
    return report ? std::string(report->get_text("_chip")) +
                        std::to_string(report->get("ops")->object()->size())
                  : std::string();
  };
  const auto move_aside = [](const Folder& folder) {
    const auto moves = moves_aside(report_paths(folder.path(), "m"), "SM8550");
    REQUIRE(moves);
    REQUIRE(carry_out(*moves));
  };
  for (const bool other_writes_first : {true, false}) {
    const Folder folder;
    Run first(folder.path(), 2);
    first.state.settle(0, 0, success());
    REQUIRE(first.writer.write(Phase::Running));
    move_aside(folder);
    Run second(folder.path(), 3, "SM8650");
    REQUIRE(second.writer.load());
    for (std::size_t i = 0; i < 3; ++i) second.state.settle(i, 0, success());
    if (other_writes_first) REQUIRE(second.writer.write(Phase::Running));
    first.state.settle(1, 0, success());
    const auto moved = first.writer.write(Phase::Finished);
    REQUIRE(moved);
    const std::string why =
        other_writes_first ? "is of chip SM8650 now" : "is moved away by another run";
    CHECK(moved->moved.find(why) != std::string::npos);
    CHECK(moved->moved.find((folder.path() / "SM8550").string()) != std::string::npos);
    REQUIRE(second.writer.write(Phase::Finished));
    CHECK(chip_at(folder.path() / "SM8550") == "SM85502");
    CHECK(chip_at(folder.path()) == "SM86503");
    CHECK(fs::exists(folder.path() / "SM8550" / "torq_gen_config_m_compiler.json"));
    const auto again = first.writer.write(Phase::Finished);
    REQUIRE(again);
    CHECK(again->moved.empty());
  }
  // Neither had moved the other's: the later one leaves the names to the first.
  const Folder folder;
  Run first(folder.path(), 2);
  Run second(folder.path(), 3, "SM8650");
  REQUIRE(first.writer.load());
  REQUIRE(second.writer.load());
  first.state.settle(0, 0, success());
  second.state.settle(0, 0, success());
  REQUIRE(first.writer.write(Phase::Running));
  REQUIRE(second.writer.write(Phase::Running));
  REQUIRE(first.writer.write(Phase::Finished));
  REQUIRE(second.writer.write(Phase::Finished));
  CHECK(chip_at(folder.path()) == "SM85501");
  CHECK(chip_at(folder.path() / "SM8650") == "SM86501");
}

TEST_CASE("the file found at the start is taken over; an unreadable one is left alone") {
  const Folder folder;
  {
    Run run(folder.path(), 1);
    CHECK(run.writer.load()->edited.empty());
    run.state.settle(0, 0, success());
    REQUIRE(run.writer.write(Phase::Finished));
  }
  folder.edit("Conv_0", {.executor = "host"});
  Run again(folder.path(), 1);
  const auto loaded = again.writer.load();
  REQUIRE(loaded);
  CHECK(loaded->edited == std::vector<std::string>{"Conv_0"});
  CHECK(again.state.has_old_success(0));
  REQUIRE(base::write_file_atomically(folder.path() / "torq_gen_config_m.json", "{ broken",
                                      base::Sync::No));
  Run broken(folder.path(), 1);
  const auto refused = broken.writer.load();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == base::ErrorCode::InvalidInput);
  CHECK(folder.text(".json") == "{ broken");
}

TEST_CASE("a file that another program broke while we run is written anew, with a warning") {
  const Folder folder;
  Run run(folder.path(), 1);
  run.state.settle(0, 0, success());
  REQUIRE(run.writer.write(Phase::Running));
  REQUIRE(base::write_file_atomically(folder.path() / "torq_gen_config_m.json", "nonsense",
                                      base::Sync::No));
  const auto written = run.writer.write(Phase::Running);
  REQUIRE(written);
  REQUIRE(written->warnings.size() == 1);
  CHECK(written->warnings.front().find("it is written anew") != std::string::npos);
  CHECK(folder.report().get("ops")->object()->size() == 1);
}

TEST_CASE("a warning is given once") {
  const Folder folder;
  ReportPlan plan = plan_of(2);
  plan.layers[1].location = plan.layers[0].location;
  ReportState state(plan);
  ReportWriter writer(state, report_paths(folder.path(), "m"), base::Sync::No);
  state.settle(0, 0, success());
  state.settle(1, 0, success());
  CHECK(writer.write(Phase::Running)->warnings.size() == 1);
  CHECK(writer.write(Phase::Finished)->warnings.empty());
}

TEST_CASE("a folder that is gone or locked is an error, and the next write works") {
  const Folder folder;
  Run run(folder.path(), 1);
  run.state.settle(0, 0, success());
  {
    const auto lock = FolderLock::take(folder.path());
    const auto written = run.writer.write(Phase::Running);
    REQUIRE_FALSE(written);
    CHECK(written.error().code == base::ErrorCode::Unavailable);
  }
  CHECK(run.writer.write(Phase::Running)->changed);
  Run nowhere(folder.path() / "none", 1);
  CHECK_FALSE(nowhere.writer.write(Phase::Running));
}

TEST_CASE("SIGKILL at any moment leaves a whole report") {
  const Folder folder;
  for (int round = 0; round < 12; ++round) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      Run run(folder.path(), 200);
      for (std::size_t i = 0;; ++i) {
        run.state.settle(i % 200, 0,
                         CaseResult{.status = domain::Status::Success, .note = std::to_string(i)});
        if (!run.writer.write(Phase::Running)) ::_exit(1);
      }
    }
    ::usleep(static_cast<useconds_t>(15000 + round * 1700));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    CHECK(folder.report().get("ops")->object()->size() >= 1);
    CHECK(json::parse(folder.text("_compiler.json"), "compiler"));
  }
}

TEST_CASE("a write that is killed at any byte leaves the old report whole") {
  const Folder folder;
  Run first(folder.path(), 2);
  first.state.settle(0, 0, success());
  REQUIRE(first.writer.write(Phase::Finished));
  const std::string before = folder.text(".json");
  std::size_t killed = 0;
  for (std::size_t byte = 0; byte < before.size(); ++byte) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      // The kernel ends whoever writes this byte of a file.
      const rlimit limit{byte, byte};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      ::signal(SIGXFSZ, SIG_DFL);
      Run run(folder.path(), 2);
      if (!run.writer.load()) ::_exit(1);
      run.state.settle(1, 1, success());
      [[maybe_unused]] const auto written = run.writer.write(Phase::Finished);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ ? 1 : 0;
    REQUIRE(folder.text(".json") == before);
  }
  CHECK(killed == before.size());
}

TEST_CASE("the time between writes is twenty times their cost, one second at least") {
  CHECK(write_interval(std::chrono::milliseconds(2)) == std::chrono::seconds(1));
  CHECK(write_interval(std::chrono::milliseconds(100)) == std::chrono::seconds(2));
}
