// What every ProcessRunner promises. The first part holds the fake and the real one (in both of its
// cages) to the same answers; the second is about real processes only.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "shared/base/files.h"
#include "tests/support/paths.h"
#include "tests/support/worker/fake_process_runner.h"
#include "tests/support/worker/processes.h"
#include "worker/process/launcher.h"
#include "worker/process/posix_process_runner.h"

namespace layerfarm::worker::process {
namespace {

using namespace std::chrono_literals;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;

const std::string& probe() {
  static const std::string path = std::string(test::kTestBinFolder) + "/process_probe";
  return path;
}

base::ScratchFolder scratch() {
  return std::move(
      *base::ScratchFolder::make(std::filesystem::temp_directory_path(), "layerfarm-process-test"));
}

Command probe_command(std::vector<std::string> arguments, Bounds bounds = {}) {
  Command out;
  out.argv = {probe()};
  out.argv.insert(out.argv.end(), arguments.begin(), arguments.end());
  out.folder = std::filesystem::temp_directory_path();
  if (bounds.wall.count() == 0) bounds.wall = 30s;
  out.bounds = bounds;
  return out;
}

/// The same program for the fake: what process_probe does in the modes that the common part uses.
test::FakeRun fake_probe(const Command& command) {
  const std::string mode = command.argv.at(1);
  const int number = command.argv.size() > 2 ? std::atoi(command.argv[2].c_str()) : 0;
  if (mode == "exit") return {.exit_code = number};
  if (mode == "signal") return {.signal = number};
  if (mode == "print") return {.output = "to stdout\n", .errors = "to stderr\n"};
  if (mode == "stay") return {.never_ends = true};
  if (mode == "fill") return {.never_ends = true, .memory_bytes = number * kMiB};
  if (mode == "file") return {.file_bytes = number * kMiB};
  if (mode == "lines") {
    test::FakeRun out;
    for (int i = 0; i < number; ++i) out.output += "line " + std::to_string(i) + "\n";
    return out;
  }
  return {.exit_code = 64};
}

test::FakeAnswer fake_resident(const Command&, const std::string& request) {
  if (request == "crash") return {.reply = {}, .run = {.signal = SIGSEGV}, .dies = true};
  if (request == "exit") return {.reply = {}, .run = {.exit_code = 5}, .dies = true};
  if (request == "hang") return {.reply = {}, .run = {.never_ends = true}};
  if (request == "print")
    return {.reply = "you said print",
            .run = {.output = "noise on stdout\n", .errors = "noise on stderr\n"}};
  return {.reply = "you said " + request};
}

/// Runs `body` with the fake and with the real runner in both cages.
void with_each_runner(const std::function<void(ProcessRunner&)>& body) {
  {
    INFO("fake");
    test::FakeProcessRunner fake;
    fake.add("process_probe", fake_probe);
    fake.add_resident("process_probe", fake_resident);
    body(fake);
  }
  for (const bool may_cage : {true, false}) {
    INFO("real, may_cage=", may_cage);
    auto launcher = Launcher::start(may_cage);
    REQUIRE(launcher.has_value());
    PosixProcessRunner runner(**launcher);
    body(runner);
  }
}

/// The same for what only real processes do.
void with_each_cage(const std::function<void(ProcessRunner&, Launcher&)>& body) {
  for (const bool may_cage : {true, false}) {
    INFO("may_cage=", may_cage);
    auto launcher = Launcher::start(may_cage);
    REQUIRE(launcher.has_value());
    PosixProcessRunner runner(**launcher);
    body(runner, **launcher);
  }
}

// ---- both ----

TEST_CASE("a child's exit code is told") {
  with_each_runner([](ProcessRunner& runner) {
    const CancelToken cancel;
    for (const int code : {0, 1, 64, 255}) {
      const auto result = runner.run(probe_command({"exit", std::to_string(code)}), cancel);
      CHECK(result.ended == Ended::Exited);
      CHECK(result.exit_code == code);
      CHECK(result.ok() == (code == 0));
      CHECK(result.problem == "");
    }
  });
}

TEST_CASE("a child that dies by a signal is told by that signal") {
  with_each_runner([](ProcessRunner& runner) {
    const CancelToken cancel;
    for (const int signal : {SIGSEGV, SIGKILL, SIGABRT, SIGTERM, SIGBUS}) {
      const auto result = runner.run(probe_command({"signal", std::to_string(signal)}), cancel);
      CHECK(result.ended == Ended::Signalled);
      CHECK(result.signal == signal);
      CHECK_FALSE(result.ok());
    }
  });
}

TEST_CASE("standard output and error are kept apart") {
  with_each_runner([](ProcessRunner& runner) {
    const CancelToken cancel;
    const auto result = runner.run(probe_command({"print"}), cancel);
    CHECK(result.output.text == "to stdout\n");
    CHECK(result.output.bytes == 10);
    CHECK(result.errors.text == "to stderr\n");
    CHECK(result.errors.bytes == 10);
  });
}

TEST_CASE("of much output the head and the tail are kept, and the gap is told") {
  with_each_runner([](ProcessRunner& runner) {
    const CancelToken cancel;
    const auto result = runner.run(probe_command({"lines", "100000"}), cancel);
    CHECK(result.ended == Ended::Exited);
    CHECK(result.output.bytes == 1'088'890);
    CHECK(result.output.text.starts_with("line 0\nline 1\n"));
    CHECK(result.output.text.ends_with("line 99999\n"));
    CHECK(result.output.text.find(std::to_string(1'088'890 - 2 * 65'536) + " bytes") !=
          std::string::npos);
    CHECK(result.output.text.size() < 140'000);
  });
}

TEST_CASE("a child that prints more than it may is ended, however fast it is") {
  with_each_runner([](ProcessRunner& runner) {
    const CancelToken cancel;
    CHECK(runner.run(probe_command({"lines", "1000"}, {.output_bytes = 1000}), cancel).ended ==
          Ended::OverOutput);
    CHECK(runner.run(probe_command({"lines", "1000"}, {.output_bytes = 100'000}), cancel).ended ==
          Ended::Exited);
  });
}

TEST_CASE("a child that stays is ended when its time is up") {
  with_each_runner([](ProcessRunner& runner) {
    const CancelToken cancel;
    const auto result = runner.run(probe_command({"stay"}, {.wall = 100ms}), cancel);
    CHECK(result.ended == Ended::TimedOut);
    CHECK(result.wall_us >= 100'000);
    CHECK(result.wall_us < 5'000'000);
  });
}

TEST_CASE("a child that takes more memory than it may is ended") {
  with_each_runner([](ProcessRunner& runner) {
    const CancelToken cancel;
    const auto result =
        runner.run(probe_command({"fill", "200"}, {.memory_bytes = 100 * kMiB}), cancel);
    CHECK(result.ended == Ended::OverMemory);
    CHECK(result.peak_memory_bytes > 100 * kMiB);
  });
}

TEST_CASE("a child that writes a larger file than it may is ended") {
  with_each_runner([](ProcessRunner& runner) {
    const CancelToken cancel;
    const auto folder = scratch();
    auto command = probe_command({"file", "8"}, {.file_bytes = 4 * kMiB});
    command.folder = folder.path();
    CHECK(runner.run(command, cancel).ended == Ended::OverFile);
    command.bounds.file_bytes = 16 * kMiB;
    CHECK(runner.run(command, cancel).ok());
  });
}

TEST_CASE("a missing program is told by its name") {
  with_each_runner([](ProcessRunner& runner) {
    const CancelToken cancel;
    for (const std::string name :
         {"layerfarm-no-such-program", "/nowhere/layerfarm-no-such-program"}) {
      Command command = probe_command({});
      command.argv = {name};
      const auto result = runner.run(command, cancel);
      CHECK(result.ended == Ended::NotStarted);
      CHECK(result.problem.find("layerfarm-no-such-program") != std::string::npos);
      CHECK(result.problem.find("no such program") != std::string::npos);
      CHECK_FALSE(runner.start(command).has_value());
    }
  });
}

TEST_CASE("what was cancelled before is not run at all") {
  with_each_runner([](ProcessRunner& runner) {
    CancelToken cancel;
    cancel.cancel();
    CHECK(runner.run(probe_command({"exit", "0"}), cancel).ended == Ended::Cancelled);
    cancel.reset();
    CHECK(runner.run(probe_command({"exit", "0"}), cancel).ok());
  });
}

TEST_CASE("another thread can cancel what is waited for") {
  with_each_runner([](ProcessRunner& runner) {
    CancelToken cancel;
    Command command = probe_command({"stay"});
    command.bounds.wall = base::Duration{0};
    std::thread other([&cancel] {
      std::this_thread::sleep_for(50ms);
      cancel.cancel();
    });
    const auto before = std::chrono::steady_clock::now();
    CHECK(runner.run(command, cancel).ended == Ended::Cancelled);
    CHECK(std::chrono::steady_clock::now() - before < 10s);
    other.join();
  });
}

TEST_CASE("a resident answers one request after the other") {
  with_each_runner([](ProcessRunner& runner) {
    const CancelToken cancel;
    auto resident = runner.start(probe_command({"resident"}));
    REQUIRE(resident.has_value());
    for (int i = 0; i < 20; ++i) {
      const auto reply = (*resident)->call("hello " + std::to_string(i), 10s, cancel);
      REQUIRE(reply.answered);
      CHECK(reply.reply == "you said hello " + std::to_string(i));
    }
    CHECK((*resident)->alive());
  });
}

TEST_CASE("what a resident prints does not mix with its answers") {
  with_each_runner([](ProcessRunner& runner) {
    const CancelToken cancel;
    auto resident = runner.start(probe_command({"resident"}));
    REQUIRE(resident.has_value());
    CHECK((*resident)->call("print", 10s, cancel).reply == "you said print");
    const std::string printed = (*resident)->take_printed();
    CHECK(printed.find("noise on stdout\n") != std::string::npos);
    CHECK(printed.find("noise on stderr\n") != std::string::npos);
    CHECK((*resident)->take_printed() == "");
  });
}

TEST_CASE("a resident that dies in a call is told by how it died, and stays dead") {
  with_each_runner([](ProcessRunner& runner) {
    const CancelToken cancel;
    auto crashing = runner.start(probe_command({"resident"}));
    REQUIRE(crashing.has_value());
    auto reply = (*crashing)->call("crash", 10s, cancel);
    CHECK_FALSE(reply.answered);
    CHECK(reply.end.ended == Ended::Signalled);
    CHECK(reply.end.signal == SIGSEGV);
    CHECK_FALSE((*crashing)->alive());
    CHECK_FALSE((*crashing)->call("hello", 10s, cancel).answered);
    CHECK((*crashing)->memory_bytes() == 0);

    auto leaving = runner.start(probe_command({"resident"}));
    REQUIRE(leaving.has_value());
    reply = (*leaving)->call("exit", 10s, cancel);
    CHECK_FALSE(reply.answered);
    CHECK(reply.end.ended == Ended::Exited);
    CHECK(reply.end.exit_code == 5);
  });
}

TEST_CASE("a resident that does not answer in time is ended") {
  with_each_runner([](ProcessRunner& runner) {
    const CancelToken cancel;
    auto resident = runner.start(probe_command({"resident"}));
    REQUIRE(resident.has_value());
    const auto reply = (*resident)->call("hang", 100ms, cancel);
    CHECK_FALSE(reply.answered);
    CHECK(reply.end.ended == Ended::TimedOut);
    CHECK_FALSE((*resident)->alive());
  });
}

TEST_CASE("a call to a resident can be cancelled, which ends the resident") {
  with_each_runner([](ProcessRunner& runner) {
    CancelToken cancel;
    auto resident = runner.start(probe_command({"resident"}));
    REQUIRE(resident.has_value());
    std::thread other([&cancel] {
      std::this_thread::sleep_for(50ms);
      cancel.cancel();
    });
    const auto reply = (*resident)->call("hang", base::Duration{0}, cancel);
    other.join();
    CHECK_FALSE(reply.answered);
    CHECK(reply.end.ended == Ended::Cancelled);
    CHECK_FALSE((*resident)->alive());
  });
}

// ---- real processes only ----

TEST_CASE("a child starts in a clean state of its own") {
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    const auto folder = scratch();
    auto command = probe_command({"describe"}, {.file_bytes = 12'345'678});
    command.folder = folder.path();
    command.cores = {0};
    command.environment = {{"PROBE_VARIABLE", "it's set; $HOME"}};
    const auto result = runner.run(command, cancel);
    CHECK(result.ok());
    CHECK(result.output.text ==
          "leads=1 core=0 file=12345678 blocked=0 handled=0 descriptors=0,1,2 cores=0 folder=" +
              std::filesystem::canonical(folder.path()).string() +
              " death=9 variable=it's set; $HOME name=process_probe\n");
  });
}

TEST_CASE("children that ignore every signal they can are ended with their time") {
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    const std::string word = test::unique_word();
    const auto result = runner.run(probe_command({"stubborn", "0", word}, {.wall = 200ms}), cancel);
    CHECK(result.ended == Ended::TimedOut);
    CHECK(test::processes_with(word).empty());
  });
}

TEST_CASE(
    "daemons, orphans and sessions that a child leaves behind are gone when its end is told") {
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    for (const auto& [mode, number] : {std::pair{"daemon", "0"}, std::pair{"orphans", "20"}}) {
      const std::string word = test::unique_word();
      INFO(mode);
      CHECK(runner.run(probe_command({mode, number, word}), cancel).ok());
      CHECK(test::processes_with(word).empty());
    }
    for (const auto& [mode, number] :
         {std::pair{"daemon-and-stay", "0"}, std::pair{"sessions", "8"}}) {
      const std::string word = test::unique_word();
      INFO(mode);
      CHECK(runner.run(probe_command({mode, number, word}, {.wall = 200ms}), cancel).ended ==
            Ended::TimedOut);
      CHECK(test::processes_with(word).empty());
    }
  });
}

TEST_CASE("a fork bomb is ended whole") {
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    for (const char* const number : {"150", "151"}) {
      const std::string word = test::unique_word();
      const auto result =
          runner.run(probe_command({"bomb", number, word}, {.wall = 500ms}), cancel);
      CHECK(result.ended == Ended::TimedOut);
      CHECK(test::processes_with(word).empty());
    }
  });
}

TEST_CASE("a child that closes its output and goes on is waited for") {
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    const auto result = runner.run(probe_command({"close", "200"}), cancel);
    CHECK(result.ended == Ended::Exited);
    CHECK(result.exit_code == 7);
    CHECK(result.wall_us >= 200'000);
  });
}

