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

Result<Analysis> stored_analysis(const fs::path& cache, const std::string& model_path,
                                 const base::Digest& blob) {
  const base::BlobFolder blobs(cache / "blobs");
  auto bytes = blobs.get(blob);
  if (!bytes) return fail(bytes.error());
  auto model = protocol::decode_analysis(*bytes);
  if (!model) return fail(model.error());
  // The key holds the model file itself; what lies beside it must be looked at.
  const fs::path folder = fs::path(model_path).parent_path();
  for (std::size_t i = 1; i < model->files.size(); ++i) {
    auto digest = base::digest_of_file((folder / model->files[i].path).string());
    if (!digest) return fail(digest.error());
    if (*digest != model->files[i].digest)
      return fail(ErrorCode::Incompatible, model->files[i].path + " has changed");
  }
  return std::make_shared<const domain::ModelAnalysis>(std::move(*model));
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
  reading.key = domain::analyze_key(*digest, reading.request, request_.machine.reader);
  const auto stored = request_.options.recompute ? nullptr : known_.find(reading.key);
  if (stored && stored->analysis) {
    auto model = stored_analysis(request_.cache, reading.request.model_path, *stored->analysis);
    if (model) reading.model = std::move(*model);
  }
  const auto same = std::find_if(readings_.begin(), readings_.end(), [&](const auto& other) {
    return other->job && other->key == reading.key;
  });
  if (same != readings_.end()) {
    reading.job = (*same)->job;
  } else {
    out.job = book_.add_analyze(reading.key, reading.model != nullptr);
    reading.job = out.job->id;
  }
  by_job_[*reading.job].push_back(&reading);
  return out;
}

Result<void> ModelReading::read(Reading& reading, const domain::Outcome& outcome) const {
  if (outcome.ending != domain::Ending::Done || !outcome.analysis)
    return fail(ErrorCode::InvalidInput, reading_problem(outcome));
  auto model = stored_analysis(request_.cache, reading.request.model_path, *outcome.analysis);
  if (!model) return fail(model.error());
  reading.model = std::move(*model);
  return {};
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
