// The whole command in a bench: a cache folder in which reading a model of N layers is known
// already, so that reading it is no part of the figure, and starting `layerfarm discover` on it.
#pragma once

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/app/worker_probe.h"
#include "coordinator/store/sqlite_store.h"
#include "shared/base/blob_folder.h"
#include "shared/base/files.h"
#include "shared/base/places.h"
#include "shared/base/process_identity.h"
#include "shared/domain/keys.h"
#include "shared/protocol/codec.h"

extern char** environ;

namespace layerfarm::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

[[noreturn]] inline void give_up(const std::string& why) {
  std::fprintf(stderr, "bench: %s\n", why.c_str());
  std::exit(1);
}

/// The folder of the product's programs: `$LAYERFARM_BIN`, else this build's.
inline std::filesystem::path bin_folder() {
  const char* given = std::getenv("LAYERFARM_BIN");
  return given != nullptr ? std::filesystem::path(given)
                          : base::program_folder().parent_path().parent_path() / "bin";
}

inline domain::ModelAnalysis model_of(std::uint32_t layers, const base::Digest& file,
                                      std::uint64_t bytes) {
  domain::ModelAnalysis out;
  out.model_digest = file;
  out.files = {{"model.onnx", file, bytes}};
  for (std::uint32_t i = 0; i < layers; ++i) {
    domain::Layer layer;
    layer.id = "Relu_t" + std::to_string(i);
    layer.op_type = "Relu";
    layer.orig_index = i;
    layer.node_index = out.operators++;
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

/// Writes a stand-in for a model of so many layers, and a cache folder in which reading it is
/// known.
inline void prepare_cache(const std::filesystem::path& cache, const std::filesystem::path& model,
                          std::uint32_t layers) {
  std::ofstream(model) << "stands for a model of " << layers << " layers";
  auto machine = coordinator::app::describe_machine(bin_folder() / "layerfarm-worker", {});
  if (!machine) give_up(machine.error().text());
  const base::Digest digest = *base::digest_of_file(model.string());
  const base::BlobFolder blobs(cache / "blobs");
  auto blob = blobs.put(
      protocol::encode_analysis(model_of(layers, digest, std::filesystem::file_size(model))));
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

/// A fresh cache (the environment of this process names it from now on), its model, and a place for
/// reports; gone with the object.
class KnownModel {
 public:
  explicit KnownModel(std::uint32_t layers) {
    auto folder =
        base::ScratchFolder::make(std::filesystem::temp_directory_path(), "layerfarm-bench");
    if (!folder) give_up(folder.error().text());
    folder_.emplace(std::move(*folder));
    const std::filesystem::path cache = path() / "cache";
    ::setenv("LAYERFARM_CACHE_DIR", cache.c_str(), 1);
    prepare_cache(cache, path() / "model.onnx", layers);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return folder_->path(); }

  /// Starts `layerfarm discover` on it; `more` are further arguments.
  [[nodiscard]] pid_t start(const std::string& chip, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {(bin_folder() / "layerfarm").string(),
                                      "discover",
                                      "--model",
                                      (path() / "model.onnx").string(),
                                      "--chip",
                                      chip,
                                      "--output-dir",
                                      (path() / "out").string(),
                                      "-q"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t pid = 0;
    if (::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0)
      give_up("cannot start " + words.front());
    return pid;
  }

  /// Runs it to its end; what it used.
  rusage discover(const std::string& chip, const std::vector<std::string>& more) const {
    const pid_t pid = start(chip, more);
    int status = 0;
    rusage used{};
    ::wait4(pid, &status, 0, &used);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) give_up("discover failed");
    return used;
  }

 private:
  std::optional<base::ScratchFolder> folder_;
};

}  // namespace layerfarm::bench