TEST_CASE("memory is bounded for the whole group, slow or fast, in one process or many") {
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    const auto slow =
        runner.run(probe_command({"fill-slowly", "400"}, {.memory_bytes = 100 * kMiB}), cancel);
    CHECK(slow.ended == Ended::OverMemory);
    CHECK(slow.peak_memory_bytes < 200 * kMiB);
    // Each child alone is under the bound.
    CHECK(runner.run(probe_command({"fill-children", "60"}, {.memory_bytes = 100 * kMiB}), cancel)
              .ended == Ended::OverMemory);
    // Beyond the backstop: stopped before it can harm the machine, even when nobody looks in time.
    const auto fast =
        runner.run(probe_command({"fill-quickly", "4000"}, {.memory_bytes = 32 * kMiB}), cancel);
    CHECK(fast.ended == Ended::OverMemory);
    CHECK(fast.peak_memory_bytes < 1500 * kMiB);
  });
}

TEST_CASE("memory that forks share counts once") {
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    const auto result =
        runner.run(probe_command({"share", "60"}, {.memory_bytes = 150 * kMiB}), cancel);
    CHECK(result.ok());
    CHECK(result.peak_memory_bytes > 55 * kMiB);
  });
}

TEST_CASE("output without end is bounded in time and in memory") {
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    const auto result = runner.run(probe_command({"flood"}, {.output_bytes = 8 * kMiB}), cancel);
    CHECK(result.ended == Ended::OverOutput);
    CHECK(result.output.text.size() < 140'000);
    const auto timed = runner.run(probe_command({"flood"}, {.wall = 100ms}), cancel);
    CHECK(timed.ended == Ended::TimedOut);
    CHECK(timed.output.text.size() < 140'000);
  });
}

