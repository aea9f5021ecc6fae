// ModelReading: the models of a run on their way from file to analysis. A model whose analysis is
// stored is there at once, the others wait for a job that reads them; models of equal content are
// read once. Only an analysis tells which files belong to a model, so models of one file share a
// job until that is known, and part where what lies beside them differs. Loop thread only.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/app/discover_request.h"
#include "coordinator/app/known_outcomes.h"
#include "coordinator/core/ids.h"
#include "coordinator/plan/case_book.h"
#include "shared/base/result.h"
#include "shared/domain/analyze_request.h"

namespace layerfarm::coordinator::app {

/// The analysis that a blob of the store holds, for a model file whose digest is in its key. Errors
/// say why it cannot be used: a file beside the model has changed, for one.
[[nodiscard]] base::Result<std::shared_ptr<const domain::ModelAnalysis>> stored_analysis(
    const std::filesystem::path& cache, const std::string& model_path, const base::Digest& blob);

/// What is stored of a model.
struct StoredReading {
  base::Digest key;                                    ///< of the job that reads it
  base::Digest blob;                                   ///< with `model`
  std::shared_ptr<const domain::ModelAnalysis> model;  ///< null where it has to be read
};
/// `first`: the key by the model file alone. Where the analysis of that is of other files beside
/// it, the model has a key of its own. `stored` gives the blob of a key's analysis.
[[nodiscard]] StoredReading find_reading(
    const std::filesystem::path& cache, const std::string& model_path, const base::Digest& first,
    const std::function<std::optional<base::Digest>(const base::Digest&)>& stored);
/// Why a model could not be read, in the words of its analyze job.
[[nodiscard]] std::string reading_problem(const domain::Outcome& outcome);
/// What reading this model is asked, by the options of the command.
[[nodiscard]] domain::AnalyzeRequest analyze_request(const DiscoverOptions& options,
                                                     const std::filesystem::path& model);

/// A model on its way from file to cases.
struct Reading {
  ModelFile file;
  domain::AnalyzeRequest request;
  base::Digest first_key;  ///< by the model file alone
  base::Digest key;
  std::optional<core::JobId> job;                      ///< none when the file cannot be read
  std::shared_ptr<const domain::ModelAnalysis> model;  ///< null until it is read
  bool planned = false;
  bool failed = false;
  /// As lines of the run call it.
  [[nodiscard]] std::string label() const { return (file.folder / file.name).string(); }
};

class ModelReading {
 public:
  ModelReading(const DiscoverRequest& request, KnownOutcomes& known, plan::CaseBook& book)
      : request_(request), known_(known), book_(book) {}

  struct Begun {
    Reading* reading = nullptr;
    std::optional<plan::PlannedJob> job;  ///< new: to be handed to the core
    std::string problem;                  ///< why the file cannot be read; empty when it can
  };
  [[nodiscard]] Begun begin(const ModelFile& file);
  /// An analyze job has answered; the reading has its model, or a job of its own to wait for (the
  /// one that it shared read other files), or the Error says why it has neither.
  [[nodiscard]] base::Result<std::optional<plan::PlannedJob>> read(Reading& reading,
                                                                   const domain::Outcome& outcome);

  /// The models that an analyze job reads; null for any other job.
  [[nodiscard]] const std::vector<Reading*>* of_job(core::JobId job) const;
  /// Whether every model of the request has been read or has failed.
  [[nodiscard]] bool complete() const;
  /// All that were begun, in the order of the request.
  [[nodiscard]] const std::vector<std::unique_ptr<Reading>>& all() const { return readings_; }

 private:
  /// A job under the reading's key, new or shared.
  std::optional<plan::PlannedJob> wait_for_job(Reading& reading);

  const DiscoverRequest& request_;
  KnownOutcomes& known_;
  plan::CaseBook& book_;
  std::vector<std::unique_ptr<Reading>> readings_;
  std::map<core::JobId, std::vector<Reading*>> by_job_;
};

}  // namespace layerfarm::coordinator::app
