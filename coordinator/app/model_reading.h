// ModelReading: the models of a run on their way from file to analysis. A model whose analysis is
// stored is there at once, the others wait for a job that reads them; models of equal content are
// read once. Loop thread only.
#pragma once

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

/// A model on its way from file to cases.
struct Reading {
  ModelFile file;
  domain::AnalyzeRequest request;
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
  /// An analyze job has answered; the reading has its model, or the Error says why it has not.
  [[nodiscard]] base::Result<void> read(Reading& reading, const domain::Outcome& outcome) const;

  /// The models that an analyze job reads; null for any other job.
  [[nodiscard]] const std::vector<Reading*>* of_job(core::JobId job) const;
  /// Whether every model of the request has been read or has failed.
  [[nodiscard]] bool complete() const;
  /// All that were begun, in the order of the request.
  [[nodiscard]] const std::vector<std::unique_ptr<Reading>>& all() const { return readings_; }

 private:
  using Analysis = std::shared_ptr<const domain::ModelAnalysis>;
  [[nodiscard]] base::Result<Analysis> stored_analysis(const Reading& reading,
                                                       const base::Digest& blob) const;

  const DiscoverRequest& request_;
  KnownOutcomes& known_;
  plan::CaseBook& book_;
  std::vector<std::unique_ptr<Reading>> readings_;
  std::map<core::JobId, std::vector<Reading*>> by_job_;
};

}  // namespace layerfarm::coordinator::app