TEST_CASE(
    "a child that survives the file limit and fails by itself is told as such, and inputs of that "
    "size are not blamed") {
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    const auto folder = scratch();
    auto command = probe_command({"file-politely", "8"}, {.file_bytes = 4 * kMiB});
    command.folder = folder.path();
    CHECK(runner.run(command, cancel).ended == Ended::OverFile);
    // A large blob that is linked into the folder has another name elsewhere.
    std::filesystem::remove(folder.path() / "large");
    const auto elsewhere = scratch();
    std::ofstream(elsewhere.path() / "blob") << std::string(8 << 20, 'b');
    std::filesystem::create_hard_link(elsewhere.path() / "blob", folder.path() / "blob");
    command.argv = {probe(), "exit", "3"};
    CHECK(runner.run(command, cancel).ended == Ended::Exited);
  });
}

TEST_CASE("a child that cannot be started says why") {
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    const auto folder = scratch();
    const auto problem_of = [&](const Command& command) {
      const auto result = runner.run(command, cancel);
      CHECK(result.ended == Ended::NotStarted);
      return result.problem;
    };
    auto command = probe_command({"exit", "0"});
    command.folder = folder.path() / "missing";
    CHECK(problem_of(command).find("missing") != std::string::npos);

    std::ofstream(folder.path() / "text") << "no program\n";
    command.folder = folder.path();
    command.argv = {(folder.path() / "text").string()};
    CHECK(problem_of(command).find("no permission") != std::string::npos);
    std::filesystem::permissions(folder.path() / "text", std::filesystem::perms::owner_all);
    CHECK(problem_of(command).find("not a program") != std::string::npos);
    std::ofstream(folder.path() / "text") << "#!/nowhere/interpreter\n";
    CHECK(problem_of(command).find("interpreter") != std::string::npos);

    command = probe_command({"exit", "0"});
    command.cores = {1000};
    CHECK(problem_of(command).find("1000") != std::string::npos);
    command.cores = {1'000'000};
    CHECK(problem_of(command).find("no such core") != std::string::npos);
    command = probe_command({});
    command.argv.clear();
    CHECK(problem_of(command).find("without a program") != std::string::npos);
    command = probe_command({std::string(200'000, 'x')});
    CHECK(problem_of(command).find("too long") != std::string::npos);
    // And the same runner goes on.
    CHECK(runner.run(probe_command({"exit", "0"}), cancel).ok());
  });
}

TEST_CASE("a folder that may not be entered is told") {
  if (::geteuid() == 0) return;  // root may enter everything
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    const auto folder = scratch();
    auto command = probe_command({"exit", "0"});
    command.folder = folder.path();
    ::chmod(folder.path().c_str(), 0);
    const auto result = runner.run(command, cancel);
    ::chmod(folder.path().c_str(), 0700);
    CHECK(result.ended == Ended::NotStarted);
    CHECK(result.problem.find("cannot use the folder") != std::string::npos);
  });
}

