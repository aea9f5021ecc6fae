#include "coordinator/app/model_reading.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "coordinator/report/case_result.h"
#include "shared/base/blob_folder.h"
#include "shared/base/files.h"
#include "shared/domain/keys.h"
#include "shared/protocol/codec.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::ErrorCode;
using base::fail;
using base::Result;

using Analysis = std::shared_ptr<const domain::ModelAnalysis>;

namespace {

Result<Analysis> decode_blob(const fs::path& cache, const base::Digest& blob) {
  auto bytes = base::BlobFolder(cache / "blobs").get(blob);
  if (!bytes) return fail(bytes.error());
  auto model = protocol::decode_analysis(*bytes);
  if (!model) return fail(model.error());
  return std::make_shared<const domain::ModelAnalysis>(std::move(*model));
}

/// Of the files that the analysis read beside a model file of these bytes, as they lie beside this
/// one now; zero for one that cannot be read: its reader will say so.
std::vector<base::Digest> files_beside(const domain::ModelAnalysis& model,
                                       const std::string& model_path) {
  const fs::path folder = fs::path(model_path).parent_path();
  std::vector<base::Digest> out;
  for (std::size_t i = 1; i < model.files.size(); ++i) {
    const auto digest = base::digest_of_file((folder / model.files[i].path).string());
    out.push_back(digest ? *digest : base::Digest{});
  }
  return out;
}

/// The key of a model of this file whose files beside it are not those of the analysis of `first`.
base::Digest key_with_files(const base::Digest& first, const std::vector<base::Digest>& beside) {
  base::Hasher hasher("layerfarm.analyze.beside.1");
  hasher.add(first).add(static_cast<std::int64_t>(beside.size()));
  for (const base::Digest& file : beside) hasher.add(file);
  return hasher.finish();
}

/// The first file beside the model that is not as it was read; empty when all are.
std::string changed_file(const domain::ModelAnalysis& model,
                         const std::vector<base::Digest>& beside) {
  for (std::size_t i = 0; i < beside.size(); ++i) {
    if (beside[i] != model.files[i + 1].digest) return model.files[i + 1].path;
  }
  return {};
}

}  // namespace

Result<Analysis> stored_analysis(const fs::path& cache, const std::string& model_path,
                                 const base::Digest& blob) {
  auto model = decode_blob(cache, blob);
  if (!model) return model;
  // The key holds the model file itself; what lies beside it must be looked at.
  if (const std::string file = changed_file(**model, files_beside(**model, model_path));
      !file.empty())
    return fail(ErrorCode::Incompatible, file + " has changed since it was read; run this again");
  return model;
}

StoredReading find_reading(
    const fs::path& cache, const std::string& model_path, const base::Digest& first,
    const std::function<std::optional<base::Digest>(const base::Digest&)>& stored) {
  StoredReading out{.key = first, .blob = {}, .model = nullptr};
  const auto first_blob = stored(first);
  const auto model = first_blob ? decode_blob(cache, *first_blob)
                                : Result<Analysis>(fail(ErrorCode::NotFound, "not stored"));
  if (!model) return out;
  const std::vector<base::Digest> beside = files_beside(**model, model_path);
  if (changed_file(**model, beside).empty()) {
    out.blob = *first_blob;
    out.model = *model;
    return out;
  }
  out.key = key_with_files(first, beside);
  const auto own_blob = stored(out.key);
  if (!own_blob) return out;
  if (auto own = stored_analysis(cache, model_path, *own_blob)) {
    out.blob = *own_blob;
    out.model = std::move(*own);
  }
  return out;
}

std::string reading_problem(const domain::Outcome& outcome) {
  std::string why = outcome.diagnostic.text;
  if (outcome.ending != domain::Ending::Refused && !outcome.diagnostic.cause.empty()) {
    why = "reading it failed (" + outcome.diagnostic.cause + ")" + (why.empty() ? "" : ": " + why);
  }
  return why.empty() ? "it cannot be read" : std::string(report::first_line(why));
}

