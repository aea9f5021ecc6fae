// BookTables: what a CaseBook is about - requests, files (reports), jobs and the numbers that stand
// for equal work - and how a case, a job and a key are found from one another. Decides nothing.
// Part of CaseBook.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "coordinator/plan/case_book.h"
#include "coordinator/plan/job_table.h"

namespace layerfarm::coordinator::plan {

/// One CaseBook::add: what its files share.
struct BookRequest {
  PlanRequest given;
  std::uint16_t run = 0;
  std::vector<std::uint32_t> work;       // number of (layer, inputs, reference), by layer
  std::vector<std::uint32_t> signature;  // number of the signature, by layer
  std::vector<bool> selected;
};

/// One report.
struct BookFile {
  std::uint32_t request = 0;
  std::uint32_t chip = 0;  // place in the request
  std::uint32_t first_case = 0;
  std::uint32_t layers = 0;
  std::uint32_t executors = 0;
  std::vector<std::uint32_t> compile_target;  // by executor
  std::vector<Group> group;                   // by executor
  // Under --dedup-layers, by layer: the layer that it copies, and the next one that copies the
  // same.
  std::vector<std::uint32_t> source;
  std::vector<std::uint32_t> next_copy;

  [[nodiscard]] std::uint32_t case_of(std::uint32_t layer, std::uint32_t executor) const {
    return first_case + layer * executors + executor;
  }
  [[nodiscard]] std::uint32_t end_case() const { return first_case + layers * executors; }
};

/// A case with everything around it. Holds until the next file is added.
struct Place {
  std::uint32_t id = 0;
  std::uint32_t file_number = 0;
  const BookFile* file = nullptr;
  const BookRequest* request = nullptr;
  std::uint32_t layer = 0;
  std::uint32_t executor = 0;

  [[nodiscard]] const domain::Layer& layer_spec() const {
    return request->given.model->layers[layer];
  }
  [[nodiscard]] const PlanChip& chip() const { return *request->given.chips[file->chip]; }
  [[nodiscard]] const domain::ExecutorSpec& executor_spec() const {
    return chip().spec.executors[executor];
  }
  [[nodiscard]] const PlanOptions& options() const { return request->given.options; }
  /// Null when there is none.
  [[nodiscard]] const OldReport* old() const {
    return file->chip < request->given.old.size() ? &request->given.old[file->chip] : nullptr;
  }
  /// Of a job of this case.
  [[nodiscard]] Group group(domain::Stage stage) const {
    return stage == domain::Stage::Prepare || stage == domain::Stage::Analyze
               ? Group{0}
               : file->group[executor];
  }
  [[nodiscard]] bool in_skip_list() const;  ///< the executor, by the user's options
  [[nodiscard]] bool chosen() const;        ///< the same, of `executors`
  [[nodiscard]] domain::Tolerance tolerance() const;
  /// What the old report says of it.
  [[nodiscard]] std::optional<domain::Status> old_status() const;
};

class BookTables {
 public:
  BookTables();
  BookTables(const BookTables&) = delete;
  BookTables& operator=(const BookTables&) = delete;

  // ---- a new model ----

  /// Its number.
  std::uint32_t add_request(PlanRequest given);
  /// The report of one of the request's chips; its cases follow those that are there. Groups that
  /// are new go to `fresh`.
  std::uint32_t add_file(std::uint32_t request, std::uint32_t chip,
                         std::vector<PlannedGroup>& fresh);

  // ---- finding things ----

  [[nodiscard]] std::size_t cases() const { return cases_; }
  [[nodiscard]] std::uint32_t files() const { return static_cast<std::uint32_t>(files_.size()); }
  [[nodiscard]] const BookFile& file(std::uint32_t number) const { return files_[number]; }
  [[nodiscard]] const BookRequest& request(std::uint32_t number) const { return requests_[number]; }
  [[nodiscard]] JobTable& jobs() { return jobs_; }
  [[nodiscard]] const JobTable& jobs() const { return jobs_; }

  [[nodiscard]] Place place(std::uint32_t id) const;
  /// The same where the file is known.
  [[nodiscard]] Place place_in(std::uint32_t file_number, std::uint32_t id) const {
    const BookFile& file = files_[file_number];
    Place out;
    out.id = id;
    out.file_number = file_number;
    out.file = &file;
    out.request = &requests_[file.request];
    out.layer = (id - file.first_case) / file.executors;
    out.executor = (id - file.first_case) % file.executors;
    return out;
  }
  /// Another executor of the same layer.
  [[nodiscard]] Place beside(const Place& at, std::uint32_t executor) const {
    Place out = at;
    out.id = at.file->case_of(at.layer, executor);
    out.executor = executor;
    return out;
  }

  /// What a job of this stage would be found by; recompare jobs are found by `recompare` instead.
  [[nodiscard]] WorkKey work_key(const Place& at, domain::Stage stage) const;
  [[nodiscard]] base::Digest key(const Place& at, domain::Stage stage) const;
  [[nodiscard]] base::Digest key(std::uint32_t job) const;
  void set_analyze_key(std::uint32_t job, const base::Digest& key) { analyze_keys_[job] = key; }

  /// The job that judges anew what this execute job gave; kNone when there is none.
  [[nodiscard]] std::uint32_t recompare(std::uint32_t execute_job,
                                        const domain::Tolerance& wanted) const;
  void set_recompare(std::uint32_t execute_job, const domain::Tolerance& wanted, std::uint32_t job);

  /// The first executor of the layer that the old report has a success on, the skip list left out.
  [[nodiscard]] std::optional<std::uint32_t> old_success(const Place& any) const;

  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  void number_layers(BookRequest& request, std::uint32_t request_number);
  [[nodiscard]] std::uint16_t run_number(RunId run);
  void number_executors(BookFile& file, const std::shared_ptr<const PlanChip>& chip,
                        std::vector<PlannedGroup>& fresh);

  std::deque<BookRequest> requests_;
  std::vector<BookFile> files_;
  std::size_t cases_ = 0;
  JobTable jobs_;
  std::deque<base::Digest> prepare_keys_;  // by work number
  DigestNumbers work_numbers_;
  std::deque<std::pair<std::uint32_t, std::uint32_t>>
      signature_examples_;  // (request, layer) by signature number
  DigestNumbers signature_numbers_;
  std::map<base::Digest, std::uint32_t> compile_targets_;
  std::map<base::Digest, Group> groups_;
  std::map<RunId, std::uint16_t> runs_;
  std::map<std::uint32_t, base::Digest> analyze_keys_;
  std::map<std::tuple<std::uint32_t, double, double, double, std::uint32_t>, std::uint32_t>
      recompares_;  // (execute job, tolerance)
};

}  // namespace layerfarm::coordinator::plan