TEST_CASE("a name is looked up in the PATH that the child gets") {
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    auto command = probe_command({});
    command.argv = {"process_probe", "exit", "3"};
    CHECK(runner.run(command, cancel).ended == Ended::NotStarted);
    command.environment = {{"PATH", "/nowhere:" + std::string(test::kTestBinFolder)}};
    CHECK(runner.run(command, cancel).exit_code == 3);
  });
}

TEST_CASE("a command line larger than a packet arrives whole") {
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    auto command = probe_command({"print"});
    for (int i = 0; i < 2000; ++i)
      command.argv.push_back("argument-" + std::to_string(i) + std::string(100, 'a'));
    CHECK(runner.run(command, cancel).output.text == "to stdout\n");
  });
}

TEST_CASE("5,000 quick children in a row leave no descriptor and no zombie") {
  with_each_cage([](ProcessRunner& runner, Launcher& launcher) {
    const CancelToken cancel;
    CHECK(runner.run(probe_command({"exit", "0"}), cancel).ok());
    const std::size_t before = test::open_descriptors();
    Command command = probe_command({});
    command.argv = {"/bin/true"};
    int good = 0;
    for (int i = 0; i < 2500; ++i)
      good += runner.run(command, cancel).ok() ? 1 : 0;  // twice, once for each cage
    CHECK(good == 2500);
    CHECK(test::open_descriptors() == before);
    CHECK(test::zombies_below(launcher.pid()) == 0);
    CHECK(test::zombies_below(::getpid()) == 0);
  });
}