domain::AnalyzeRequest analyze_request(const DiscoverOptions& options, const fs::path& model) {
  domain::AnalyzeRequest out;
  out.model_path = fs::absolute(model).lexically_normal().string();
  out.dims = options.dims;
  out.unit = options.unit;
  out.quantize = quantization_of(options.quantize);
  out.convert = options.convert;
  if (!options.subgraph_from.empty()) out.subgraph = {options.subgraph_from, options.subgraph_to};
  return out;
}

ModelReading::Begun ModelReading::begin(const ModelFile& file) {
  Reading& reading = *readings_.emplace_back(std::make_unique<Reading>());
  Begun out{.reading = &reading, .job = {}, .problem = {}};
  reading.file = file;
  reading.request = analyze_request(request_.options, file.path);
  auto digest = base::digest_of_file(reading.request.model_path);
  if (!digest) {
    out.problem = digest.error().text();
    return out;
  }
  reading.first_key = domain::analyze_key(*digest, reading.request, request_.machine.reader);
  StoredReading stored =
      find_reading(request_.cache, reading.request.model_path, reading.first_key,
                   [this](const base::Digest& key) -> std::optional<base::Digest> {
                     const auto outcome = known_.find(key);
                     return outcome ? outcome->analysis : std::nullopt;
                   });
  reading.key = stored.key;
  if (!request_.options.recompute) reading.model = std::move(stored.model);
  out.job = wait_for_job(reading);
  return out;
}

std::optional<plan::PlannedJob> ModelReading::wait_for_job(Reading& reading) {
  std::optional<plan::PlannedJob> out;
  const auto same = std::find_if(readings_.begin(), readings_.end(), [&](const auto& other) {
    return other.get() != &reading && other->job && other->key == reading.key;
  });
  if (same != readings_.end()) {
    reading.job = (*same)->job;
  } else {
    out = book_.add_analyze(reading.key, reading.model != nullptr);
    reading.job = out->id;
  }
  by_job_[*reading.job].push_back(&reading);
  return out;
}

Result<std::optional<plan::PlannedJob>> ModelReading::read(Reading& reading,
                                                           const domain::Outcome& outcome) {
  std::vector<Reading*>& sharing = by_job_.at(*reading.job);
  const bool own = sharing.front() == &reading;
  const bool read = outcome.ending == domain::Ending::Done && outcome.analysis;
  if (own && !read) return fail(ErrorCode::InvalidInput, reading_problem(outcome));
  if (read) {
    auto model = decode_blob(request_.cache, *outcome.analysis);
    if (!model) return fail(model.error());
    const std::vector<base::Digest> beside = files_beside(**model, reading.request.model_path);
    const std::string changed = changed_file(**model, beside);
    if (changed.empty()) {
      reading.model = std::move(*model);
      return std::nullopt;
    }
    if (own) return fail(ErrorCode::Incompatible, changed + " has changed while it was read");
    reading.key = key_with_files(reading.first_key, beside);
  }
  // The job's own model is refused, or has other files: what is said of it is not said of this one.
  std::erase(sharing, &reading);
  reading.job.reset();
  if (read) return wait_for_job(reading);
  plan::PlannedJob job = book_.add_analyze(reading.key, /*known=*/false);
  reading.job = job.id;
  by_job_[job.id].push_back(&reading);
  return job;
}

bool ModelReading::complete() const {
  return readings_.size() == request_.models.size() &&
         std::all_of(readings_.begin(), readings_.end(),
                     [](const auto& reading) { return reading->model || reading->failed; });
}

const std::vector<Reading*>* ModelReading::of_job(core::JobId job) const {
  const auto found = by_job_.find(job);
  return found == by_job_.end() ? nullptr : &found->second;
}

}  // namespace layerfarm::coordinator::app
