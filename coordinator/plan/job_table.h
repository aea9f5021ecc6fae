// JobTable: the jobs of a CaseBook, in a few bytes each, and which of them is the one for a given
// piece of work. Keys are not kept: two jobs are the same when the numbers that their keys are made
// of are. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "shared/base/digest.h"
#include "shared/domain/outcome.h"

namespace layerfarm::coordinator::plan {

inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

enum class JobState : std::uint8_t {
  Open,  ///< to be done, or under way
  Done,
  Failed,   ///< it has an outcome that is not Done
  Blocked,  ///< something it needs failed
  Stuck,    ///< no verdict (infrastructure)
  Dropped,  ///< nobody wanted it any more
};

struct JobRecord {
  std::uint32_t example =
      kNone;  ///< a case whose work this is: layer, chip, executor and options are found by it
  std::uint32_t waiting =
      kNone;  ///< first of the cases that wait for it (a list through the links of Cases)
  std::uint32_t uses = 0;  ///< open cases and jobs that want it
  std::uint32_t needs[2] = {kNone, kNone};
  std::uint16_t run = 0;  ///< the run that it was made for (an index)
  domain::Stage stage = domain::Stage::Execute;
  JobState state : 3 = JobState::Open;
  bool speculative : 1 = false;
  bool known : 1 = false;        ///< the store had its answer when it was made
  bool holds_needs : 1 = false;  ///< counted among the uses of its needs
};
static_assert(sizeof(JobRecord) == 24, "a million cases hold two or three of these each");

/// What makes two jobs one: numbers for (layer, inputs, reference), for the tool's side, and
/// whatever else the stage has.
struct WorkKey {
  domain::Stage stage = domain::Stage::Execute;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;
  friend bool operator==(const WorkKey&, const WorkKey&) = default;
};

class JobTable {
 public:
  /// `work_of` tells a job's work again; it is asked when two hashes meet.
  explicit JobTable(std::function<WorkKey(std::uint32_t)> work_of) : work_of_(std::move(work_of)) {}

  /// The latest job for this work; kNone when there is none.
  [[nodiscard]] std::uint32_t find(const WorkKey& work) const;
  /// Adds a record that is found by `work` from now on.
  std::uint32_t add(const JobRecord& record, const WorkKey& work);
  /// Adds a record that is not found by its work.
  std::uint32_t add(const JobRecord& record);

  [[nodiscard]] JobRecord& operator[](std::uint32_t job) { return records_[job]; }
  [[nodiscard]] const JobRecord& operator[](std::uint32_t job) const { return records_[job]; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(records_.size()); }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  [[nodiscard]] std::size_t slot_of(const WorkKey& work) const;
  void grow();

  std::function<WorkKey(std::uint32_t)> work_of_;
  std::deque<JobRecord> records_;  // grows without moving, and without spare room for as many again
  std::vector<std::uint32_t> slots_;  // job numbers; a power of two, at most 3/4 used
  std::size_t used_ = 0;
};

/// Numbers for digests: the same digest always has the same number. The digests themselves lie with
/// the caller.
class DigestNumbers {
 public:
  explicit DigestNumbers(std::function<const base::Digest&(std::uint32_t)> digest_of)
      : digest_of_(std::move(digest_of)) {}
  struct Number {
    std::uint32_t value = 0;
    bool fresh = false;  ///< the caller must keep its digest before the next call
  };
  [[nodiscard]] Number number_of(const base::Digest& digest);
  [[nodiscard]] std::size_t memory_bytes() const {
    return slots_.capacity() * sizeof(std::uint32_t);
  }

 private:
  std::function<const base::Digest&(std::uint32_t)> digest_of_;
  std::vector<std::uint32_t> slots_;
  std::uint32_t count_ = 0;
};

}  // namespace layerfarm::coordinator::plan