TEST_CASE("a resident's memory is bounded while it works and while it waits") {
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    auto working = runner.start(probe_command({"resident"}, {.memory_bytes = 150 * kMiB}));
    REQUIRE(working.has_value());
    const auto reply = (*working)->call("hello", 10s, cancel);
    CHECK(reply.answered);
    CHECK((*working)->memory_bytes() > 0);
    CHECK((*working)->memory_bytes() < 50 * kMiB);
    // It may be done before it is looked at; then it is ended at the latest before it answers
    // again.
    auto grown = (*working)->call("grow", 10s, cancel);
    if (grown.answered) {
      std::this_thread::sleep_for(200ms);
      grown = (*working)->call("hello", 10s, cancel);
    }
    CHECK_FALSE(grown.answered);
    CHECK(grown.end.ended == Ended::OverMemory);

    auto waiting = runner.start(probe_command({"resident"}, {.memory_bytes = 150 * kMiB}));
    REQUIRE(waiting.has_value());
    CHECK((*waiting)->call("grow later", 10s, cancel).answered);
    const auto until = std::chrono::steady_clock::now() + 20s;
    while ((*waiting)->alive() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(10ms);
    CHECK_FALSE((*waiting)->alive());
    CHECK((*waiting)->call("hello", 10s, cancel).end.ended == Ended::OverMemory);
  });
}

