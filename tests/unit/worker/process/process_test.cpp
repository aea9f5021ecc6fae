// The parts of worker/process that need no launcher; tests/contract/process_runner_test.cpp has the
// rest.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "worker/process/child_output.h"
#include "worker/process/descriptor.h"
#include "worker/process/launcher.h"
#include "worker/process/minder_messages.h"
#include "worker/process/posix_process_runner.h"
#include "worker/process/printed_keeper.h"
#include "worker/process/process_runner.h"
#include "worker/process/process_tree.h"
#include "worker/process/spawn.h"

namespace layerfarm::worker::process {
namespace {

using namespace std::chrono_literals;

/// Both ends of a socket pair as the launcher makes it.
std::pair<Descriptor, Descriptor> socket_pair() {
  int ends[2] = {-1, -1};
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

TEST_CASE("signals have the names that people know") {
  CHECK(signal_name(SIGSEGV) == "SIGSEGV");
  CHECK(signal_name(SIGKILL) == "SIGKILL");
  CHECK(signal_name(SIGXFSZ) == "SIGXFSZ");
  CHECK(signal_name(77) == "signal 77");
  CHECK(signal_name(0) == "signal 0");
  for (int signal = 1; signal < 32; ++signal) CHECK(signal_name(signal).starts_with("SIG"));
}

TEST_CASE("a cancel token stays cancelled until it is reset") {
  CancelToken token;
  CHECK_FALSE(token.cancelled());
  token.cancel();
  token.cancel();
  CHECK(token.cancelled());
  CHECK(token.cancelled());
  token.reset();
  CHECK_FALSE(token.cancelled());
}

TEST_CASE("a token is cancelled for all threads") {
  CancelToken token;
  std::thread([&token] { token.cancel(); }).join();
  CHECK(token.cancelled());
}

TEST_CASE("a descriptor is closed once, by its last owner") {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  Descriptor reading(ends[0]);
  {
    Descriptor writing(ends[1]);
    Descriptor moved = std::move(writing);
    CHECK(moved.get() == ends[1]);
    CHECK_FALSE(writing.open());  // NOLINT: what a moved-from descriptor is, is the point
  }
  char byte = 0;
  CHECK(::read(reading.get(), &byte, 1) == 0);
  reading = Descriptor();
  CHECK_FALSE(reading.open());
}

TEST_CASE("what is printed is kept whole while it is short") {
  PrintedKeeper keeper(8);
  keeper.add("abcdefgh");
  keeper.add("ijklmnop");
  CHECK(keeper.bytes() == 16);
  const Printed printed = keeper.take();
  CHECK(printed.text == "abcdefghijklmnop");
  CHECK(printed.bytes == 16);
  CHECK(keeper.bytes() == 0);
  CHECK(keeper.take().text == "");
}

TEST_CASE("of what is too long, the first and the last part are kept, whatever the pieces") {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>('a' + i % 26);
  for (const std::size_t piece :
       {std::size_t{1}, std::size_t{7}, std::size_t{64}, std::size_t{1000}}) {
    PrintedKeeper keeper(100);
    for (std::size_t at = 0; at < text.size(); at += piece)
      keeper.add(std::string_view(text).substr(at, piece));
    const Printed printed = keeper.take();
    CHECK(printed.bytes == 1000);
    CHECK(printed.text ==
          text.substr(0, 100) + "\n[... 800 bytes are left out here ...]\n" + text.substr(900));
  }
}

TEST_CASE("memory is read from the lines of a status file that a process alone could give back") {
  CHECK(held_bytes_in_status("Name:\tx\nVmRSS:\t  9000 kB\nRssAnon:\t   100 kB\nRssFile:\t  5000 "
                             "kB\nRssShmem:\t    20 kB\nVmSwap:\t       3 kB\n") == 123 * 1024);
  CHECK(held_bytes_in_status("Name:\tkernel thread\n") == 0);
  CHECK(held_bytes_in_status("RssAnon:\tnothing kB\n") == 0);
  CHECK(held_bytes_in_status("") == 0);
  CHECK(proportional_bytes_in_rollup("Pss:  900 kB\nPss_Anon:  100 kB\nPss_File:  70 "
                                     "kB\nPss_Shmem:  20 kB\nSwapPss: 3 kB\n") == 123 * 1024);
}

TEST_CASE("a parent is found in a stat file whatever the process calls itself") {
  CHECK(parent_in_stat("12 (sh) S 7 12 12 0") == 7);
  CHECK(parent_in_stat("12 (a) R 1 (b) c) S 7 12 12 0") == 7);
  CHECK(parent_in_stat("12 (sh") == -1);
  CHECK(parent_in_stat("12 (sh) S") == -1);
  CHECK(parent_in_stat("") == -1);
}

TEST_CASE("descendants are found, branches can be left out, and only descendants are killed") {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::fork() == 0) {
      while (true) ::pause();
    }
    while (true) ::pause();
  }
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (descendants(child).empty() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(1ms);
  const std::vector<pid_t> below = descendants(::getpid());
  REQUIRE(below.size() == 2);
  CHECK(below[0] == child);
  CHECK(descendants(::getpid(), {child}).empty());
  CHECK(held_bytes(child) > 0);
  CHECK(proportional_bytes(child) > 0);
  CHECK(proportional_bytes(child) <= held_bytes(child) + (1 << 20));
  // The child is nobody below the grandchild.
  kill_descendant(below[1], child);
  std::this_thread::sleep_for(20ms);
  CHECK(::waitpid(child, nullptr, WNOHANG) == 0);
  kill_descendant(::getpid(), below[1]);
  kill_descendant(::getpid(), child);
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK(held_bytes(child) == 0);
  const auto all = all_processes();
  CHECK(std::find(all.begin(), all.end(), ::getpid()) == all.end());
}

TEST_CASE("a start order arrives as it was sent, descriptors too, small or larger than a packet") {
  for (const std::size_t length : {std::size_t{10}, std::size_t{1'000'000}}) {
    auto [here, there] = socket_pair();
    int ends[2] = {-1, -1};
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    Descriptor reading(ends[0]);
    Descriptor writing(ends[1]);
    const StartChild order{
        .program = "/bin/tool",
        .argv = {"tool", std::string(length, 'x'), ""},
        .environment = {{"A", "1"}, {"B", ""}},
        .folder = "/tmp",
        .cores = {0, 3},
        .bounds = {.wall = 5s, .memory_bytes = 1, .output_bytes = 2, .file_bytes = 3},
        .resident = true};
    REQUIRE(send(here.get(), order, {writing.get()}).has_value());
    auto received = receive(there.get(), 1s);
    REQUIRE(received.has_value());
    const auto* got = std::get_if<StartChild>(&received->message);
    REQUIRE(got != nullptr);
    CHECK(got->program == order.program);
    CHECK(got->argv == order.argv);
    CHECK(got->environment == order.environment);
    CHECK(got->folder == order.folder);
    CHECK(got->cores == order.cores);
    CHECK(got->bounds.wall == 5s);
    CHECK(got->bounds.memory_bytes == 1);
    CHECK(got->bounds.output_bytes == 2);
    CHECK(got->bounds.file_bytes == 3);
    CHECK(got->resident);
    REQUIRE(received->descriptors.size() == 1);
    CHECK(::write(received->descriptors[0].get(), "y", 1) == 1);
    char byte = 0;
    CHECK(::read(reading.get(), &byte, 1) == 1);
    CHECK(byte == 'y');
  }
}

TEST_CASE("every other message of the launcher arrives as it was sent") {
  const auto there_and_back = [](const Message& message) {
    auto decoded = decode(encode(message));
    REQUIRE(decoded.has_value());
    CHECK(encode(*decoded) == encode(message));
    return std::move(*decoded);
  };
  CHECK(std::get<EndChild>(there_and_back(EndChild{Ended::OverOutput})).why == Ended::OverOutput);
  CHECK(std::get<MinderReady>(there_and_back(MinderReady{Cage::Namespace, "no"})).problem == "no");
  CHECK(std::get<MinderMade>(there_and_back(MinderMade{Cage::Namespace, ""})).cage ==
        Cage::Namespace);
  CHECK(std::get<Memory>(there_and_back(Memory{1 << 30})).bytes == 1 << 30);
  ChildEnded ended;
  ended.ended = Ended::Signalled;
  ended.signal = 11;
  ended.peak_memory_bytes = 1234;
  ended.stuck = true;
  const auto back = std::get<ChildEnded>(there_and_back(ended));
  CHECK(back.signal == 11);
  CHECK(back.peak_memory_bytes == 1234);
  CHECK(back.stuck);
  there_and_back(AskMemory{});
  there_and_back(ChildStarted{});
  there_and_back(MakeMinder{});
}

TEST_CASE("bytes that are no message of the launcher are an error") {
  const base::Bytes good = encode(StartChild{.program = "p",
                                             .argv = {"a", "b"},
                                             .environment = {{"n", "v"}},
                                             .folder = "f",
                                             .cores = {1}});
  REQUIRE(decode(good).has_value());
  for (std::size_t length = 0; length < good.size(); ++length)
    CHECK_FALSE(decode(good.substr(0, length)).has_value());
  CHECK_FALSE(decode(good + "x").has_value());
  CHECK_FALSE(decode("\x50").has_value());
  std::mt19937 random(1);
  for (int i = 0; i < 2000;
       ++i) {  // must not crash, nor ask for the memory that a wrong count names
    base::Bytes bad = good;
    bad[1 + random() % (bad.size() - 1)] = static_cast<char>(random());
    (void)decode(bad);
  }
}

TEST_CASE("waiting for a message ends with the time or with the peer") {
  auto [here, there] = socket_pair();
  const auto nothing = receive(here.get(), 10ms);
  REQUIRE_FALSE(nothing.has_value());
  CHECK(nothing.error().code == base::ErrorCode::TimedOut);
  there.close();
  const auto gone = receive(here.get(), 10s);
  REQUIRE_FALSE(gone.has_value());
  CHECK(gone.error().code == base::ErrorCode::Unavailable);
  const auto unsent = send(here.get(), AskMemory{});
  REQUIRE_FALSE(unsent.has_value());
  CHECK(unsent.error().code == base::ErrorCode::Unavailable);
}

TEST_CASE("output is taken without waiting, and its end is noticed") {
  auto output = ChildOutput::make();
  REQUIRE(output.has_value());
  output->drain();  // nothing there yet
  CHECK(output->bytes() == 0);
  CHECK(::write(output->output_end(), "out", 3) == 3);
  CHECK(::write(output->errors_end(), "errors", 6) == 6);
  output->drain();
  CHECK(output->bytes() == 9);
  CHECK(output->take_output().text == "out");
  CHECK(output->bytes() == 6);
  CHECK(output->take_errors().text == "errors");
  CHECK(output->output_fd() >= 0);
  output->started();
  output->drain();
  CHECK(output->output_fd() == -1);
  CHECK(output->errors_fd() == -1);
}

TEST_CASE("a program is found as its name or its path says") {
  Command command;
  CHECK_FALSE(find_program(command).has_value());
  command.argv = {""};
  CHECK_FALSE(find_program(command).has_value());
  command.argv = {"./relative/tool"};
  CHECK(*find_program(command) == "./relative/tool");
  command.argv = {"sh"};
  command.environment = {{"PATH", ":/nowhere:/bin"}};
  CHECK(*find_program(command) == "/bin/sh");
  command.environment = {{"PATH", ""}};
  const auto missing = find_program(command);
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().code == base::ErrorCode::NotFound);
  command.argv = {"tmp"};  // a folder is no program
  command.environment = {{"PATH", "/"}};
  CHECK_FALSE(find_program(command).has_value());
}

TEST_CASE("spawn tells why nothing was started, and leaves no zombie") {
  SpawnRequest request{.program = "/nowhere/tool",
                       .argv = {"tool"},
                       .environment = {},
                       .folder = "",
                       .cores = {},
                       .output = 1,
                       .errors = 2};
  auto result = spawn(request);
  CHECK(result.pid == -1);
  CHECK(result.problem.find("/nowhere/tool") != std::string::npos);
  request.output = 1000;  // not open
  result = spawn(request);
  CHECK(result.pid == -1);
  CHECK(result.problem.find("output") != std::string::npos);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("a launcher refuses to be started after a thread") {
  std::thread other([] { std::this_thread::sleep_for(200ms); });
  const auto launcher = Launcher::start();
  other.join();
#if !defined(__SANITIZE_THREAD__)
  REQUIRE_FALSE(launcher.has_value());
  CHECK(launcher.error().text().find("thread") != std::string::npos);
#endif
}

TEST_CASE("a launcher gives idle minders again, and ends with its object") {
  pid_t pid = -1;
  {
    auto launcher = Launcher::start();
    REQUIRE(launcher.has_value());
    pid = (*launcher)->pid();
    CHECK(::kill(pid, 0) == 0);
    auto first = (*launcher)->take_minder();
    REQUIRE(first.has_value());
    CHECK(first->cage == (*launcher)->cage());
    const int socket = first->socket.get();
    auto second = (*launcher)->take_minder();
    REQUIRE(second.has_value());
    CHECK(second->socket.get() != socket);
    (*launcher)->give_back(std::move(*first));
    auto again = (*launcher)->take_minder();
    REQUIRE(again.has_value());
    CHECK(again->socket.get() == socket);
  }
  CHECK(::kill(pid, 0) == -1);
}

}  // namespace
}  // namespace layerfarm::worker::process
