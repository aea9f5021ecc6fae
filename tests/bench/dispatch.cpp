// Dispatch: cases of the null toolchain through the whole path (command, plan, core, ZeroMQ, two
// worker processes, durable store, report), beside a bare ROUTER/DEALER loop with messages of the
// size of a case's share, and the store alone in commits of 64.
//
// The model is an analysis that is put into the store before, so that reading a model is no part of
// the figure.
#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>
#include <zmq.hpp>

#include "tests/bench/whole_command.h"

using namespace layerfarm;
using bench::Clock;
using bench::give_up;
using bench::seconds_since;
namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t kLayers = 60'000;
constexpr std::uint32_t kExecutors = 3;  // of the chip null
constexpr std::uint64_t kCases = std::uint64_t{kLayers} * kExecutors;
constexpr int kRounds = 3;

void print(const char* name, double value, const char* unit, const char* peer, double peer_value) {
  std::printf(R"({"name":"%s","value":%.0f,"unit":"%s","peer":"%s","peer_value":%.0f,"ratio":%.3f})"
              "\n",
              name, value, unit, peer, peer_value, peer_value > 0 ? value / peer_value : 0.0);
  std::fflush(stdout);
}

/// Seconds of one discover over a fresh cache.
double whole_path(std::uint32_t layers) {
  const bench::KnownModel model(layers);
  const auto begun = Clock::now();
  model.discover("null", {"--workers", "2"});
  return seconds_since(begun);
}

/// Messages per second of a bare ROUTER/DEALER pair with 64 under way.
double bare_loop(std::size_t bytes) {
  constexpr int kMessages = 200'000;
  constexpr int kCredits = 64;
  zmq::context_t context(1);
  zmq::socket_t router(context, zmq::socket_type::router);
  router.bind("ipc://@layerfarm-bench-" + std::to_string(::getpid()));
  std::thread peer([&] {
    zmq::socket_t dealer(context, zmq::socket_type::dealer);
    dealer.connect("ipc://@layerfarm-bench-" + std::to_string(::getpid()));
    dealer.send(zmq::str_buffer("hello"));
    zmq::message_t message;
    while (dealer.recv(message) && message.size() > 1) dealer.send(message, zmq::send_flags::none);
  });
  zmq::message_t name;
  zmq::message_t body;
  [[maybe_unused]] auto got = router.recv(name);
  got = router.recv(body);
  const std::string identity(static_cast<const char*>(name.data()), name.size());
  const std::string text(bytes, 'x');
  const auto send = [&](const std::string& what) {
    router.send(zmq::buffer(identity), zmq::send_flags::sndmore);
    router.send(zmq::buffer(what));
  };
  const auto begun = Clock::now();
  for (int i = 0; i < kCredits; ++i) send(text);
  for (int i = 0; i < kMessages; ++i) {
    got = router.recv(name);
    got = router.recv(body);
    if (i + kCredits < kMessages) send(text);
  }
  const double rate = kMessages / seconds_since(begun);
  send("!");
  peer.join();
  return rate;
}

/// Rows per second of the store alone, in commits of 64.
double store_alone(const domain::Outcome& outcome) {
  constexpr int kRows = 64'000;
  constexpr int kCommit = 64;
  auto folder = base::ScratchFolder::make(fs::temp_directory_path(), "layerfarm-bench");
  auto store = coordinator::store::SqliteStore::open(folder->path());
  if (!store) give_up(store.error().text());
  auto run = (*store)->begin_run({base::this_process(), 0, {}});
  const auto shared = std::make_shared<const domain::Outcome>(outcome);
  const auto begun = Clock::now();
  for (int i = 0; i < kRows; i += kCommit) {
    std::vector<coordinator::store::Fact> facts;
    for (int k = 0; k < kCommit; ++k)
      facts.emplace_back(
          coordinator::store::OutcomeFact{*run, base::digest_of(std::to_string(i + k)), shared});
    (*store)->append(std::move(facts));
  }
  if (auto closed = (*store)->close(); !closed) give_up(closed.error().text());
  return kRows / seconds_since(begun);
}

}  // namespace

int main() {
  domain::Outcome outcome;
  outcome.ending = domain::Ending::Done;
  domain::Comparison comparison;
  comparison.dtype = domain::DType::Float32;
  comparison.total = 1;
  outcome.executed = domain::Executed{{comparison}, 1, {}, 1, ""};
  const std::size_t message = protocol::encode_outcome(outcome).size();

  std::vector<double> rates;
  double small = 0;
  for (int round = 0; round < kRounds; ++round) {
    small = whole_path(1);
    rates.push_back(static_cast<double>(kCases) / whole_path(kLayers));
  }
  std::sort(rates.begin(), rates.end());
  const double median = rates[rates.size() / 2];
  const double loop = bare_loop(message);
  const double store = store_alone(outcome);
  print("dispatch_null_whole_command", median, "cases/s", "goal", 50'000);
  print("dispatch_null_beside_bare_router_dealer", median, "cases/s", "bare loop, 64 credits",
        loop);
  print("dispatch_null_beside_store_alone", median, "cases/s", "store, commits of 64", store);
  print("discover_one_layer_command", small * 1000, "ms", "of the figure above",
        kCases / median * 1000);
  return 0;
}