TEST_CASE("a resident that prints more than a pipe holds still answers") {
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    auto resident = runner.start(probe_command({"resident"}));
    REQUIRE(resident.has_value());
    const auto reply = (*resident)->call("flood", 20s, cancel);
    CHECK(reply.answered);
    CHECK((*resident)->take_printed().size() < 280'000);
  });
}

TEST_CASE("a resident that breaks the rules of its channel is ended and told") {
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    const auto start = [&] { return std::move(*runner.start(probe_command({"resident"}))); };
    {
      auto resident = start();
      const auto reply = resident->call("close", 20s, cancel);
      CHECK_FALSE(reply.answered);
      CHECK(reply.end.problem.find("closed its channel") != std::string::npos);
      CHECK_FALSE(resident->alive());
    }
    {
      auto resident = start();
      const auto reply = resident->call("nonsense", 20s, cancel);
      CHECK_FALSE(reply.answered);
      CHECK(reply.end.problem.find("no answer") != std::string::npos);
    }
    {
      auto resident = start();
      auto reply = resident->call("two answers", 20s, cancel);
      if (reply.answered) {
        std::this_thread::sleep_for(50ms);
        reply = resident->call("hello", 20s, cancel);
      }
      CHECK_FALSE(reply.answered);
      CHECK_FALSE(resident->alive());
    }
    {
      auto resident = start();
      CHECK(resident->call("answer and die", 20s, cancel).answered);
      CHECK_FALSE(resident->call("hello", 20s, cancel).answered);
    }
  });
}

TEST_CASE("a large frame passes both ways") {
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    auto resident = runner.start(probe_command({"resident"}));
    REQUIRE(resident.has_value());
    const std::string large(5'000'000, 'l');
    const auto reply = (*resident)->call(large, 30s, cancel);
    REQUIRE(reply.answered);
    CHECK(reply.reply == "you said " + large);
  });
}

