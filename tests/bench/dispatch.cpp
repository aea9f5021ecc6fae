// Dispatch: cases of the null toolchain through the whole path (command, plan, core, ZeroMQ, two
// worker processes, durable store, report), beside a bare ROUTER/DEALER loop with messages of the
// size of a case's share, and the store alone in commits of 64.
//
// The model is an analysis that is put into the store before, so that reading a model is no part of
// the figure.
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>
#include <zmq.hpp>

#include "coordinator/app/worker_probe.h"
#include "coordinator/store/sqlite_store.h"
#include "shared/base/blob_folder.h"
#include "shared/base/files.h"
#include "shared/base/places.h"
#include "shared/base/process_identity.h"
#include "shared/domain/keys.h"
#include "shared/protocol/codec.h"

extern char** environ;

using namespace layerfarm;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::uint32_t kLayers = 60'000;
constexpr std::uint32_t kExecutors = 3;  // of the chip null
constexpr std::uint64_t kCases = std::uint64_t{kLayers} * kExecutors;
constexpr int kRounds = 3;

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

void print(const char* name, double value, const char* unit, const char* peer, double peer_value) {
  std::printf(R"({"name":"%s","value":%.0f,"unit":"%s","peer":"%s","peer_value":%.0f,"ratio":%.3f})"
              "\n",
              name, value, unit, peer, peer_value, peer_value > 0 ? value / peer_value : 0.0);
  std::fflush(stdout);
}

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "dispatch: %s\n", why.c_str());
  std::exit(1);
}

domain::ModelAnalysis model_of(std::uint32_t layers, const base::Digest& file,
                               std::uint64_t bytes) {
  domain::ModelAnalysis out;
  out.model_digest = file;
  out.files = {{"model.onnx", file, bytes}};
  for (std::uint32_t i = 0; i < layers; ++i) {
    domain::Layer layer;
    layer.id = "Relu_t" + std::to_string(i);
    layer.op_type = "Relu";
    layer.orig_index = i;
    layer.signature = base::digest_of("layer " + std::to_string(i));
    layer.loose_signature = layer.signature;
    layer.module.blob = layer.signature;
    layer.inputs = {{{domain::DType::Float32, {1, 8}}, -40, 40}};
    layer.input_names = {"x"};
    layer.draw_order = {0};
    layer.outputs = {{domain::DType::Float32, {1, 8}}};
    layer.output_names = {"y"};
    out.layers.push_back(std::move(layer));
    out.locations.push_back({i + 2, 10, "Relu"});
  }
  return out;
}

/// A cache folder in which reading this model is known already.
void prepare_cache(const fs::path& cache, const fs::path& model, std::uint32_t layers,
                   const fs::path& worker) {
  std::ofstream(model) << "stands for a model of " << layers << " layers";
  auto machine = coordinator::app::describe_machine(worker, {});
  if (!machine) give_up(machine.error().text());
  const base::Digest digest = *base::digest_of_file(model.string());
  const base::BlobFolder blobs(cache / "blobs");
  auto blob = blobs.put(protocol::encode_analysis(model_of(layers, digest, fs::file_size(model))));
  if (!blob) give_up(blob.error().text());
  domain::Outcome outcome;
  outcome.stage = domain::Stage::Analyze;
  outcome.ending = domain::Ending::Done;
  outcome.analysis = *blob;
  domain::AnalyzeRequest request;
  request.model_path = model.string();
  auto store = coordinator::store::SqliteStore::open(cache);
  if (!store) give_up(store.error().text());
  auto run = (*store)->begin_run({base::this_process(), 0, {}});
  if (!run) give_up(run.error().text());
  (*store)->append(
      {coordinator::store::OutcomeFact{*run, domain::analyze_key(digest, request, machine->reader),
                                       std::make_shared<const domain::Outcome>(outcome)},
       coordinator::store::RunEndedFact{*run, 0}});
  if (auto closed = (*store)->close(); !closed) give_up(closed.error().text());
}

/// One whole command; seconds.
double discover(const fs::path& program, const fs::path& model, const fs::path& output) {
  std::vector<std::string> words = {program.string(), "discover",      "--model",   model.string(),
                                    "--chip",         "null",          "--workers", "2",
                                    "--output-dir",   output.string(), "-q"};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto begun = Clock::now();
  pid_t pid = 0;
  if (::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0)
    give_up("cannot start " + program.string());
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) give_up("discover failed");
  return seconds_since(begun);
}

/// Seconds of one discover over a fresh cache.
double whole_path(const fs::path& bin, std::uint32_t layers) {
  auto folder = base::ScratchFolder::make(fs::temp_directory_path(), "layerfarm-bench");
  if (!folder) give_up(folder.error().text());
  const fs::path cache = folder->path() / "cache";
  ::setenv("LAYERFARM_CACHE_DIR", cache.c_str(), 1);
  const fs::path model = folder->path() / "model.onnx";
  prepare_cache(cache, model, layers, bin / "layerfarm-worker");
  return discover(bin / "layerfarm", model, folder->path() / "out");
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
  const char* given = std::getenv("LAYERFARM_BIN");
  const fs::path bin = given != nullptr
                           ? fs::path(given)
                           : base::program_folder().parent_path().parent_path() / "bin";
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
    small = whole_path(bin, 1);
    rates.push_back(static_cast<double>(kCases) / whole_path(bin, kLayers));
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