TEST_CASE("a resident is ended with its object, and other children are left alone") {
  with_each_cage([](ProcessRunner& runner, Launcher&) {
    const CancelToken cancel;
    const std::string kept = test::unique_word();
    const std::string dropped = test::unique_word();
    auto stays = runner.start(probe_command({"resident", "0", kept}));
    auto goes = runner.start(probe_command({"resident", "0", dropped}));
    REQUIRE(stays.has_value());
    REQUIRE(goes.has_value());
    CHECK(test::there_within(dropped, 1, 10s));
    CHECK(test::there_within(kept, 1, 10s));
    goes->reset();
    CHECK(test::processes_with(dropped).empty());
    // Ending a tree with daemons beside it.
    CHECK(runner.run(probe_command({"daemon"}), cancel).ok());
    CHECK(test::processes_with(kept).size() == 1);
    CHECK((*stays)->call("hello", 10s, cancel).answered);
  });
}

/// Forks a worker that starts a resident and then a child that has daemons and sessions; it is
/// killed by the caller.
pid_t fork_worker(bool may_cage, const std::string& word) {
  const pid_t worker = ::fork();
  if (worker != 0) return worker;
  auto launcher = Launcher::start(may_cage);
  if (!launcher) ::_exit(1);
  PosixProcessRunner runner(**launcher);
  const CancelToken cancel;
  auto resident = runner.start(probe_command({"resident", "0", word}));
  auto command = probe_command({"daemon-and-stay", "0", word});
  command.bounds.wall = 60s;
  runner.run(command, cancel);
  ::_exit(0);
}

TEST_CASE("a worker killed with -9 leaves no process") {
  for (const bool may_cage : {true, false}) {
    INFO("may_cage=", may_cage);
    const std::string word = test::unique_word();
    const pid_t worker = fork_worker(may_cage, word);
    REQUIRE(test::there_within(word, 3, 20s));
    ::kill(worker, SIGKILL);
    ::waitpid(worker, nullptr, 0);
    CHECK(test::gone_within(word, 20s));
  }
}

TEST_CASE("a launcher or minder killed with -9 leaves no process, and the runner says so") {
  for (const bool may_cage : {true, false}) {
    INFO("may_cage=", may_cage);
    auto launcher = Launcher::start(may_cage);
    REQUIRE(launcher.has_value());
    PosixProcessRunner runner(**launcher);
    const CancelToken cancel;
    const std::string word = test::unique_word();
    // The minder first: its parent is the launcher, its child the probe.
    std::thread killer([&] {
      if (!test::there_within(word, 2, 20s)) return;
      std::ifstream children("/proc/" + std::to_string((*launcher)->pid()) + "/task/" +
                             std::to_string((*launcher)->pid()) + "/children");
      pid_t minder = 0;
      while (children >> minder) ::kill(minder, SIGKILL);
    });
    auto result = runner.run(probe_command({"daemon-and-stay", "0", word}), cancel);
    killer.join();
    CHECK(result.ended == Ended::NotStarted);
    CHECK(result.problem.find("gone") != std::string::npos);
    CHECK(test::gone_within(word, 20s));
    // The launcher makes another.
    CHECK(runner.run(probe_command({"exit", "0"}), cancel).ok());

    const std::string second = test::unique_word();
    std::thread other([&] {
      if (test::there_within(second, 2, 20s)) ::kill((*launcher)->pid(), SIGKILL);
    });
    result = runner.run(probe_command({"daemon-and-stay", "0", second}), cancel);
    other.join();
    CHECK(result.ended == Ended::NotStarted);
    CHECK(test::gone_within(second, 20s));
    result = runner.run(probe_command({"exit", "0"}), cancel);
    CHECK(result.ended == Ended::NotStarted);
    CHECK(result.problem.find("gone") != std::string::npos);
  }
}

TEST_CASE("a launcher holds nothing of the worker's open") {
  // Somebody reads the worker's output until its end: that must not wait for the launcher.
  int ends[2] = {-1, -1};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  auto launcher = Launcher::start();
  REQUIRE(launcher.has_value());
  ::close(ends[1]);
  char byte = 0;
  CHECK(::read(ends[0], &byte, 1) == 0);  // end of file at once
  ::close(ends[0]);
}

}  // namespace
}  // namespace layerfarm::worker::process
